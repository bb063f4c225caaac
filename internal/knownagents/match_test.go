package knownagents_test

import (
	"slices"
	"strings"
	"testing"

	"greatminds/internal/knownagents"
)

func TestMatch(t *testing.T) {
	for name, c := range map[string]struct {
		argv    string
		id, pkg string
		certain bool
	}{
		"a program by its name":                {"claude-agent-acp", "claude", "@agentclientprotocol/claude-agent-acp", false},
		"a program by its path":                {"/x/.nvm/versions/node/v22.1.0/bin/gemini --acp", "gemini", "@google/gemini-cli", true},
		"a package behind node":                {"node /x/node_modules/@zed-industries/claude-agent-acp/dist/index.js", "claude", "@zed-industries/claude-agent-acp", true},
		"a package behind node with a flag":    {"/usr/bin/node --no-warnings /x/node_modules/@qwen-code/qwen-code/cli.js --acp", "qwen", "@qwen-code/qwen-code", true},
		"a package for one platform":           {"/x/node_modules/@zed-industries/codex-acp-linux-x64/bin/codex-acp", "codex", "@zed-industries/codex-acp", true},
		"a package by npx":                     {"npx -y @agentclientprotocol/codex-acp@2.6.0", "codex", "@agentclientprotocol/codex-acp", true},
		"a package by uvx":                     {"uvx --from kimi-cli==1.40.0 kimi acp", "kimi", "kimi-cli", true},
		"a program behind node":                {"/usr/bin/node /usr/bin/qwen --acp", "qwen", "@qwen-code/qwen-code", true},
		"a native program in its package":      {"/x/node_modules/opencode-linux-x64/bin/opencode acp", "opencode", "opencode-ai", true},
		"an environment's program":             {"/x/venv/bin/vibe-acp", "vibe", "mistral-vibe", true},
		"a module":                             {"python3.13 -I /x/bin/fast-agent acp", "fast-agent", "fast-agent-acp", true},
		"an agent without a preset":            {"pi-acp", "pi", "pi-acp", true},
		"a value of a flag is no program":      {"my-agent --model gemini", "", "", false},
		"an argument is no program":            {"my-agent gemini", "", "", false},
		"a longer name":                        {"opencoder acp", "", "", false},
		"a package's name inside another's":    {"node /x/node_modules/not-pi-acp/index.js", "", "", false},
		"the maker's program without ACP":      {"codex", "", "", false},
		"a name that begins like a package's":  {"npx pi-acp-extras", "", "", false},
		"nothing":                              {"", "", "", false},
		"a folder that is called like a agent": {"/opt/gemini/bin/my-agent", "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			a, e, certain, ok := knownagents.Match(strings.Fields(c.argv))
			if a.ID != c.id || e.Package != c.pkg || certain != c.certain || ok != (c.id != "") {
				t.Errorf("%s: got %s of %s, certain %v, %v", c.argv, a.ID, e.Package, certain, ok)
			}
		})
	}
}

func TestSilence(t *testing.T) {
	for _, c := range []struct{ argv, mode, want string }{
		{"claude-agent-acp", "", "begins in mode auto"},
		{"claude-agent-acp", "default", ""},
		{"claude-agent-acp", "acceptEdits", "mode acceptEdits"},
		{"claude-agent-acp", "plan", ""}, // not known to be silent
		{"node /x/node_modules/@zed-industries/claude-agent-acp/dist/index.js", "", ""},
		{"qwen", "", "begins in mode auto"},
		{"gemini", "", ""},
		{"gemini", "yolo", "mode yolo"},
		{"kimi acp", "", ""},
		{"opencode acp", "", ""},
		{"pi-acp", "", "never asks"},
		{"pi-acp", "off", "never asks"},
		{"fast-agent acp", "agent", "never asks"},
		{"vibe-acp", "", "begins in mode accept-edits"},
		{"codex-acp", "", "begins in mode agent"},
	} {
		a, e, _, ok := knownagents.Match(strings.Fields(c.argv))
		if !ok {
			t.Fatalf("%s is not known", c.argv)
		}
		if got := a.Silence(e, c.mode); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s in mode %q: got %q, want %q", c.argv, c.mode, got, c.want)
		}
	}
}

// What one line of the table says must fit what another says.
func TestTheTableIsConsistent(t *testing.T) {
	var ids, names, packages []string
	for _, a := range knownagents.All() {
		ids = append(ids, a.ID)
		if len(a.Editions) == 0 || a.Program == "" || a.Install == "" || a.Title == "" {
			t.Errorf("%s: an edition, a program, a title or an install command is missing", a.ID)
		}
		if (a.Asking == knownagents.AsksInMode) != (a.Mode != "") || slices.Contains(a.Silent, a.Mode) {
			t.Errorf("%s asks %s, in mode %q, and is silent in %q", a.ID, a.Asking, a.Mode, a.Silent)
		}
		if !strings.Contains(a.Install, a.Editions[0].Package) || !strings.Contains(a.Install, a.Editions[0].Measured) {
			t.Errorf("%s: %q installs another package than the one that was measured", a.ID, a.Install)
		}
		if a.Login.Method != "" && len(a.Login.Credentials) == 0 {
			t.Errorf("%s: method %s needs no credential", a.ID, a.Login.Method)
		}
		for _, e := range a.Editions {
			names, packages = append(names, e.Name), append(packages, e.Package)
			if e.DefaultAsks && slices.Contains(a.Silent, e.Default) {
				t.Errorf("%s both asks and is silent in mode %s", e.Package, e.Default)
			}
			if found, same, ok := knownagents.ByName(e.Name); !ok || found.ID != a.ID || same.Package != e.Package {
				t.Errorf("%s is not found by the name %s", e.Package, e.Name)
			}
		}
	}
	if !slices.IsSorted(ids) {
		t.Errorf("not in order: %v", ids)
	}
	for _, list := range [][]string{ids, names, packages} {
		slices.Sort(list)
		if len(slices.Compact(slices.Clone(list))) != len(list) {
			t.Errorf("something stands twice in %v", list)
		}
	}
	if want := []string{"claude", "codex", "gemini", "kimi", "opencode", "pi", "qwen", "vibe"}; !slices.Equal(knownagents.IDs(), want) {
		t.Errorf("got presets %v", knownagents.IDs())
	}
	if _, ok := knownagents.Find("fast-agent"); ok {
		t.Error("fast-agent has a preset")
	}
}
