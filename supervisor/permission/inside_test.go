package permission

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"greatminds/transport"
)

// E-070
func TestInsideDecidesByResolvedPaths(t *testing.T) {
	base := t.TempDir()
	ws := filepath.Join(base, "ws")
	must(t, os.MkdirAll(filepath.Join(ws, "sub"), 0o755))
	must(t, os.MkdirAll(filepath.Join(base, "out"), 0o755))
	must(t, os.WriteFile(filepath.Join(ws, "a.txt"), nil, 0o644))
	must(t, os.Symlink(filepath.Join(base, "out"), filepath.Join(ws, "leak")))
	must(t, os.Symlink(filepath.Join(base, "none"), filepath.Join(ws, "dangling")))
	must(t, os.Symlink(filepath.Join(ws, "sub"), filepath.Join(ws, "inner")))
	at := func(paths ...string) string {
		var l []map[string]string
		for _, p := range paths {
			l = append(l, map[string]string{"path": p})
		}
		b, _ := json.Marshal(map[string]any{"locations": l})
		return string(b)
	}
	for _, c := range []struct {
		name, kind, call string
		want             bool
	}{
		{"a file inside", "edit", at(filepath.Join(ws, "a.txt")), true},
		{"a missing file inside", "edit", at(filepath.Join(ws, "new/deep.txt")), true},
		{"a relative path", "read", at("a.txt"), true},
		{"a link that stays inside", "edit", at(filepath.Join(ws, "inner/x")), true},
		{"outside", "edit", at(filepath.Join(base, "out/x")), false},
		{"dots that climb out", "edit", at(filepath.Join(ws, "sub/../../out/x")), false},
		{"a link that leads out", "edit", at(filepath.Join(ws, "leak/x")), false},
		{"a dangling link", "edit", at(filepath.Join(ws, "dangling")), false},
		{"one of several outside", "edit", at(filepath.Join(ws, "a.txt"), "/etc/passwd"), false},
		{"the workspace itself", "delete", at(ws), false},
		{"a sibling with the same prefix", "edit", at(ws + "-other/x"), false},
		{"git's own folder", "edit", at(filepath.Join(ws, ".git/hooks/pre-commit")), false},
		{"no location", "edit", `{}`, false},
		{"a shell command", "execute", at(filepath.Join(ws, "a.txt")), false},
		{"an unknown kind", "teleport", at(filepath.Join(ws, "a.txt")), false},
		{"no kind", "", at(filepath.Join(ws, "a.txt")), false},
		{"a diff that names another file", "edit", `{"locations":[{"path":"a.txt"}],"content":[{"type":"diff","path":"/etc/x"}]}`, false},
		{"raw input that names another file", "edit", `{"locations":[{"path":"a.txt"}],"rawInput":{"edits":[{"file_path":"/etc/x"}]}}`, false},
		{"not JSON", "edit", `{`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Inside(ws, transport.PermissionRequest{ToolKind: c.kind, ToolCall: json.RawMessage(c.call)})
			if got != c.want {
				t.Fatalf("got %v, want %v", got, c.want)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
