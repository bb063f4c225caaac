package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"greatminds/internal/execgate"
)

func TestMain(m *testing.M) {
	execgate.Main()
	if manners := os.Getenv("SAMPLE_AGENT"); manners != "" {
		sampleAgent(manners)
		return
	}
	goleak.VerifyTestMain(m)
}

func TestTheCommandLineChoosesAgents(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "/somewhere/cache")
	for _, c := range []struct {
		args, agents string
		fault        string
	}{
		{"", "codex gemini claude opencode claude-new codex-new qwen pi vibe kimi", ""},
		{"--lightest", "codex", ""},
		{"opencode codex", "opencode codex", ""},
		{"opencode nobody", "", `no agent named "nobody"; known are codex, gemini, claude, opencode, claude-new, codex-new, qwen, pi, vibe, kimi`},
		{"--lightest gemini", "", "--lightest chooses the agent itself; leave out gemini"},
		{"--fastest", "", "flag provided but not defined: -fastest"},
	} {
		o, err := parse(strings.Fields(c.args), io.Discard)
		var names []string
		for _, r := range o.agents {
			names = append(names, r.name)
		}
		if got := strings.Join(names, " "); got != c.agents && c.fault == "" {
			t.Errorf("%q runs %q, want %q", c.args, got, c.agents)
		}
		if got := ""; err != nil {
			if got = err.Error(); got != c.fault {
				t.Errorf("%q says %q, want %q", c.args, got, c.fault)
			}
		} else if c.fault != "" {
			t.Errorf("%q was taken, want %q", c.args, c.fault)
		} else if want := "/somewhere/cache/greatminds-realagents"; o.cache != want {
			t.Errorf("%q installs into %q, want %q", c.args, o.cache, want)
		}
	}
	if got := run(t.Context(), []string{"nobody"}); got != 2 {
		t.Errorf("wrong usage ends with status %d, want 2", got)
	}
}

func TestEachRecipeIsPinnedAndWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range recipes {
		folder := "%I/node_modules/"
		if len(r.python) > 0 {
			folder = "%I/bin/"
		}
		if seen[r.name] || len(r.packages) == 0 || !strings.HasPrefix(r.program, folder) || r.note == "" || (r.helper == "") != (r.remedy == "") {
			t.Errorf("recipe %q is there twice or lacks its packages, program or note", r.name)
		}
		seen[r.name] = true
		for _, p := range r.packages {
			version := p[strings.LastIndexAny(p, "@=")+1:]
			if len(strings.Split(version, ".")) != 3 || strings.Trim(version, "0123456789.") != "" {
				t.Errorf("%s: %s is not pinned", r.name, p)
			}
		}
	}
}

func TestALaunchIsBuiltFromNothing(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "of this machine")
	t.Setenv("HTTPS_PROXY", "of this machine")
	for _, r := range recipes {
		t.Run(r.name, func(t *testing.T) {
			home := filepath.Join(t.TempDir(), "home")
			argv, env, err := r.launch(place{install: "/install", home: home, model: "http://127.0.0.1:7", node: "/node/bin/node", path: "/bin"})
			if err != nil {
				t.Fatal(err)
			}
			checkArgv(t, r, argv)
			for name, value := range env {
				base := slices.Contains([]string{"HOME", "PATH", "TERM", "LANG", "TMPDIR", "NO_PROXY"}, name)
				if _, own := r.env[name]; !base && !own {
					t.Errorf("the environment has %s", name)
				}
				checkFilled(t, name, value)
			}
			path := "/bin"
			if r.node24 {
				path = "/node/bin:/bin"
			}
			if env["HOME"] != home || env["PATH"] != path {
				t.Errorf("HOME is %q and PATH %q", env["HOME"], env["PATH"])
			}
			if info, err := os.Stat(env["TMPDIR"]); err != nil || info.Mode() != os.ModeDir|0o700 {
				t.Errorf("the temporary folder: %v, %v", info, err)
			}
			checkFiles(t, r, home)
		})
	}
}

func checkArgv(t *testing.T, r recipe, argv []string) {
	t.Helper()
	if r.interpreter != "" {
		want := place{install: "/install", node: "/node/bin/node"}.fill(r.interpreter)
		if argv[0] != want || strings.HasPrefix(argv[0], "/node/") != r.node24 {
			t.Errorf("argv is %q, want %s at its head", argv, want)
		}
		argv = argv[1:]
	}
	if !strings.HasPrefix(argv[0], "/install/") || !slices.Equal(argv[1:], r.args) {
		t.Errorf("argv is %q", argv)
	}
	for _, word := range argv {
		checkFilled(t, "argv", word)
	}
}

// checkFiles wants each configuration file private, filled, and the stand-in named in some place.
func checkFiles(t *testing.T, r recipe, home string) {
	t.Helper()
	all := ""
	for name := range r.files {
		path := filepath.Join(home, name)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("%s has the mode %v, %v; want 0600", name, info.Mode(), err)
		}
		checkFilled(t, name, string(text))
		all += string(text)
	}
	for _, value := range r.env {
		all += place{model: "http://127.0.0.1:7"}.fill(value)
	}
	if !strings.Contains(all, "http://127.0.0.1:7") {
		t.Error("nothing tells the agent where its model is")
	}
}

func checkFilled(t *testing.T, where, text string) {
	t.Helper()
	for _, mark := range []string{"%I", "%H", "%U", "%N", "%A"} {
		if strings.Contains(text, mark) {
			t.Errorf("%s has %s left in %q", where, mark, text)
		}
	}
}
