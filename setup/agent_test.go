package setup_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/internal/refusal"
	"greatminds/setup"
)

// programs makes a folder with these programs, and a look that finds nothing else but the system's.
func programs(t *testing.T, env map[string]string, files map[string]string) (dir string, l setup.Look) {
	t.Helper()
	dir = realTemp(t)
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
		if err := os.Chmod(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir, setup.Look{Patience: 20 * time.Second, Getenv: func(name string) string {
		if name == "PATH" {
			return dir + ":/usr/bin:/bin"
		}
		return env[name]
	}}
}

func says(version string) string { return "#!/bin/sh\necho " + version + "\n" }

func addAgents(t *testing.T, dir string, l setup.Look, names ...string) (setup.AgentsReport, error) {
	t.Helper()
	q := setup.Request{ProjectDir: dir, Disk: durable.NewDisk(nil), Git: onBranch("main")}
	return setup.RunWithAgents(t.Context(), q, names, l)
}

// Where a manifest goes, in files that are written in every way that people write them.
func TestAnAgentIsAddedToEveryShapeOfContract(t *testing.T) {
	_, look := programs(t, nil, map[string]string{"kimi": says("1.40.0"), "vibe-acp": says("3.0.2")})
	entry := "  a: {transport: acp, argv: [my-agent], adapter_version: \"1\", harness_version: \"1\"}\n"
	for name, c := range map[string]struct{ text, before, after string }{
		"none yet":                       {"version: 1\nagents: {} # none\nbindings: {}\n", "agents: # none\n", "bindings: {}\n"},
		"behind the last":                {"version: 1\nagents:\n" + entry + "bindings: {}\n", "agents:\n" + entry, "bindings: {}\n"},
		"before a comment of what comes": {"version: 1\nagents:\n" + entry + "\n# next\nbindings: {}\n", "agents:\n" + entry, "\n# next\nbindings: {}\n"},
		"at the end of the file":         {"version: 1\nbindings: {}\nagents:\n" + entry, entry, ""},
		"without a last line end":        {"version: 1\nbindings: {}\nagents:\n" + strings.TrimSuffix(entry, "\n"), entry, ""},
		"an empty one at the end":        {"version: 1\nbindings: {}\nagents: {}", "agents:\n", ""},
		"blank lines at the end":         {"version: 1\nbindings: {}\nagents:\n" + entry + "\n\n", entry, "\n\n"},
		"agents first":                   {"agents:\n" + entry + "version: 1\nbindings: {}\n", "agents:\n" + entry, "version: 1\nbindings: {}\n"},
		"a mark of byte order":           {"\ufeffversion: 1\nagents:\n" + entry + "bindings: {}\n", "agents:\n" + entry, "bindings: {}\n"},
		"text in a block of its own": {"version: 1\nagents:\n  a:\n    transport: acp\n    argv:\n      - |\n        x\n        # y\n    adapter_version: v\n    harness_version: |\n      w\n      # no comment\nbindings: {}\n",
			"      w\n      # no comment\n", "bindings: {}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			p := project(t, c.text)
			was, err := contract.Load(p, "", contract.EmbeddedSchema())
			if err != nil {
				t.Fatal(err)
			}
			report, err := addAgents(t, p.Root, look, "kimi", "vibe")
			if err != nil {
				t.Fatal(err)
			}
			text := read(t, p.ExecutionPath())
			if !strings.Contains(text, c.before+"  # found by") || !strings.HasSuffix(text, "harness_version: '3.0.2'\n"+c.after) {
				t.Errorf("became\n%s", text)
			}
			now, err := contract.Load(p, "", contract.EmbeddedSchema())
			if err != nil || now.SHA256() != report.ExecutionSHA256 || len(now.Agents) != len(was.Agents)+2 || report.Agents != len(now.Agents) {
				t.Errorf("%d agents, %v", report.Agents, err)
			}
			if a, ok := now.Agent("kimi"); !ok || a.HarnessVersion != "1.40.0" || a.Argv[len(a.Argv)-1] != "acp" {
				t.Errorf("kimi is %+v", a)
			}
		})
	}
}

// A file that would not be the same afterwards is refused, and so is one that cannot be read.
func TestAContractThatCannotBeAddedToIsLeftAlone(t *testing.T) {
	_, look := programs(t, nil, map[string]string{"kimi": says("1.40.0")})
	for name, c := range map[string]struct {
		text string
		code refusal.Code
	}{
		"all on one line":       {`{version: 1, agents: {}, bindings: {}}` + "\n", refusal.CodeSetupEdit},
		"agents on one line":    {"version: 1\nagents: {a: {transport: acp, argv: [x], adapter_version: v, harness_version: v}}\nbindings: {}\n", refusal.CodeSetupEdit},
		"braces on their own":   {"version: 1\nagents:\n  {}\nbindings: {}\n", refusal.CodeSetupEdit},
		"braces over two lines": {"version: 1\nagents: {\n  }\nbindings: {}\n", refusal.CodeSetupEdit},
		"not valid":             {"version: 1\nagents: {}\n", refusal.CodeContractInvalid},
		"there already":         {"version: 1\nagents:\n  kimi: {transport: acp, argv: [x], adapter_version: v, harness_version: v}\nbindings: {}\n", refusal.CodeAgentExists},
	} {
		t.Run(name, func(t *testing.T) {
			p := project(t, c.text)
			before := picture(t, p.Root)
			_, err := addAgents(t, p.Root, look, "kimi")
			refused(t, err, c.code, refusal.Invalid, p.ExecutionPath())
			if d := cmp.Diff(before, picture(t, p.Root)); d != "" {
				t.Errorf("a refusal wrote (-before +after):\n%s", d)
			}
		})
	}
}

