package permission

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"greatminds/transport"
)

// boundedKinds are the tool kinds whose whole effect lies in the paths they name. A shell
// command, a fetch or a kind we do not know can reach anything, so a person decides those.
var boundedKinds = map[string]bool{"read": true, "edit": true, "delete": true, "move": true, "search": true}

// pathKeys are the members of a tool's raw input in which agents name a file.
var pathKeys = map[string]bool{"path": true, "file_path": true, "filepath": true, "abs_path": true,
	"absolute_path": true, "filename": true, "file": true, "notebook_path": true, "destination": true,
	"source": true, "new_path": true, "old_path": true, "directory": true, "dir": true}

// maxPaths bounds how many paths one question may name and still be decided without a person.
const maxPaths = 256

// toolCall is what the decision reads of a question.
type toolCall struct {
	Locations []struct {
		Path string `json:"path"`
	} `json:"locations"`
	Content []struct {
		Type string `json:"type"`
		Path string `json:"path"`
	} `json:"content"`
	RawInput json.RawMessage `json:"rawInput"`
}

// Inside tells whether everything that the question names lies inside the workspace, with
// every symlink resolved, and its kind can reach nothing else. False means: ask a person.
// E-070.
func Inside(workspace string, r transport.PermissionRequest) bool {
	if !boundedKinds[r.ToolKind] {
		return false
	}
	root, err := filepath.EvalSymlinks(workspace)
	if err != nil {
		return false
	}
	paths, ok := namedPaths(r.ToolCall)
	if !ok || len(paths) == 0 || len(paths) > maxPaths {
		return false
	}
	for _, p := range paths {
		if !below(root, workspace, p) {
			return false
		}
	}
	return true
}

// namedPaths collects every path a question names. It is not ok where the question cannot be
// read, or names no location at all.
func namedPaths(raw json.RawMessage) ([]string, bool) {
	var call toolCall
	if err := json.Unmarshal(raw, &call); err != nil || len(call.Locations) == 0 {
		return nil, false
	}
	var paths []string
	for _, l := range call.Locations {
		paths = append(paths, l.Path)
	}
	for _, c := range call.Content {
		if c.Type == "diff" {
			paths = append(paths, c.Path)
		}
	}
	if len(call.RawInput) == 0 {
		return paths, true
	}
	var input any
	if err := json.Unmarshal(call.RawInput, &input); err != nil {
		return nil, false
	}
	return append(paths, inputPaths(input, 0)...), true
}

func inputPaths(v any, depth int) []string {
	if depth > 32 {
		return []string{""} // deeper than anything real: an empty path is never inside
	}
	var out []string
	switch v := v.(type) {
	case map[string]any:
		for k, member := range v {
			if s, isText := member.(string); isText && pathKeys[strings.ToLower(k)] {
				out = append(out, s)
				continue
			}
			out = append(out, inputPaths(member, depth+1)...)
		}
	case []any:
		for _, member := range v {
			out = append(out, inputPaths(member, depth+1)...)
		}
	}
	return out
}

// below resolves the longest existing part of path and compares it with the resolved root.
// Git's own folder is never inside: a hook written there runs as the user.
func below(root, workspace, path string) bool {
	if path == "" || strings.ContainsRune(path, 0) {
		return false
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(workspace, path)
	}
	resolved, err := resolve(filepath.Clean(path))
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(root, resolved)
	if err != nil || rel == "." || rel == ".." || strings.HasPrefix(rel, "../") {
		return false
	}
	for _, part := range strings.Split(rel, "/") {
		if part == ".git" {
			return false
		}
	}
	return true
}

// resolve follows every symlink of the part that exists; what does not exist yet is appended
// as it stands. A dangling symlink is an error: creating through it lands elsewhere.
func resolve(path string) (string, error) {
	var missing []string
	for {
		resolved, err := filepath.EvalSymlinks(path)
		if err == nil {
			for i := len(missing) - 1; i >= 0; i-- {
				resolved = filepath.Join(resolved, missing[i])
			}
			return resolved, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if _, lerr := os.Lstat(path); lerr == nil {
			return "", err // it exists as a link to nothing
		}
		parent := filepath.Dir(path)
		if parent == path {
			return "", err
		}
		missing = append(missing, filepath.Base(path))
		path = parent
	}
}
