package permission

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"greatminds/transport"
)

// place is a workspace, a folder beside it, and links of every kind between them.
type place struct{ base, ws string }

func newPlace(t *testing.T) place {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	p := place{base, filepath.Join(base, "ws")}
	for _, dir := range []string{"ws/sub/deep", "ws/.git/hooks", "ws/coordination", "ws/.greatminds/.runtime", "ws/.worktrees/x", "out/sub",
		"ws/app/.greatminds/.runtime", "ws/app/.worktrees/x", "ws/app/coordination", "ws/lib/deep/.git", "ws/lib/coordination", "ws/old/coordination/.runtime"} {
		must(t, os.MkdirAll(filepath.Join(base, dir), 0o755))
	}
	for _, file := range []string{"ws/a.txt", "ws/sub/b.txt", "out/x", "out/linked", "ws/coordination/execution.yaml", "ws/app/coordination/execution.yaml",
		"ws/old/coordination/execution.yaml", "ws/lib/coordination/lock.go"} {
		must(t, os.WriteFile(filepath.Join(base, file), nil, 0o644))
	}
	for name, target := range map[string]string{"leak": "../out", "leak-sub": "../out/sub", "dangling": "../none", "new-inside": "sub/none", "inner": "sub",
		"absolute": p.ws + "/a.txt", "loop": "loop", "file-leak": "../out/x", "over": "leak/../ws/a.txt", "gitlink": ".git"} {
		must(t, os.Symlink(target, filepath.Join(p.ws, name)))
	}
	must(t, os.Link(filepath.Join(base, "out/linked"), filepath.Join(p.ws, "hard")))
	must(t, syscall.Mkfifo(filepath.Join(p.ws, "pipe"), 0o600))
	return p
}

// locations is a tool call that names these files; WS stands for the workspace, BASE for the folder around it.
func locations(paths ...string) string {
	var l []map[string]string
	for _, p := range paths {
		l = append(l, map[string]string{"path": p})
	}
	b, _ := json.Marshal(map[string]any{"locations": l})
	return string(b)
}

func (p place) inside(kind, call string) bool {
	call = replaceAll(call, map[string]string{"WS": p.ws, "BASE": p.base})
	return Inside(p.ws, transport.PermissionRequest{ToolKind: kind, ToolCall: json.RawMessage(call)})
}

func replaceAll(s string, by map[string]string) string {
	return os.Expand(s, func(name string) string {
		if v, ok := by[name]; ok {
			return v
		}
		return "$" + name
	})
}

