package execgate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// request is what comes down the gate's pipe.
type request struct {
	// path is the file to execute; "" looks argv[0] up in the request's own PATH.
	path string
	// dir is the folder to start in; "" keeps the one of the gate.
	dir       string
	argv, env []string
}

const (
	requestMagic = "gmg1"
	// The kernel takes at most 6 MiB of arguments and environment (a quarter of the stack
	// limit it caps at 24 MiB), so that anything beyond 8 MiB fails at exec anyway.
	maxRequest = 8 << 20
)

var errRequestForm = errors.New("malformed launch request")

// check refuses what exec would refuse, before anything is started.
func (r request) check() error {
	if len(r.argv) == 0 || r.argv[0] == "" {
		return errors.New("execgate: empty argv")
	}
	for _, list := range [][]string{{r.path, r.dir}, r.argv, r.env} {
		for i, s := range list {
			if strings.IndexByte(s, 0) >= 0 {
				return fmt.Errorf("execgate: string %d of the launch holds a NUL byte", i)
			}
		}
	}
	return nil
}

// encode returns the wire form: magic, length of the payload, payload. All numbers are 32 bit,
// big endian.
func (r request) encode() ([]byte, error) {
	out := append([]byte(requestMagic), 0, 0, 0, 0)
	put := func(s string) {
		out = binary.BigEndian.AppendUint32(out, uint32(len(s)))
		out = append(out, s...)
	}
	put(r.path)
	put(r.dir)
	for _, list := range [][]string{r.argv, r.env} {
		out = binary.BigEndian.AppendUint32(out, uint32(len(list)))
		for _, s := range list {
			put(s)
		}
	}
	payload := len(out) - len(requestMagic) - 4
	if payload > maxRequest {
		return nil, fmt.Errorf("execgate: arguments and environment are %d bytes, the limit is %d", payload, maxRequest)
	}
	binary.BigEndian.PutUint32(out[len(requestMagic):], uint32(payload))
	return out, nil
}

// readRequest reads one request. End of file before its last byte is io.EOF or
// io.ErrUnexpectedEOF: nobody authorized a launch.
func readRequest(r io.Reader) (request, error) {
	head := make([]byte, len(requestMagic)+4)
	if _, err := io.ReadFull(r, head); err != nil {
		return request{}, err
	}
	size := binary.BigEndian.Uint32(head[len(requestMagic):])
	if string(head[:len(requestMagic)]) != requestMagic || size > maxRequest {
		return request{}, errRequestForm
	}
	payload := make([]byte, size)
	if _, err := io.ReadFull(r, payload); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return request{}, err
	}
	return decodePayload(payload)
}

func decodePayload(payload []byte) (request, error) {
	d := decoder{rest: payload}
	r := request{path: d.text(), dir: d.text(), argv: d.list(), env: d.list()}
	if d.failed || len(d.rest) != 0 {
		return request{}, errRequestForm
	}
	return r, nil
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
	n := binary.BigEndian.Uint32(d.rest)
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
