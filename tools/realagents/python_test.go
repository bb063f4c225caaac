package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// python stands for an interpreter of the version in its name; pip puts the agent's program into
// the environment that venv made.
const python = `#!/bin/sh
case "$1 $2 $3" in
"-c "*) echo "${0##*python}" ;;
"-m venv "*) mkdir -p "$3/bin" && ln -s "$0" "$3/bin/python" ;;
"-m pip install") echo "$*" >> "$PIP_CALLS"; [ "$PIP" = fails ] && { echo "no such version" >&2; exit 1; }
	echo program > "${0%/python}/agent" ;;
esac
`

// withPython gives a bench that finds only the programs named, below one folder: bin is on PATH.
func withPython(t *testing.T, programs map[string]string) (*bench, string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range programs {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "%D", dir)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// execgate looks programs up in our own PATH.
	path := filepath.Join(dir, "bin") + string(os.PathListSeparator) + "/usr/bin" + string(os.PathListSeparator) + "/bin"
	t.Setenv("PATH", path)
	return &bench{cache: filepath.Join(dir, "cache"), out: &bytes.Buffer{},
		environ: []string{"PATH=" + path, "PIP_CALLS=" + filepath.Join(dir, "calls")}}, dir
}

// pythonSample asks for versions that no machine has, so that none of its own is found.
var pythonSample = recipe{name: "sample", packages: []string{"sample==1.2.3"}, python: []string{"9.13", "9.12"},
	interpreter: "%I/bin/python", program: "%I/bin/agent"}

const (
	brokenShim = "#!/bin/sh\necho 'pyenv: not found' >&2; exit 127\n"
	pyenvRoot  = "#!/bin/sh\necho %D/pyenv\n"
)

func TestAnInterpreterIsFoundOnPathOrBelowPyenv(t *testing.T) {
	for _, c := range []struct {
		name     string
		programs map[string]string
		want     string
		fault    string
	}{
		{"on PATH", map[string]string{"bin/python9.13": python}, "python9.13", ""},
		{"the next version", map[string]string{"bin/python9.12": python}, "python9.12", ""},
		{"a shim that leads nowhere", map[string]string{"bin/python9.13": brokenShim, "bin/pyenv": pyenvRoot,
			"pyenv/versions/9.13.4/bin/python9.13": python}, "%D/pyenv/versions/9.13.4/bin/python9.13", ""},
		{"another version under the name", map[string]string{"bin/python9.13": "#!/bin/sh\necho 3.9\n"}, "", "no Python 9.13 or 9.12 with venv; looked at python9.13"},
		{"none", map[string]string{}, "", "install one, for example pyenv install 9.13"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, dir := withPython(t, c.programs)
			if err := os.MkdirAll(b.cache, 0o755); err != nil {
				t.Fatal(err)
			}
			got, err := b.findPython(t.Context(), pythonSample.python)
			if want := strings.ReplaceAll(c.want, "%D", dir); got != want || (err == nil) != (c.fault == "") {
				t.Errorf("found %q, %v; want %q", got, err, want)
			}
			if err != nil && !strings.Contains(err.Error(), c.fault) {
				t.Errorf("the error is %v, want %q in it", err, c.fault)
			}
		})
	}
}

func TestAnEnvironmentOfPythonIsMadeOnce(t *testing.T) {
	b, dir := withPython(t, map[string]string{"bin/python9.13": python})
	for range 2 {
		p, err := b.prepare(t.Context(), pythonSample)
		if want := filepath.Join(b.cache, "sample==1.2.3"); err != nil || p.install != want {
			t.Fatalf("installed into %q, %v; want %q", p.install, err, want)
		}
	}
	calls, err := os.ReadFile(filepath.Join(dir, "calls"))
	if want := "-m pip install --quiet --no-input --disable-pip-version-check sample==1.2.3\n"; err != nil || string(calls) != want {
		t.Errorf("pip was called with %q, %v; want %q", calls, err, want)
	}
	wantInCache(t, b, "sample==1.2.3", "sample==1.2.3.lock")
}

func TestAFailedEnvironmentOfPythonLeavesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		programs map[string]string
		want     string
	}{
		"pip fails":      {map[string]string{"bin/python9.13": python}, "ended with status 1: no such version"},
		"no interpreter": {map[string]string{}, "no Python 9.13 or 9.12 with venv"},
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := withPython(t, c.programs)
			b.environ = append(b.environ, "PIP=fails")
			if _, err := b.prepare(t.Context(), pythonSample); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q in it", err, c.want)
			}
			wantInCache(t, b, "sample==1.2.3.lock")
		})
	}
}
