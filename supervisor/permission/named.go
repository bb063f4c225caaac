package permission

import (
	"encoding/json"
	"slices"
	"strings"
)

// named are the paths that a question names.
type named struct {
	paths []string
	// bases are folders that relative paths may be meant from.
	bases []string
}

func (n *named) relative() bool {
	return slices.ContainsFunc(n.paths, func(p string) bool { return !strings.HasPrefix(p, "/") && !strings.HasPrefix(p, "file:") })
}

// readNamed collects every path of a question. It is not ok where the question cannot be read, names
// no location at all, or carries what reaches further than its paths.
func readNamed(raw json.RawMessage) (*named, bool) {
	// Into maps: names are matched to the letter then, while a struct also takes "Locations".
	var call map[string]json.RawMessage
	if json.Unmarshal(raw, &call) != nil {
		return nil, false
	}
	n := &named{}
	if !n.locations(call["locations"]) || !n.contents(call["content"]) {
		return nil, false
	}
	if len(call["rawInput"]) == 0 {
		return n, true
	}
	var input any
	if json.Unmarshal(call["rawInput"], &input) != nil {
		return nil, false
	}
	return n, n.input("", input, 0)
}

func (n *named) locations(raw json.RawMessage) bool {
	var all []map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil || len(all) == 0 {
		return false
	}
	for _, l := range all {
		if !n.member(l, "path") {
			return false
		}
	}
	return true
}

// contents takes the files of the diffs. A terminal is a command.
func (n *named) contents(raw json.RawMessage) bool {
	if len(raw) == 0 || string(raw) == "null" {
		return true
	}
	var all []map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return false
	}
	for _, c := range all {
		switch string(c["type"]) {
		case `"diff"`:
			if !n.member(c, "path") {
				return false
			}
		case `"content"`:
		default:
			return false
		}
	}
	return true
}

func (n *named) member(of map[string]json.RawMessage, name string) bool {
	var path string
	if json.Unmarshal(of[name], &path) != nil {
		return false
	}
	n.paths = append(n.paths, path)
	return true
}

// Members of a tool's raw input, in lower case and without "_" and "-".
var (
	// baseKeys name the folder that relative paths start from.
	baseKeys = []string{"cwd", "workdir", "workingdir", "workingdirectory", "root", "rootdir", "basedir", "basepath"}
	// pathWords are in the names of members that hold paths.
	pathWords = []string{"path", "file", "dir", "folder", "uri", "url", "location", "target", "dest", "source", "src"}
	// textKeys hold text of files and for people; it says nothing of where.
	textKeys = []string{"content", "contents", "text", "oldtext", "newtext", "oldstring", "newstring", "oldstr", "newstr",
		"filetext", "filecontent", "filecontents", "newsource", "oldsource", "description", "explanation", "instruction",
		"instructions", "reason", "patch", "diff", "unifieddiff"}
	// commandKeys hold what is run. The verbs of an editor run nothing.
	commandKeys = []string{"command", "commands", "cmd", "script", "shell", "argv", "args"}
	verbs       = []string{"view", "create", "str_replace", "insert", "undo_edit", "delete", "rename", "write", "read", "edit"}
)

// maxDepth bounds the nesting of a raw input; nothing real is as deep.
const maxDepth = 32

// input collects the paths of a raw input: those of members that hold paths by their name, and whatever
// else looks like a path. False where it names a command, or is too deep.
func (n *named) input(key string, v any, depth int) bool {
	if depth > maxDepth {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		for k, member := range v {
			if strings.ContainsAny(k, "/.~") { // files are listed by their names
				n.paths = append(n.paths, k)
			}
			if !n.input(plainKey(k), member, depth+1) {
				return false
			}
		}
	case []any:
		if slices.Contains(commandKeys, key) {
			return false
		}
		for _, member := range v {
			if !n.input(key, member, depth+1) {
				return false
			}
		}
	case string:
		return n.word(key, v)
	}
	return true
}

func plainKey(k string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(k))
}

func (n *named) word(key, value string) bool {
	n.patched(value)
	switch {
	case slices.Contains(commandKeys, key):
		return slices.Contains(verbs, value)
	case slices.Contains(baseKeys, key):
		n.bases = append(n.bases, value)
	case slices.Contains(textKeys, key):
	case key == "from" || key == "to" || slices.ContainsFunc(pathWords, func(w string) bool { return strings.Contains(key, w) }) || looksLikePath(value):
		n.paths = append(n.paths, value)
	}
	return true
}

// looksLikePath recognizes what leads somewhere else, whatever its member is called.
func looksLikePath(s string) bool {
	if strings.Contains(s, "\n") {
		return false
	}
	return strings.HasPrefix(s, "/") || strings.HasPrefix(s, "~") || strings.HasPrefix(s, "file:") || s == ".." ||
		strings.HasPrefix(s, "../") || strings.Contains(s, "/../") || strings.HasSuffix(s, "/..")
}

// patchHeads are the lines by which a patch in an agent's own form names its files.
var patchHeads = []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "}

func (n *named) patched(text string) {
	if !strings.Contains(text, "*** ") {
		return
	}
	for line := range strings.Lines(text) {
		for _, head := range patchHeads {
			if path, is := strings.CutPrefix(line, head); is {
				n.paths = append(n.paths, strings.TrimSpace(path))
			}
		}
	}
}
