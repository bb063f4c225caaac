package commands_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"greatminds/commands"
	"greatminds/internal/refusal"
	"greatminds/runstore"
)

func (l *lab) stale(c *runstore.Command) string {
	l.t.Helper()
	why, err := l.service.Stale(l.t.Context(), l.store.View().Run(l.run), c)
	l.must(err)
	return why
}

// E-101, E-102, E-103, E-104
func TestWhatMakesEvidenceStale(t *testing.T) {
	definition := func(revision string) string {
		return shell("c", "tool; echo 1 > x.log", "environment: {CHILD: SECRET_PARENT}", "environment_revision: \""+revision+"\"") +
			"  tool: {argv: [tool], roles: [DEVELOPER], environment: {CHILD: SECRET_PARENT}}\n"
	}
	for _, c := range []struct {
		name   string
		change func(l *lab, c *runstore.Command)
		want   string // part of the reason, "" for fresh
	}{
		{"nothing", func(*lab, *runstore.Command) {}, ""},
		{"an ignored file", func(l *lab, _ *runstore.Command) { l.write("y.log", "1") }, ""},
		{"a restart", func(l *lab, _ *runstore.Command) { l.reopen() }, ""},
		{"another terminal", func(l *lab, _ *runstore.Command) { l.reopen(with(l.environ, "TERM=xterm")...) }, ""},
		{"a variable it does not see", func(l *lab, _ *runstore.Command) { l.reopen(with(l.environ, "OTHER=y")...) }, ""},
		{"a source file", func(l *lab, _ *runstore.Command) { l.write("a.txt", "two") }, "source is"},
		{"a new file", func(l *lab, _ *runstore.Command) { l.write("new", "") }, "source is"},
		{"a commit", func(l *lab, _ *runstore.Command) { l.git("commit", "-q", "--allow-empty", "-m", "m") }, "commit"},
		{"a link that leads out", func(l *lab, _ *runstore.Command) {
			l.must(os.Symlink("/etc/passwd", filepath.Join(l.dir, "link")))
		}, "link"},
		{"a variable it sees", func(l *lab, _ *runstore.Command) { l.reopen(with(l.environ, "SECRET_PARENT=other")...) }, "environment changed"},
		{"the executable", func(l *lab, _ *runstore.Command) { l.tool("bin", "echo other") }, "executable"},
		{"another executable of the name", func(l *lab, _ *runstore.Command) { l.tool("first", "echo tool") }, "stands for"},
		{"no executable", func(l *lab, _ *runstore.Command) { l.must(os.RemoveAll(filepath.Join(l.tools(), "bin"))) }, "cannot execute"},
		{"output edited", func(l *lab, c *runstore.Command) {
			l.must(os.WriteFile(c.Output.Stdout.Path, []byte("TOOL\n"), 0o600))
		}, "hash"},
		{"output missing", func(l *lab, c *runstore.Command) { l.must(os.Remove(c.Output.Stderr.Path)) }, "missing"},
		{"environment_revision", func(l *lab, _ *runstore.Command) { l.current = configured(l.t, definition("2")) }, "environment_revision"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, definition("1"))
			l.repository()
			l.tool("bin", "echo tool")
			l.reopen(with(l.environ, "PATH="+l.tools()+"/first:"+l.tools()+"/bin:"+os.Getenv("PATH"))...)
			command := "tool"
			if c.name == "environment_revision" {
				command = "c"
			}
			r := l.carryOut(command, "r1")
			wantOutcome(t, r, "succeeded", "exit")
			c.change(l, r)
			why := l.stale(l.receipt("r1"))
			if (why == "") != (c.want == "") || !strings.Contains(why, c.want) {
				t.Errorf("got %q, want a reason with %q", why, c.want)
			}
			if got := l.receipt("r1").Status; got != "succeeded" {
				t.Errorf("asking made the receipt %s", got)
			}
		})
	}
}

// tools is a folder outside of the workspace; tool puts a program there.
func (l *lab) tools() string { return l.dir + "-tools" }

