package transport

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"
)

const (
	// maxOverrun is how far past its limit a line may go before the agent is taken to write
	// one without end.
	maxOverrun = 64 << 20
	// keptEnd is how much of the end of a too long line is kept.
	keptEnd = 256
	// maxDrainBytes bounds what is read after the agent ended; a pipe holds at most 1 MiB,
	// but a descendant may go on writing.
	maxDrainBytes = 16 << 20
	// maxDrainStretch bounds the drain as a whole when data never stops.
	maxDrainStretch = 20
	// keptBuffer is the largest line buffer that is kept for the next long line.
	keptBuffer = 2 << 20
)

var errEndless = errors.New("line without end")

// drainer reads a pipe whose far end may stay open in a descendant after its owner ended.
type drainer struct {
	f      *os.File
	span   time.Duration
	ending atomic.Bool
	// brief: nothing is waited for, since the owner of the far end lives.
	brief atomic.Bool

	draining    bool
	until, last time.Time
	left        int64
}

// end starts the drain: what the pipe holds is read, for at most span, then comes EOF.
func (d *drainer) end() {
	if d.ending.CompareAndSwap(false, true) {
		// Wakes a blocked Read. An error means that the file is closed, which does the same.
		_ = d.f.SetReadDeadline(time.Unix(1, 0))
	}
}

// endNow ends the reading of a pipe whose owner lives: what is there is read, no more.
func (d *drainer) endNow() {
	d.brief.Store(true)
	d.end()
}

func (d *drainer) Read(p []byte) (int, error) {
	for {
		if d.draining && !d.arm() {
			return 0, io.EOF
		}
		n, err := d.f.Read(p)
		if n > 0 {
			d.left -= int64(n)
			return n, nil
		}
		switch {
		case errors.Is(err, os.ErrClosed):
			return 0, io.EOF
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return n, err
		case d.draining:
			return 0, io.EOF
		}
		d.draining, d.left = true, maxDrainBytes
		d.until = time.Now()
		if !d.brief.Load() {
			d.until = d.until.Add(d.span)
		}
		d.last = d.until.Add(maxDrainStretch * d.span)
	}
}

// arm sets the deadline of the next read of a drain; false when the drain is over.
func (d *drainer) arm() bool {
	now := time.Now()
	if d.left <= 0 || now.After(d.last) {
		return false
	}
	// Past the span, what is there is still taken, but not waited for.
	soon := now.Add(time.Millisecond)
	if soon.Before(d.until) {
		soon = d.until
	}
	return d.f.SetReadDeadline(soon) == nil
}

// line is one line without its end.
type line struct {
	// b is the line, or its first bytes when it was too long. Valid until the next call.
	b []byte
	// last are the last bytes of a line that was too long, else nil.
	last []byte
	// size is the length of the whole line in bytes.
	size int64
}

// source splits a stream into bounded lines. It splits on the newline alone: other line
// separators may stand in JSON strings.
type source struct {
	r    *bufio.Reader
	max  int
	long []byte
	last []byte
}

func newSource(r io.Reader, max int) *source {
	return &source{r: bufio.NewReaderSize(r, 64<<10), max: max}
}

// next returns the next line; a last line without newline counts. It fails with io.EOF, a
// read error, or errEndless.
func (s *source) next() (line, error) {
	b, err := s.r.ReadSlice('\n')
	if err == nil && len(b)-1 <= s.max {
		return line{b: b[:len(b)-1], size: int64(len(b) - 1)}, nil
	}
	if cap(s.long) > keptBuffer {
		s.long = nil
	}
	s.long, s.last = s.long[:0], s.last[:0]
	var size int64
	for {
		b = bytes.TrimSuffix(b, []byte("\n"))
		size += int64(len(b))
		if room := s.max - len(s.long); room > 0 {
			s.long = append(s.long, b[:min(room, len(b))]...)
		}
		s.keepEnd(b)
		switch {
		case err == nil, err != bufio.ErrBufferFull && size > 0:
			return s.finish(size), nil
		case err != bufio.ErrBufferFull:
			return line{}, err
		case size > int64(s.max)+maxOverrun:
			return line{}, errEndless
		}
		b, err = s.r.ReadSlice('\n')
	}
}

func (s *source) keepEnd(b []byte) {
	if len(b) >= keptEnd {
		s.last = append(s.last[:0], b[len(b)-keptEnd:]...)
		return
	}
	if over := len(s.last) + len(b) - keptEnd; over > 0 {
		s.last = s.last[:copy(s.last, s.last[over:])]
	}
	s.last = append(s.last, b...)
}

func (s *source) finish(size int64) line {
	l := line{b: s.long, size: size}
	if size > int64(s.max) {
		l.last = s.last
	}
	return l
}
