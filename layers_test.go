// Package greatminds_test keeps the rooms apart: imports point down only.
package greatminds_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// mayImport says, for each room, which other rooms it may import. Rooms below internal are open
// to all; what they may import themselves is listed like any other. A room ending in "/..." speaks
// for all folders below it.
var mayImport = map[string][]string{
	"contract":       nil,
	"tasks":          {"contract"},
	"runstore":       {"contract"},
	"transport":      nil,
	"commands":       {"runstore", "contract"},
	"setup":          {"contract", "tasks"},
	"supervisor":     {"contract", "tasks", "runstore", "transport", "commands", "supervisor/..."},
	"supervisor/...": {"contract", "tasks", "runstore", "transport", "commands", "supervisor/..."},
	"demo":           {"setup", "supervisor/control", "fixtures/agent", "fixtures/sample", "contract"},
	"cmd/...":        {"contract", "tasks", "setup", "supervisor", "supervisor/...", "runstore", "demo", "mcp", "cmd/cli"},
	"fixtures/...":   {"fixtures/..."},
	"tools/...":      {"*"},
	"internal/...":   nil,
	"mcp":            {"supervisor/control"},
}

// internalMay lists the few imports between rooms below internal.
var internalMay = map[string][]string{
	"internal/durable":           {"internal/refusal"},
	"internal/durable/faultdisk": {"internal/durable"},
	"internal/durable/powercut":  {"internal/durable"},
	"internal/execgate":          {"internal/durable", "internal/refusal", "internal/execgate/entry", "internal/execgate/keep", "internal/execgate/proc"},
	"internal/execgate/keep":     {"internal/execgate/entry", "internal/execgate/proc"},
	"internal/execgate/proc":     {"internal/execgate/entry"},
	"internal/sourceid":          {"internal/refusal", "internal/execgate"},
	"internal/yamldoc":           {"internal/refusal"},
}

const module = "greatminds/"

func TestImportsPointDown(t *testing.T) {
	files := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != "." && (strings.HasPrefix(name, ".") || name == "testdata") {
			return filepath.SkipDir
		}
		// Tests may look at anything: they check rooms from outside.
		if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		files++
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		from := filepath.ToSlash(filepath.Dir(path))
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if to, ours := strings.CutPrefix(imported, module); ours && !allowed(from, to) {
				t.Errorf("%s: %s may not import %s", path, from, to)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 3 {
		t.Fatalf("looked at %d files only", files)
	}
}

func allowed(from, to string) bool {
	if strings.HasPrefix(from, "internal/") {
		return contains(internalMay[from], to)
	}
	if strings.HasPrefix(to, "internal/") {
		return true
	}
	rules, exact := mayImport[from]
	for prefix := from; !exact && strings.Contains(prefix, "/"); {
		prefix = prefix[:strings.LastIndex(prefix, "/")]
		rules, exact = mayImport[prefix+"/..."]
	}
	return exact && contains(rules, to)
}

func contains(rules []string, to string) bool {
	for _, rule := range rules {
		prefix, tree := strings.CutSuffix(rule, "/...")
		if rule == "*" || rule == to || tree && strings.HasPrefix(to, prefix+"/") {
			return true
		}
	}
	return false
}

func TestTheRuleRefusesWhatPointsUp(t *testing.T) {
	for _, c := range [][2]string{
		{"tasks", "runstore"}, {"contract", "tasks"}, {"transport", "runstore"}, {"runstore", "tasks"},
		{"internal/durable", "contract"}, {"commands", "supervisor"}, {"fixtures/agent", "transport"},
		{"unknown", "contract"}, {"cmd/greatminds", "transport"},
	} {
		if allowed(c[0], c[1]) {
			t.Errorf("%s may import %s", c[0], c[1])
		}
	}
	for _, c := range [][2]string{
		{"supervisor/results", "tasks"}, {"tasks", "internal/durable"}, {"cmd/coordd", "supervisor"}, {"tools/bench", "transport"},
	} {
		if !allowed(c[0], c[1]) {
			t.Errorf("%s may not import %s", c[0], c[1])
		}
	}
}
