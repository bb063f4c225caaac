package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func world(out, err *bytes.Buffer, args ...string) World {
	return World{Args: args, Stdin: strings.NewReader(""), Stdout: out, Stderr: err, Getenv: func(string) string { return "" },
		Cwd: "/", Exe: "/bin/greatminds", Version: "1.2.3", Now: time.Now}
}

func everyCommand(t *testing.T, visit func(cmd *cobra.Command)) {
	t.Helper()
	var out, err bytes.Buffer
	a := &app{World: world(&out, &err)}
	seen := 0
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		seen++
		visit(cmd)
		for _, sub := range cmd.Commands() {
			if !sub.Hidden {
				walk(sub)
			}
		}
	}
	walk(a.root())
	if seen < 30 {
		t.Fatalf("looked at %d commands only", seen)
	}
}

func TestEveryCommandExplainsItself(t *testing.T) {
	everyCommand(t, func(cmd *cobra.Command) {
		path := cmd.CommandPath()
		if !strings.HasSuffix(cmd.Short, ".") || strings.Count(cmd.Short, ". ") > 0 {
			t.Errorf("%s: %q is not one sentence", path, cmd.Short)
		}
		if !strings.Contains(cmd.Example, "greatminds") {
			t.Errorf("%s: there is no example", path)
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s: --%s is not explained", path, f.Name)
			}
			// A plain number must say what it counts.
			if kind := f.Value.Type(); (kind == "int" || kind == "float64" || kind == "uint64") && !unitNamed(f.Usage) {
				t.Errorf("%s: --%s has no unit in %q", path, f.Name, f.Usage)
			}
		})
		var out, err bytes.Buffer
		argv := append(strings.Fields(path)[1:], "--help")
		if status := Greatminds(t.Context(), world(&out, &err, argv...)); status != 0 || err.Len() > 0 {
			t.Errorf("%s --help: exit %d, stderr %q", path, status, err.String())
		}
		for _, part := range []string{cmd.Short, "\nUsage: greatminds", "\nExit status:\n  0 ", "\nExample:\n", "--json"} {
			if !strings.Contains(out.String(), part) {
				t.Errorf("%s --help: %q is missing in\n%s", path, part, out.String())
			}
		}
	})
}

func unitNamed(usage string) bool {
	for _, unit := range []string{"seconds", "bytes", "events", "runs", "lines", "sequence"} {
		if strings.Contains(usage, unit) {
			return true
		}
	}
	return false
}

func TestEveryCommandTakesJSONAndItsProject(t *testing.T) {
	withoutProject := map[string]bool{"greatminds project presets": true, "greatminds agent presets": true}
	everyCommand(t, func(cmd *cobra.Command) {
		if len(cmd.Commands()) == 0 && !withoutProject[cmd.CommandPath()] && cmd.Flag("project-dir") == nil {
			t.Errorf("%s has no --project-dir", cmd.CommandPath())
		}
		if cmd.Flag("json") == nil && cmd.InheritedFlags().Lookup("json") == nil {
			t.Errorf("%s has no --json", cmd.CommandPath())
		}
	})
}

func TestListFlagsTakeEveryForm(t *testing.T) {
	for _, c := range []struct {
		given []string
		want  string
	}{{nil, ""}, {[]string{"a"}, "a"}, {[]string{"a,b", " c "}, "a|b|c"}, {[]string{"[a, b]"}, "a|b"}, {[]string{"", ","}, ""}} {
		if got := strings.Join(split(c.given), "|"); got != c.want {
			t.Errorf("%q: got %q, want %q", c.given, got, c.want)
		}
	}
}

func TestShortAndFullIDsMeanTheSameTask(t *testing.T) {
	for _, c := range []struct {
		one, other string
		same       bool
	}{{"1", "0001-add", true}, {"0001", "1", true}, {"0001-add", "0001-add", true}, {"0012-x", "1", false}, {"", "0001-add", false},
		{"chat-1", "1", false}, {"chat-1", "chat-1", true}, {"00012", "12", false}} {
		if got := sameTask(c.one, c.other); got != c.same {
			t.Errorf("%q and %q: got %v, want %v", c.one, c.other, got, c.same)
		}
	}
}
