package contract

import (
	"greatminds/internal/refusal"
	"greatminds/internal/yamldoc"
)

// ParsePinnedSchema reads the schema that a run was claimed under: ours, as ParseSchema does, or
// one in the words of the Python original, whose runs were taken over. Of the latter it takes what
// decides about tasks (queues, roles, transitions, blocks, enumerations, worktrees); everything else
// is our own. Text and SHA256 are those of data.
func ParsePinnedSchema(file string, data []byte) (*Schema, error) {
	s, err := ParseSchema(file, data)
	if err == nil {
		return s, nil
	}
	// Where the original knows nothing more of a block kind, it writes null.
	root, faults := yamldoc.Read(file, data, yamldoc.Options{MaxBytes: maxFileBytes, Null: true})
	if root == nil || !originalWords(root) {
		return nil, err
	}
	s = &Schema{Source: file, Text: data, SHA256: digest(data), document: inOurWords(root)}
	(&schemaReader{reader: reader{faults}, s: s}).root(s.document)
	if r := faults.Refusal(refusal.CodeSchemaInvalid, "the workflow schema that the original pinned cannot be read",
		"restore the file from a backup; what was decided under it cannot be judged without it"); r != nil {
		return nil, r
	}
	return s, nil
}

// originalWords tells the original's schema by the word it has for the authors of a block.
func originalWords(root *yamldoc.Node) bool {
	return root.Get("block_kinds").Get("implementation").Get("authored_by") != nil
}

// inOurWords puts the parts of the original's schema that decide about tasks into ours.
func inOurWords(theirs *yamldoc.Node) *yamldoc.Node {
	ours := EmbeddedSchema().document
	out := &yamldoc.Node{Kind: yamldoc.Mapping, Line: theirs.Line, Column: theirs.Column}
	for _, f := range ours.Fields {
		value := theirs.Get(f.Key.Text)
		switch f.Key.Text {
		case "queues", "transitions", "queue_accepts_blocks", "assignee_role_by_scope", "product_enums", "git_permissions", "worktrees", "layout":
		case "roles":
			value = eachOf(value, f.Value, nil, "stand_profile_selection")
		case "streams":
			value = eachOf(value, f.Value, map[string]string{"allowed_block_kinds": "blocks", "intake_queues": "intake"})
		case "block_kinds":
			value = eachOf(value, f.Value, map[string]string{"authored_by": "author_roles"})
		default:
			value = nil
		}
		if value == nil {
			value = f.Value
		}
		out.Fields = append(out.Fields, yamldoc.Field{Key: f.Key, Value: value})
	}
	return out
}

// eachOf rewrites the entries of a table that ours has too: fields get our words, those that ours
// does not know go, and those that theirs does not have, or that are in own, are ours.
func eachOf(theirs, ours *yamldoc.Node, words map[string]string, own ...string) *yamldoc.Node {
	if theirs == nil {
		return nil
	}
	out := &yamldoc.Node{Kind: yamldoc.Mapping, Line: theirs.Line, Column: theirs.Column}
	for _, entry := range ours.Fields {
		from := theirs.Get(entry.Key.Text)
		value := &yamldoc.Node{Kind: yamldoc.Mapping, Line: entry.Value.Line, Column: entry.Value.Column}
		for _, f := range entry.Value.Fields {
			value.Fields = append(value.Fields, yamldoc.Field{Key: f.Key, Value: theirsOr(from, f, words, own)})
		}
		out.Fields = append(out.Fields, yamldoc.Field{Key: entry.Key, Value: value})
	}
	return out
}

func theirsOr(from *yamldoc.Node, f yamldoc.Field, words map[string]string, own []string) *yamldoc.Node {
	for _, name := range own {
		if f.Key.Text == name {
			return f.Value
		}
	}
	name := f.Key.Text
	for their, our := range words {
		if our == name {
			name = their
		}
	}
	if value := from.Get(name); value != nil {
		return value
	}
	return f.Value
}