// Case C112: what argv names must be found again by a daemon whose PATH is a service's.
func TestArgvIsFoundUnderAServicesPath(t *testing.T) {
	dir, look := programs(t, map[string]string{"PI_ACP_PI_COMMAND": "my-pi"}, map[string]string{
		"node":             "#!/bin/sh\nwhile [ $# -gt 1 ]; do shift; done\n[ \"$1\" = --version ] && echo 1.2.3\n",
		"gemini":           "#!/usr/bin/env node\n",
		"qwen":             "#!/usr/bin/env -S node --no-warnings\n",
		"codex-acp":        "#!/usr/bin/env sh\necho 2.6.0\n",
		"opencode":         "\x7fELF no script, and no program either",
		"pi-acp":           says("0.0.34"),
		"my-pi":            says("0.87.1"),
		"claude-agent-acp": "#!/usr/bin/env no-such-interpreter\n",
	})
	names := []string{"gemini", "qwen", "codex", "opencode", "pi", "claude"}
	report, err := addAgents(t, repository(t, "main"), look, names...)
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	want := [][]string{{at("node"), at("gemini"), "--acp"}, {at("node"), "--no-warnings", at("qwen"), "--acp"}, {at("codex-acp")},
		{at("opencode"), "acp"}, {at("pi-acp")}, {at("claude-agent-acp")}}
	versions := []string{"1.2.3 1.2.3", "1.2.3 1.2.3", "2.6.0 bundled with 2.6.0", "unknown unknown", "0.0.34 0.87.1", "unknown bundled with unknown"}
	for i, m := range report.Manifests {
		if d := cmp.Diff(want[i], m.Argv); d != "" {
			t.Errorf("%s (-want +got):\n%s", names[i], d)
		}
		if got := m.AdapterVersion + " " + m.HarnessVersion; got != versions[i] {
			t.Errorf("%s: got versions %s, want %s", names[i], got, versions[i])
		}
		if unknown := strings.Contains(versions[i], "unknown"); unknown != strings.Contains(leftOut(m), "adapter_version") {
			t.Errorf("%s left out %s", names[i], leftOut(m))
		}
	}
	if notes := strings.Join(report.Manifests[4].Notes, "\n"); !strings.Contains(notes, "a daemon whose PATH lacks "+dir) {
		t.Errorf("pi's notes do not say where its harness is found: %s", notes)
	}
}

func leftOut(m setup.Manifest) string {
	var b strings.Builder
	for _, l := range m.LeftOut {
		b.WriteString(l.What + ": " + l.Why + "\n")
	}
	return b.String()
}

// A variable goes in by name when the agent knows it and it is set, and a method when its key is.
func TestOnlyWhatIsSetGoesIn(t *testing.T) {
	files := map[string]string{"gemini": says("0.61.0"), "codex-acp": says("2.6.0"), "kimi": says("1.40.0")}
	env := map[string]string{"OPENAI_API_KEY": "canary-1", "GOOGLE_GEMINI_BASE_URL": "canary-2", "UNRELATED_TOKEN": "canary-3"}
	_, look := programs(t, env, files)
	dir := repository(t, "main")
	report, err := addAgents(t, dir, look, "gemini", "codex", "kimi")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]string{{"GOOGLE_GEMINI_BASE_URL"}, {"OPENAI_API_KEY"}, {}} {
		if d := cmp.Diff(want, report.Manifests[i].Environment); d != "" {
			t.Errorf("%s (-want +got):\n%s", report.Manifests[i].Agent, d)
		}
	}
	gemini, codex := report.Manifests[0], report.Manifests[1]
	if gemini.AuthMethod != nil || !strings.Contains(leftOut(gemini), "auth_method gemini-api-key: GEMINI_API_KEY is not set") {
		t.Errorf("gemini's method is %v; left out:\n%s", gemini.AuthMethod, leftOut(gemini))
	}
	if codex.AuthMethod != nil || !strings.Contains(leftOut(codex), "in the place of any login there") {
		t.Errorf("codex's method is %v; left out:\n%s", codex.AuthMethod, leftOut(codex))
	}
	for name, text := range picture(t, dir) {
		if strings.Contains(text, "canary") || strings.Contains(text, "UNRELATED") {
			t.Errorf("%s holds what it must not: %s", name, text)
		}
	}
}
