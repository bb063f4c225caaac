package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"greatminds/internal/refusal"
	"greatminds/internal/yamldoc"
)

// FromCanonical reads a pinned contract back: FromCanonical(c.Canonical()) is c. The bytes must
// be canonical to the last one, so unknown, repeated and missing members are refused with the
// rest. The values pass the same rules as a file's, but roles, which belong to the schema that
// was pinned beside it.
func FromCanonical(data []byte) (*Contract, error) {
	const file = "pinned contract"
	malformed := func(why string, cause error) error {
		return &refusal.Refusal{Code: refusal.CodeContractPinned, What: file + ": " + why, Err: cause,
			Remedy: "restore the file from a backup; a run cannot be continued without the contract it was claimed under"}
	}
	var wire any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&wire); err != nil {
		return nil, malformed("not JSON: "+err.Error(), err)
	}
	faults := yamldoc.NewFaults(file, 50)
	c := newContract()
	r := &contractReader{reader: reader{faults}, c: c, checkRole: func(string) string { return "" }}
	r.root(configuration(wire))
	if f := faults.Refusal(refusal.CodeContractPinned, "not a contract", ""); f != nil {
		return nil, malformed(f.Error(), nil)
	}
	if !bytes.Equal(c.Canonical(), data) {
		return nil, malformed(fmt.Sprintf("not in canonical form (its contents would have the fingerprint %s)", c.SHA256()), nil)
	}
	return c, nil
}

// configuration turns a canonical document into the tree of a file that has it as its canonical
// form, so that both are read by one set of rules.
func configuration(wire any) *yamldoc.Node {
	root := tree(wire)
	if root.Kind != yamldoc.Mapping {
		return root
	}
	root.Fields = append(root.Fields, yamldoc.Field{Key: text("version"), Value: &yamldoc.Node{Kind: yamldoc.Integer, Text: "1"}})
	for i, f := range root.Fields {
		switch f.Key.Text {
		case "agents", "commands", "bindings":
			root.Fields[i].Value = byID(f.Value, f.Key.Text == "agents")
		case "account_limits":
			root.Fields[i].Value = byPair(f.Value)
		}
	}
	return root
}

func text(s string) *yamldoc.Node { return &yamldoc.Node{Kind: yamldoc.String, Text: s} }

// byID turns a list of objects with an id into a mapping.
func byID(n *yamldoc.Node, agents bool) *yamldoc.Node {
	out := &yamldoc.Node{Kind: yamldoc.Mapping}
	for _, item := range n.Items {
		entry := yamldoc.Field{Key: text(""), Value: item}
		rest := item.Fields[:0:0]
		for _, f := range item.Fields {
			switch f.Key.Text {
			case "id":
				entry.Key = text(f.Value.Text)
				continue
			case "environment", "headers":
				f.Value = byPair(f.Value)
			case "mcp_servers":
				f.Value = byID(f.Value, false)
			}
			rest = append(rest, f)
		}
		if agents {
			rest = append(rest, yamldoc.Field{Key: text("transport"), Value: text("acp")})
		}
		item.Fields = rest
		out.Fields = append(out.Fields, entry)
	}
	return out
}

// byPair turns a list of pairs into a mapping.
func byPair(n *yamldoc.Node) *yamldoc.Node {
	out := &yamldoc.Node{Kind: yamldoc.Mapping}
	for _, pair := range n.Items {
		if len(pair.Items) == 2 {
			out.Fields = append(out.Fields, yamldoc.Field{Key: text(pair.Items[0].Text), Value: pair.Items[1]})
		}
	}
	return out
}

// tree is a JSON value as a node; members that are null are absent.
func tree(v any) *yamldoc.Node {
	switch v := v.(type) {
	case string:
		return text(v)
	case bool:
		return &yamldoc.Node{Kind: yamldoc.Boolean, Text: fmt.Sprint(v)}
	case json.Number:
		kind := yamldoc.Integer
		if strings.ContainsAny(v.String(), ".eE") {
			kind = yamldoc.Float
		}
		return &yamldoc.Node{Kind: kind, Text: v.String()}
	case []any:
		n := &yamldoc.Node{Kind: yamldoc.Sequence}
		for _, item := range v {
			n.Items = append(n.Items, tree(item))
		}
		return n
	case map[string]any:
		n := &yamldoc.Node{Kind: yamldoc.Mapping}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if v[key] != nil {
				n.Fields = append(n.Fields, yamldoc.Field{Key: text(key), Value: tree(v[key])})
			}
		}
		return n
	}
	return &yamldoc.Node{Kind: yamldoc.Null}
}
