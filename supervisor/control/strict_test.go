package control

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"reflect"
	"strings"
	"testing"

	"greatminds/internal/refusal"
)

func TestStrictRefusesWhatJSONLetsPass(t *testing.T) {
	for _, bad := range []string{``, `{`, `{"a":1,"a":1}`, `[{"b":{"c":1,"c":2}}]`, `1 2`, `{"a":1}}`, `{"a" 1}`, strings.Repeat("[", 65) + strings.Repeat("]", 65)} {
		var v any
		if err := Strict([]byte(bad), &v); err == nil {
			t.Errorf("%q passed", bad)
		}
	}
	for _, good := range []string{`null`, `{}`, `{"a":{"a":1},"b":[{"a":1},{"a":2}]}`, ` [1, 2] `, strings.Repeat("[", 64) + strings.Repeat("]", 64)} {
		var v any
		if err := Strict([]byte(good), &v); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	var args struct{ A int }
	if err := StrictFields([]byte(`{"A":1,"B":2}`), &args); err == nil {
		t.Error("an unknown member passed")
	}
}

func FuzzStrict(f *testing.F) {
	for _, seed := range []string{`{"a":1,"a":2}`, `[]`, `{"a":{"b":[1,null,"x"]}}`, `{"é":1.5e3}`, `"\ud800"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var strict, plain any
		if err := Strict(data, &strict); err != nil {
			return
		}
		// What passes is JSON, and means what encoding/json says it means.
		if err := json.Unmarshal(data, &plain); err != nil || !reflect.DeepEqual(strict, plain) {
			t.Fatalf("%q: %v, %v and %v", data, err, strict, plain)
		}
	})
}

func TestAFileSystemWithoutSocketsIsNamed(t *testing.T) {
	dir, err := os.Open("/sys")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	d := &folder{file: dir, path: "/sys"}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: d.socket(), Net: "unix"})
	if err == nil {
		l.Close()
		t.Fatal("a socket was made in /sys")
	}
	r, is := refusal.Find(explainBind(d, err))
	if !is || r.Code != refusal.CodeSocketUnsupported || !strings.Contains(r.What, "type sysfs") || r.Remedy == "" {
		t.Fatalf("got %v", explainBind(d, err))
	}
}

func TestTheDeepestMountNamesTheFileSystem(t *testing.T) {
	if got := fileSystem("/proc/self/fd"); got != "proc" {
		t.Errorf("/proc/self/fd: got %s", got)
	}
	if got := fileSystem("/"); got == "unknown" || got == "proc" {
		t.Errorf("/: got %s", got)
	}
	if got := unescapeMount(`/a\040b\134c`); got != `/a b\c` {
		t.Errorf("got %q", got)
	}
}

func TestACallShowsNoCredentialInALog(t *testing.T) {
	c := Call{Op: "x", Token: "secret", Args: json.RawMessage(`{"k":"private"}`), RunID: "r"}
	if text := c.LogValue().String(); strings.Contains(text, "secret") || strings.Contains(text, "private") {
		t.Fatalf("got %s", text)
	}
	if !bytes.Contains([]byte(c.LogValue().String()), []byte("r")) {
		t.Fatal("the run is missing")
	}
}
