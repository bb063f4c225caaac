package sourceid_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"greatminds/internal/sourceid"
)

// BenchmarkTree identifies a Git tree of 5000 files, 4 KiB each.
func BenchmarkTree(b *testing.B) {
	dir := b.TempDir()
	text := []byte(strings.Repeat("0123456789abcde\n", 256))
	for i := range 5000 {
		path := filepath.Join(dir, fmt.Sprint(i/100), fmt.Sprint(i))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}} {
		if _, code, err := git(b.Context(), dir, args...); err != nil || code != 0 {
			b.Fatal(code, err)
		}
	}
	for b.Loop() {
		if _, err := sourceid.Tree(b.Context(), dir, git, nil); err != nil {
			b.Fatal(err)
		}
	}
}
