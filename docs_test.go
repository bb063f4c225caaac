package greatminds_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// limits are what a reader of the README has to be told of what this program does not do.
var limits = []struct {
	name  string
	words []string // in this order, within one point of the list
}{
	{"E-065 redaction is best effort", []string{"Redaction of what agents write is best effort"}},
	{"E-065 policies govern what is asked for", []string{"Permission policies govern what an agent asks for", "no sandbox", "without asking is not intercepted"}},
	{"E-065 the file system is shared", []string{"share one file system", "cooperative boundary"}},
	{"E-071 an agent's own settings count", []string{"own approval mode", "cached settings", "sandbox", "set beside the policy", "tested"}},
	{"E-219 credentials prevent mistakes", []string{"credential prevents mistakes", "does not isolate", "can also rewrite its store"}},
	{"E-225 fixtures prove no agent", []string{"scripted agents", "valid execution.yaml", "no agent", "run live, by package and version", "tools/realagents"}},
	{"E-652 events are bounded, the disk is not", []string{"max_runtime_events", "bounds how many events are kept, and no disk use", "receipts", "evidence", "journal policy"}},
	{"E-550 a cost budget is reactive", []string{"cost budget", "reactive limit", "no spending guarantee", "after the fact", "first prompt of a session can go past it"}},
	{"E-538 a reported cost is no bill", []string{"cost is what it reports for the session so far", "no billing statement"}},
	{"E-543 usage is as decoded", []string{"values are as decoded from the protocol", "not a claim about the exact values on the wire"}},
	{"E-535 a progress budget measures no quality", []string{"A progress budget", "counts turns that move no task", "not a measure of code quality", "does not tell whether a change of text means anything"}},
	{"E-593 stages claim nothing", []string{"seconds since its claim", "claim no progress, no visible text, no validation and no approval", "no latencies of single messages"}},
	{"E-664 a protocol record is no evidence", []string{"`protocol` record approve a tool or stand in for a decision or a command's evidence"}},
	{"E-060 consumed is no success", []string{"A consumed permission says that the answer was handed over, not that the tool succeeded"}},
}

func TestTheReadmeSaysWhatIsNotPromised(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "## What it does not promise\n")
	if !found {
		t.Fatal("the README has no section of what is not promised")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var points []string
	for _, p := range strings.Split(section, "\n- ") {
		points = append(points, strings.Join(strings.Fields(p), " "))
	}
	for _, limit := range limits {
		t.Run(limit.name, func(t *testing.T) {
			var quoted []string
			for _, w := range limit.words {
				quoted = append(quoted, regexp.QuoteMeta(w))
			}
			said := regexp.MustCompile(strings.Join(quoted, ".*"))
			for _, p := range points {
				if said.MatchString(p) {
					return
				}
			}
			t.Errorf("no point of the list says %q", limit.words)
		})
	}
}

// No text that this program prints speaks of a sandbox of its own, or calls an agent compatible,
// certified or supported: neither is known from fixtures or from configuration.
//
// E-065 E-225
func TestNoOutputClaimsASandboxOrACompatibleAgent(t *testing.T) {
	claims := regexp.MustCompile(`(?i)sandboxed|in a sandbox|isolated from|\bcompatible (agent|harness|with)|\b(certified|supported) (agent|harness)|verified (agent|harness)`)
	texts := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || path == "tools" || path == "fixtures" || strings.HasPrefix(d.Name(), ".") && path != ".") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				texts++
				if found := claims.FindString(lit.Value); found != "" {
					t.Errorf("%s: a text claims %q: %s", path, found, lit.Value)
				}
			}
			return true
		})
		return nil
	})
	if err != nil || texts < 1000 {
		t.Errorf("read %d texts, %v", texts, err)
	}
}
