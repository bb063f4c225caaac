package entry

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestRequestSurvivesTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Map(rapid.SliceOf(rapid.ByteRange(1, 255)), func(b []byte) string { return string(b) })
		r := Request{
			Path: text.Draw(t, "path"), Dir: text.Draw(t, "dir"),
			Argv: append([]string{"x" + text.Draw(t, "name")}, rapid.SliceOf(text).Draw(t, "arguments")...),
			Env:  append([]string{}, rapid.SliceOf(text).Draw(t, "env")...),
		}
		if err := r.Check(); err != nil {
			t.Fatalf("%+v is refused: %v", r, err)
		}
		// What follows on the pipe is not read.
		back, err := ReadRequest(io.MultiReader(bytes.NewReader(r.Encode()), strings.NewReader("more")))
		if err != nil || !reflect.DeepEqual(back, r) {
			t.Fatalf("got %+v, %v, want %+v", back, err, r)
		}
	})
}

// E-238
func TestACutRequestAuthorizesNothing(t *testing.T) {
	whole := Request{Dir: "/", Argv: []string{"sh", "-c", "true"}, Env: []string{"A=b"}}.Encode()
	for n := range whole {
		if r, err := ReadRequest(bytes.NewReader(whole[:n])); !errors.Is(err, ErrEnd) || r.Argv != nil {
			t.Errorf("after %d of %d bytes got %+v, %v, want the end", n, len(whole), r, err)
		}
	}
}

func TestAMalformedRequestIsRefused(t *testing.T) {
	good := Request{Argv: []string{"a"}}.Encode()
	change := func(at int, b byte) []byte {
		bad := bytes.Clone(good)
		bad[at] = b
		return bad
	}
	for name, data := range map[string][]byte{
		"magic":        change(0, 'x'),
		"length":       change(4, 0xff),
		"text length":  change(8, 0xff),
		"count":        change(16, 0xff),
		"no argv":      append([]byte("gmg1\x00\x00\x00\x10"), make([]byte, 16)...),
		"bytes beyond": append([]byte("gmg1\x00\x00\x00\x16"), append(good[8:], 0)...),
		"NUL":          Request{Argv: []string{"a\x00"}}.Encode(),
	} {
		if r, err := ReadRequest(bytes.NewReader(data)); err == nil {
			t.Errorf("%s: got %+v", name, r)
		}
	}
}

func FuzzReadRequest(f *testing.F) {
	f.Add(Request{Path: "/bin/sh", Dir: "/", Argv: []string{"sh"}, Env: []string{"A=b"}}.Encode())
	f.Add([]byte("gmg1\x00\x00\x00\x04\xff\xff\xff\xff"))
	f.Add([]byte("gmg1\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ReadRequest(bytes.NewReader(data))
		if err != nil {
			return
		}
		if err := r.Check(); err != nil {
			t.Errorf("%q was accepted as %+v, which is no launch: %v", data, r, err)
		}
		if !bytes.HasPrefix(data, r.Encode()) {
			t.Errorf("%q was read as %+v, which is written differently", data, r)
		}
	})
}