func (l *lab) tool(folder, script string) {
	l.t.Helper()
	path := filepath.Join(l.tools(), folder, "tool")
	l.must(os.MkdirAll(filepath.Dir(path), 0o755))
	l.must(os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	l.t.Cleanup(func() { _ = os.RemoveAll(l.tools()) }) // beside the test's own folder
}

func with(environ []string, variable string) []string {
	name, _, _ := strings.Cut(variable, "=")
	out := []string{variable}
	for _, v := range environ {
		if !strings.HasPrefix(v, name+"=") {
			out = append(out, v)
		}
	}
	return out
}

// E-111
func TestOnlyAPlainExitIsEvidence(t *testing.T) {
	for _, c := range []struct {
		name, script string
		fresh        bool
	}{
		{"success", "true", true},
		{"failure", "exit 1", true},
		{"failure that changed the source", "echo 2 >> a.txt; exit 1", true},
		{"success that changed the source", "echo 2 >> a.txt", false},
		{"signal", "kill -SEGV $$", false},
		{"time over", "sleep 1000", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, shell("c", c.script, "timeout_seconds: 1"))
			r := l.carryOut("c", "r1")
			if why := l.stale(r); (why == "") != c.fresh {
				t.Errorf("%s (%s): got %q", r.Status, r.Reason, why)
			}
		})
	}
	t.Run("another run", func(t *testing.T) {
		l := newLab(t, shell("c", "true"))
		r := l.carryOut("c", "r1")
		l.run = l.claim("0002-task", "DEVELOPER")
		if why := l.stale(r); !strings.Contains(why, "belongs to run") {
			t.Errorf("got %q", why)
		}
	})
}

// E-176
func TestPreview(t *testing.T) {
	l := newLab(t, shell("c", `printf 'ab\344\366\342\202\254'; printf %s x y z; echo error >&2`))
	l.carryOut("c", "r1")
	before := l.receipt("r1")
	for _, c := range []struct {
		limit     int
		text      string
		truncated bool
	}{
		{0, "", true}, {2, "ab", true}, {65536, "ab\uFFFD€xyz", false},
		{5, "ab\uFFFD", true}, // the limit splits the last character
	} {
		previews := preview(t, l, c.limit)
		if got := previews["stdout"]; got.Text != c.text || got.Truncated != c.truncated || got.Bytes != before.Output.Stdout.Bytes || got.SHA256 != before.Output.Stdout.SHA256 {
			t.Errorf("limit %d: got %+v, want %q", c.limit, got, c.text)
		}
	}
	if got := preview(t, l, 8192)["stderr"]; got.Text != "error\n" || got.Truncated {
		t.Errorf("got %+v", got)
	}
	if l.receipt("r1") != before {
		t.Error("a preview changed the receipt")
	}
	l.close()
	if strings.Contains(l.read(".greatminds/.runtime/state.json"), "xyz") {
		t.Error("the text is stored in the state")
	}
	l.open()
}

func preview(t *testing.T, l *lab, limit int) map[string]commands.StreamPreview {
	t.Helper()
	got, err := l.service.Preview(l.receipt("r1"), limit)
	if err != nil {
		t.Fatal(err)
	}
	return got.(map[string]commands.StreamPreview)
}

// E-103, E-175
func TestAPreviewShowsNothingOfAChangedArtifact(t *testing.T) {
	for name, damage := range map[string]func(l *lab, path string){
		"edited":  func(l *lab, path string) { l.must(os.WriteFile(path, []byte("OUT\n"), 0o600)) },
		"longer":  func(l *lab, path string) { l.must(os.WriteFile(path, []byte("out\nmore"), 0o600)) },
		"shorter": func(l *lab, path string) { l.must(os.Truncate(path, 1)) },
		"missing": func(l *lab, path string) { l.must(os.Remove(path)) },
		"link to the same text": func(l *lab, path string) {
			l.must(os.Rename(path, path+".moved"))
			l.must(os.Symlink(path+".moved", path))
		},
		"folder": func(l *lab, path string) {
			l.must(os.Remove(path))
			l.must(os.Mkdir(path, 0o700))
		},
		"swapped": func(l *lab, path string) {
			l.must(os.Rename(path, path+".moved"))
			l.must(os.Rename(filepath.Join(filepath.Dir(path), "stderr"), path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, shell("c", "echo out; echo err >&2"))
			r := l.carryOut("c", "r1")
			damage(l, r.Output.Stdout.Path)
			got, err := l.service.Preview(r, 8192)
			wantCode(t, err, refusal.CodeCommandOutput)
			if got != nil {
				t.Errorf("got %v beside the refusal", got)
			}
		})
	}
	t.Run("a receipt that leads elsewhere", func(t *testing.T) {
		l := newLab(t, shell("c", "echo out"))
		r := *l.carryOut("c", "r1")
		output := *r.Output
		output.Stdout.Path = "/etc/passwd"
		r.Output = &output
		_, err := l.service.Preview(&r, 8192)
		wantCode(t, err, refusal.CodeCommandOutput)
	})
}
