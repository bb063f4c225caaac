package transport

import (
	"io"
	"sync"
)

// tail keeps the last bytes of a stream.
type tail struct {
	mu    sync.Mutex
	ring  []byte
	at    int
	total int64
}

// Write never fails: what is older than the limit is forgotten.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	t.total += int64(n)
	if len(p) > MaxStderrTail {
		p = p[len(p)-MaxStderrTail:]
	}
	if room := MaxStderrTail - len(t.ring); room > 0 {
		k := min(room, len(p))
		t.ring = append(t.ring, p[:k]...)
		p = p[k:]
	}
	for len(p) > 0 {
		k := copy(t.ring[t.at:], p)
		p, t.at = p[k:], (t.at+k)%MaxStderrTail
	}
	return n, nil
}

// bytes returns the kept bytes in order, and how many there were in all.
func (t *tail) bytes() ([]byte, int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]byte, 0, len(t.ring))
	out = append(out, t.ring[t.at:]...)
	return append(out, t.ring[:t.at]...), t.total
}

// drain reads r to its end, whatever comes: an agent must never wait for us to read its
// standard error.
func (t *tail) drain(r io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		_, _ = t.Write(buf[:n]) // never fails
		if err != nil {
			return
		}
	}
}
