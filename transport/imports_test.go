package transport_test

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// imports returns what a Go file imports.
func imports(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, i := range parsed.Imports {
		paths = append(paths, strings.Trim(i.Path.Value, `"`))
	}
	return paths
}

const sdk = "github.com/coder/acp-go-sdk"

// E-221 E-224: the client frames and correlates through the pinned SDK; the agent's side of
// these tests shares no code with it. Only the benchmark compares with the bare SDK.
func TestWhoUsesTheSDK(t *testing.T) {
	t.Parallel()
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)` + regexp.QuoteMeta(sdk) + ` v0\.13\.5( |$)`).Match(mod) {
		t.Error("go.mod does not pin the SDK's version")
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	used := false
	for _, file := range files {
		uses := slices.Contains(imports(t, file), sdk)
		test := strings.HasSuffix(file, "_test.go")
		used = used || uses && !test
		if uses && test && file != "bench_test.go" {
			t.Errorf("%s: the tests' own agent must not use the SDK", file)
		}
	}
	if !used {
		t.Error("the client does not use the SDK")
	}
}