// E-070
func TestInsideDecidesByResolvedPaths(t *testing.T) {
	p := newPlace(t)
	input := func(raw string) string { return `{"locations":[{"path":"a.txt"}],"rawInput":` + raw + `}` }
	for _, c := range []struct {
		name, kind, call string
		want             bool
	}{
		{"a file inside", "edit", locations("${WS}/a.txt"), true},
		{"a missing file inside", "edit", locations("${WS}/new/deep.txt"), true},
		{"a relative path", "read", locations("a.txt"), true},
		{"a relative path with a dot", "read", locations("./sub/../a.txt"), true},
		{"several inside", "edit", locations("a.txt", "sub/b.txt", "${WS}/c"), true},
		{"outside", "edit", locations("${BASE}/out/x"), false},
		{"dots that climb out", "edit", locations("${WS}/sub/../../out/x"), false},
		{"relative dots that climb out", "edit", locations("../out/x"), false},
		{"dots behind what is missing", "edit", locations("none/../a.txt"), false},
		{"one of several outside", "edit", locations("a.txt", "/etc/passwd"), false},
		{"a sibling with the same prefix", "edit", locations("${WS}-other/x"), false},
		{"a folder below a file", "edit", locations("a.txt/b"), false},

		{"a link that stays inside", "edit", locations("${WS}/inner/x"), true},
		{"an absolute link that stays inside", "read", locations("absolute"), true},
		{"a link that leads out", "edit", locations("${WS}/leak/x"), false},
		{"a file that is a link out", "read", locations("file-leak"), false},
		{"a new file behind a link out", "edit", locations("leak/new"), false},
		{"a dangling link out", "edit", locations("dangling"), false},
		{"a dangling link that stays inside", "edit", locations("new-inside"), true},
		{"a link in a circle", "edit", locations("loop"), false},
		{"dots behind a link, as the kernel goes", "edit", locations("leak-sub/../x"), false},
		{"dots behind a link, as text is shortened", "edit", locations("${WS}/leak/../../out/x"), false},
		{"a link whose way leads out and in", "read", locations("over"), true},
		{"another name of a file outside", "edit", locations("hard"), false},
		{"another name, only read", "read", locations("hard"), true},
		{"another name, only removed", "delete", locations("hard"), true},
		{"a pipe", "read", locations("pipe"), false},

		{"the workspace itself, deleted", "delete", locations("${WS}"), false},
		{"the workspace itself, searched", "search", locations("${WS}"), true},
		{"a folder, edited", "edit", locations("sub"), false},
		{"a folder, deleted", "delete", locations("sub"), true},
		{"git's own folder", "edit", locations(".git/hooks/pre-commit"), false},
		{"git's own folder in capitals", "edit", locations(".GIT/hooks/pre-commit"), false},
		{"git's own folder by a link", "edit", locations("gitlink/config"), false},
		{"git's own folder in depth", "read", locations("sub/.git/config"), false},
		{"the supervisor's records", "read", locations(".greatminds/.runtime/state.json"), false},
		{"another task's worktree", "edit", locations(".worktrees/x/a"), false},
		{"the contract of all agents, changed", "edit", locations("coordination/execution.yaml"), false},
		{"the contract of all agents, read", "read", locations("coordination/execution.yaml"), true},

		{"the records of a project in it", "edit", locations("app/.greatminds/.runtime/state.json"), false},
		{"the records of a project in it, read", "read", locations("app/.greatminds/.runtime/state.json"), false},
		{"a worktree of a project in it", "edit", locations("app/.worktrees/x/a"), false},
		{"the contract of a project in it, changed", "edit", locations("app/coordination/execution.yaml"), false},
		{"the contract of a project in it, read", "read", locations("app/coordination/execution.yaml"), true},
		{"the records of the old layout, read", "read", locations("old/coordination/.runtime/state.json"), false},
		{"a folder of that name that is no contract", "edit", locations("lib/coordination/lock.go"), true},
		{"a folder that holds a project, deleted", "delete", locations("app"), false},
		{"a folder that holds a repository, moved", "move", locations("lib", "lib2"), false},
		{"a folder that holds neither, moved", "move", locations("sub/deep", "sub/deeper"), true},

		{"a home folder", "edit", locations("~/.ssh/authorized_keys"), false},
		{"another's home folder", "edit", locations("~root/x"), false},
		{"a variable", "edit", locations("$HOME/x"), false},
		{"a file URL inside", "edit", locations("file://${WS}/a.txt"), true},
		{"a file URL with escapes", "read", locations("file://${WS}/sub/%62.txt"), true},
		{"a file URL outside", "read", locations("file:///etc/passwd"), false},
		{"a file URL outside, escaped", "read", locations("file://${WS}/%2e%2e/out/x"), false},
		{"a file URL without slashes", "read", locations("file:/etc/passwd"), false},
		{"a file URL of another host", "read", locations("file://host${WS}/a.txt"), false},
		{"a web address", "read", locations("https://example.org/a"), false},
		{"another process's place", "read", locations("/proc/self/cwd/a.txt"), false},
		{"an empty path", "read", locations(""), false},
		{"a path with a line end", "read", locations("a\nb"), false},
		{"a longer path than there are", "read", locations(strings.Repeat("a/", 2500)), false},

		{"moved inside", "move", locations("a.txt", "sub/c.txt"), true},
		{"moved out", "move", locations("a.txt", "${BASE}/out/c.txt"), false},
		{"moved to where nobody says", "move", locations("a.txt"), false},
		{"moved to where nobody says, named twice", "move", `{"locations":[{"path":"${WS}/a.txt"}],"rawInput":{"path":"./a.txt"}}`, false},
		{"moved to what the input says", "move", input(`{"destination":"sub/new.txt"}`), true},
		{"moved out by what the input says", "move", input(`{"to":"${BASE}/out/a.txt"}`), false},

		{"no location", "edit", `{}`, false},
		{"no locations in the list", "edit", `{"locations":[]}`, false},
		{"a location without a path", "edit", `{"locations":[{"line":3}]}`, false},
		{"a location that is a number", "edit", `{"locations":[{"path":7}]}`, false},
		{"locations by another name", "edit", `{"Locations":[{"path":"a.txt"}]}`, false},
		{"a path by another name", "edit", `{"locations":[{"Path":"a.txt"}]}`, false},
		{"a shell command", "execute", locations("a.txt"), false},
		{"a fetch", "fetch", locations("a.txt"), false},
		{"an unknown kind", "teleport", locations("a.txt"), false},
		{"a kind in capitals", "Edit", locations("a.txt"), false},
		{"no kind", "", locations("a.txt"), false},
		{"not JSON", "edit", `{`, false},

		{"a diff inside", "edit", `{"locations":[{"path":"a.txt"}],"content":[{"type":"diff","path":"${WS}/a.txt"}]}`, true},
		{"a diff that names another file", "edit", `{"locations":[{"path":"a.txt"}],"content":[{"type":"diff","path":"/etc/x"}]}`, false},
		{"a diff without a file", "edit", `{"locations":[{"path":"a.txt"}],"content":[{"type":"diff"}]}`, false},
		{"text beside", "edit", `{"locations":[{"path":"a.txt"}],"content":[{"type":"content","content":{"type":"text","text":"/etc/x"}}]}`, true},
		{"a terminal beside", "edit", `{"locations":[{"path":"a.txt"}],"content":[{"type":"terminal","terminalId":"t"}]}`, false},

		{"input inside", "edit", input(`{"file_path":"${WS}/a.txt","old_string":"/etc/a","new_string":"// b"}`), true},
		{"input that names another file", "edit", input(`{"edits":[{"file_path":"/etc/x"}]}`), false},
		{"input in capitals", "edit", input(`{"FILE_PATH":"/etc/x"}`), false},
		{"input in camel case", "edit", input(`{"absolutePath":"/etc/x"}`), false},
		{"input with dashes", "edit", input(`{"target-file":"../out/x"}`), false},
		{"a list of files", "edit", input(`{"paths":["a.txt","/etc/x"]}`), false},
		{"files as names of members", "edit", input(`{"changes":{"/etc/x":{"type":"update"}}}`), false},
		{"files inside as names of members", "edit", input(`{"changes":{"${WS}/a.txt":{"type":"update","move_path":null}}}`), true},
		{"an unknown member that leads out", "edit", input(`{"where":"/etc/x"}`), false},
		{"an unknown member that climbs", "edit", input(`{"where":"sub/../../out"}`), false},
		{"an unknown member with text", "edit", input(`{"mode":"fast","limit":3,"deep":[true,null]}`), true},
		{"a command in an edit", "edit", input(`{"command":"rm -rf ~"}`), false},
		{"a list of words to run", "edit", input(`{"argv":["rm","a"]}`), false},
		{"an editor's verb", "edit", input(`{"command":"str_replace","path":"a.txt"}`), true},
		{"relative to the workspace", "read", input(`{"cwd":"${WS}"}`), true},
		{"relative to another folder", "read", input(`{"cwd":"${WS}/sub"}`), false},
		{"relative to a folder outside", "read", input(`{"cwd":"${BASE}/out"}`), false},
		{"a patch inside", "edit", input(`{"input":"*** Begin Patch\n*** Update File: sub/b.txt\n+x\n*** End Patch"}`), true},
		{"a patch of another file", "edit", input(`{"patch":"*** Begin Patch\n*** Add File: /etc/x\n+x\n*** End Patch"}`), false},
		{"a patch that moves out", "edit", input(`{"patch":"*** Update File: a.txt\n*** Move to: ../out/x\n"}`), false},
		{"input that is a path", "read", input(`"/etc/x"`), false},
		{"input that is no JSON", "read", `{"locations":[{"path":"a.txt"}],"rawInput":}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := p.inside(c.kind, c.call); got != c.want {
				t.Fatalf("got %v, want %v", got, c.want)
			}
		})
	}
}

// What a path leads to may change between two questions; each is decided by what stands there then.
func TestInsideLooksAgainAtEveryQuestion(t *testing.T) {
	p := newPlace(t)
	if !p.inside("edit", locations("sub/deep/f")) {
		t.Fatal("a file inside is not")
	}
	must(t, os.Remove(filepath.Join(p.ws, "sub/deep")))
	must(t, os.Symlink(filepath.Join(p.base, "out"), filepath.Join(p.ws, "sub/deep")))
	if p.inside("edit", locations("sub/deep/f")) {
		t.Fatal("a folder that became a link out still counts as inside")
	}
	must(t, os.Rename(p.ws, p.ws+"-gone"))
	if p.inside("read", locations("a.txt")) {
		t.Fatal("a workspace that is gone holds a file")
	}
	must(t, os.Symlink(p.ws+"-gone", p.ws))
	if !p.inside("read", locations("a.txt")) || !p.inside("read", locations(p.ws+"-gone/a.txt")) {
		t.Error("a workspace that is named by a link holds nothing")
	}
}

// More paths than a question may name are a person's to look at, and so is what is nested too deep.
func TestInsideHasBounds(t *testing.T) {
	p := newPlace(t)
	many := make([]string, maxPaths+1)
	for i := range many {
		many[i] = "a.txt"
	}
	if !p.inside("read", locations(many[1:]...)) || p.inside("read", locations(many...)) {
		t.Error("the bound of the number of paths does not hold")
	}
	deep := `1`
	for range maxDepth + 2 {
		deep = "[" + deep + "]"
	}
	if p.inside("read", `{"locations":[{"path":"a.txt"}],"rawInput":`+deep+`}`) {
		t.Error("an input of any depth is read")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
