package entry

import "syscall"

// Request is what comes down the gate's pipe.
type Request struct {
	// Path is the file to execute; "" looks Argv[0] up in the PATH of Env.
	Path string
	// Dir is the folder to start in; "" keeps that of the gate.
	Dir       string
	Argv, Env []string
}

const (
	requestMagic = "gmg1"
	headBytes    = len(requestMagic) + 4
	// MaxRequest bounds a request. The kernel takes at most 6 MiB of arguments and environment,
	// so that anything larger would fail at exec anyway.
	MaxRequest = 8 << 20
)

// The faults of a request. They are errnos because package errors is not there yet.
const (
	// ErrForm: malformed. Nothing may be executed.
	ErrForm = syscall.EBADMSG
	// ErrEnd: end of file before the last byte. Nobody authorized a launch.
	ErrEnd = syscall.ENODATA
	// ErrNul: a string with a NUL byte, which exec cannot pass on.
	ErrNul = syscall.EINVAL
	// ErrEmpty: no argv, or an empty name.
	ErrEmpty = syscall.ENOENT
	// ErrLarge: more than MaxRequest bytes.
	ErrLarge = syscall.E2BIG
)

// Check refuses what exec would refuse, before anything is started.
func (r Request) Check() error {
	if len(r.Argv) == 0 || r.Argv[0] == "" {
		return ErrEmpty
	}
	size := 0
	for _, list := range [][]string{{r.Path, r.Dir}, r.Argv, r.Env} {
		for _, s := range list {
			if indexByte(s, 0) >= 0 {
				return ErrNul
			}
			size += len(s) + 4
		}
	}
	if size+8 > MaxRequest {
		return ErrLarge
	}
	return nil
}

// Encode returns the wire form of a checked request: magic, length of the payload, payload. The
// payload is path and folder, then argv and environment with their counts in front. All numbers are
// 32 bit, big endian.
func (r Request) Encode() []byte {
	out := appendNumber([]byte(requestMagic), 0)
	out = appendText(appendText(out, r.Path), r.Dir)
	for _, list := range [][]string{r.Argv, r.Env} {
		out = appendNumber(out, uint32(len(list)))
		for _, s := range list {
			out = appendText(out, s)
		}
	}
	appendNumber(out[:len(requestMagic)], uint32(len(out)-headBytes))
	return out
}

func appendNumber(out []byte, n uint32) []byte {
	return append(out, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}

func appendText(out []byte, s string) []byte {
	return append(appendNumber(out, uint32(len(s))), s...)
}

// Reader is io.Reader, but for the end of file: it may be said as (0, nil), as the system does.
type Reader interface{ Read(p []byte) (int, error) }

// ReadRequest reads one request. Any error means that nothing may be executed.
func ReadRequest(r Reader) (Request, error) {
	head := make([]byte, headBytes)
	if err := fill(r, head); err != nil {
		return Request{}, err
	}
	d := decoder{rest: head[len(requestMagic):]}
	size := d.number()
	if string(head[:len(requestMagic)]) != requestMagic || size > MaxRequest {
		return Request{}, ErrForm
	}
	payload := make([]byte, size)
	if err := fill(r, payload); err != nil {
		return Request{}, err
	}
	return decode(payload)
}

func fill(r Reader, p []byte) error {
	for len(p) > 0 {
		n, err := r.Read(p)
		p = p[n:]
		if len(p) > 0 && (err != nil || n == 0) {
			return ErrEnd
		}
	}
	return nil
}

func decode(payload []byte) (Request, error) {
	d := decoder{rest: payload}
	r := Request{Path: d.text(), Dir: d.text(), Argv: d.list(), Env: d.list()}
	if d.failed || len(d.rest) != 0 {
		return Request{}, ErrForm
	}
	return r, r.Check()
}

// decoder takes numbers and strings off the front of rest; once failed it yields only zeros.
type decoder struct {
	rest   []byte
	failed bool
}

func (d *decoder) number() uint32 {
	if len(d.rest) < 4 {
		d.failed, d.rest = true, nil
		return 0
	}
	n := uint32(d.rest[0])<<24 | uint32(d.rest[1])<<16 | uint32(d.rest[2])<<8 | uint32(d.rest[3])
	d.rest = d.rest[4:]
	return n
}

func (d *decoder) text() string {
	n := d.number()
	if uint64(n) > uint64(len(d.rest)) {
		d.failed, d.rest = true, nil
		return ""
	}
	s := string(d.rest[:n])
	d.rest = d.rest[n:]
	return s
}

func (d *decoder) list() []string {
	n := d.number()
	// Each entry takes at least its own length field, so a larger count is a lie.
	if uint64(n) > uint64(len(d.rest)/4) {
		d.failed, d.rest = true, nil
		return nil
	}
	list := make([]string, 0, n)
	for range n {
		list = append(list, d.text())
	}
	return list
}
