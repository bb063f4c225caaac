package contract

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"greatminds/internal/yamldoc"
)

// reader turns a node tree into typed values and collects every fault on the way. Its methods
// return readers of single values, to be named in a table of fields.
type reader struct{ faults *yamldoc.Faults }

// value reads one node. path names it for people, as in bindings.dev.timeout_seconds.
type value func(n *yamldoc.Node, path string)

// field is one field of an object.
type field struct {
	name     string
	required bool
	read     value
}

// is refuses a node of any other kind. An Invalid node has its fault already.
func (r *reader) is(n *yamldoc.Node, path string, want yamldoc.Kind, remedy string) bool {
	if n.Kind == want {
		return true
	}
	if n.Kind != yamldoc.Invalid {
		r.faults.Add(n, remedy, "%s is %s%s, but must be %s", path, n.Kind, shown(n), want)
	}
	return false
}

// shown is the value of a scalar in a message.
func shown(n *yamldoc.Node) string {
	switch n.Kind {
	case yamldoc.String:
		return " " + yamldoc.Show(n.Text)
	case yamldoc.Integer, yamldoc.Float, yamldoc.Boolean:
		return " " + strings.Trim(yamldoc.Show(n.Text), `"`)
	}
	return ""
}

// object reads a mapping with exactly these fields.
func (r *reader) object(n *yamldoc.Node, path string, fields ...field) {
	if !r.is(n, path, yamldoc.Mapping, "write fields below it, or {}") {
		return
	}
	seen, whole := map[string]bool{}, true
	for _, f := range n.Fields {
		if f.Key.Kind != yamldoc.String {
			whole = false // a merge key may stand for any field
			continue
		}
		i := slices.IndexFunc(fields, func(x field) bool { return x.name == f.Key.Text })
		if i < 0 {
			r.unknown(f.Key, path, fields)
			continue
		}
		seen[f.Key.Text] = true
		fields[i].read(f.Value, under(path, f.Key.Text))
	}
	for _, f := range fields {
		if f.required && whole && !seen[f.name] {
			r.faults.Add(n, "add it", "%s is missing", under(path, f.name))
		}
	}
}

func (r *reader) unknown(key *yamldoc.Node, path string, fields []field) {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	remedy := "remove it; known here: " + strings.Join(names, ", ")
	if near := nearest(key.Text, names); near != "" {
		remedy = "did you mean " + near + "?"
	}
	where := ""
	if path != "" {
		where = " in " + path
	}
	r.faults.Add(key, remedy, "unknown field %s%s", yamldoc.Show(key.Text), where)
}

func under(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// entries reads a mapping whose keys are chosen by the user. key says what is wrong with one, ""
// for nothing; each is called once per entry in the order of the file.
func (r *reader) entries(n *yamldoc.Node, path string, key func(string) string, each func(id string, n *yamldoc.Node, path string)) {
	if !r.is(n, path, yamldoc.Mapping, "write entries below it, or {}") {
		return
	}
	for _, f := range n.Fields {
		if f.Key.Kind != yamldoc.String {
			continue
		}
		if fault := key(f.Key.Text); fault != "" {
			r.faults.Add(f.Key, "rename it", "%s in %s %s", yamldoc.Show(f.Key.Text), path, fault)
			continue
		}
		each(f.Key.Text, f.Value, under(path, f.Key.Text))
	}
}

// text reads a string that is not blank.
func (r *reader) text(into *string) value { return r.checked(into, func(string) string { return "" }) }

// checked reads a string that is not blank and that check finds nothing wrong with.
func (r *reader) checked(into *string, check func(string) string) value {
	return func(n *yamldoc.Node, path string) {
		if !r.is(n, path, yamldoc.String, "quote it: "+strconv.Quote(n.Text)) {
			return
		}
		if blank(n.Text) {
			r.faults.Add(n, "write a text, or leave the field out", "%s is blank", path)
			return
		}
		if fault := check(n.Text); fault != "" {
			r.faults.Add(n, "change it", "%s %s %s", path, yamldoc.Show(n.Text), fault)
			return
		}
		*into = n.Text
	}
}

// blank reports whether a text has only white space; the separators count as such.
func blank(s string) bool {
	return strings.TrimFunc(s, func(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }) == ""
}

// optional reads a string that is nil while absent.
func (r *reader) optional(into **string) value {
	return func(n *yamldoc.Node, path string) {
		var s string
		r.text(&s)(n, path)
		*into = &s
	}
}

// choice reads one of a few words.
func choice[T ~string](r *reader, into *T, allowed ...T) value {
	return func(n *yamldoc.Node, path string) {
		words := make([]string, len(allowed))
		for i, a := range allowed {
			words[i] = string(a)
		}
		if !r.is(n, path, yamldoc.String, "write one of "+strings.Join(words, ", ")) {
			return
		}
		if !slices.Contains(words, n.Text) {
			r.faults.Add(n, "write one of "+strings.Join(words, ", "), "%s %s is unknown", path, yamldoc.Show(n.Text))
			return
		}
		*into = T(n.Text)
	}
}

// flag reads true or false.
func (r *reader) flag(into *bool) value {
	return func(n *yamldoc.Node, path string) {
		if r.is(n, path, yamldoc.Boolean, "write true or false without quotes") {
			*into = n.Text == "true"
		}
	}
}

// Bounds of counts that have none of their own. Seconds end where a span of nanoseconds would
// overflow with room to add; other counts where JSON readers begin to round.
const (
	maxSeconds = 1_000_000_000
	maxCount   = 1<<53 - 1
)

// count reads an integer in bounds.
func (r *reader) count(into *int, least, most int) value {
	return func(n *yamldoc.Node, path string) {
		if !r.is(n, path, yamldoc.Integer, integerRemedy(n)) {
			return
		}
		v, ok := new(big.Int).SetString(n.Text, 10)
		if !ok || !v.IsInt64() || v.Int64() < int64(least) || v.Int64() > int64(most) {
			r.faults.Add(n, fmt.Sprintf("write an integer from %d to %d", least, most),
				"%s is %s", path, strings.TrimSpace(shown(n)))
			return
		}
		*into = int(v.Int64())
	}
}

func integerRemedy(n *yamldoc.Node) string {
	if n.Kind == yamldoc.String {
		if _, err := strconv.Atoi(n.Text); err == nil {
			return "write " + n.Text + " without quotes"
		}
	}
	return "write an integer"
}

// items reads a list.
func (r *reader) items(n *yamldoc.Node, path string, each func(n *yamldoc.Node, path string)) bool {
	if !r.is(n, path, yamldoc.Sequence, "write a list: [a, b]") {
		return false
	}
	for i, item := range n.Items {
		each(item, fmt.Sprintf("%s[%d]", path, i))
	}
	return true
}

// texts reads a list of strings that are not blank and that check, if any, finds in order.
func texts[T ~string](r *reader, into *[]T, check func(string) string) value {
	if check == nil {
		check = func(string) string { return "" }
	}
	return func(n *yamldoc.Node, path string) {
		list := make([]T, 0, len(n.Items))
		r.items(n, path, func(n *yamldoc.Node, path string) {
			var s string
			r.checked(&s, check)(n, path)
			list = append(list, T(s))
		})
		*into = list
	}
}

// filled is texts for a list that must not be empty.
func filled[T ~string](r *reader, into *[]T, check func(string) string) value {
	return func(n *yamldoc.Node, path string) {
		texts(r, into, check)(n, path)
		if n.Kind == yamldoc.Sequence && len(n.Items) == 0 {
			r.faults.Add(n, "write at least one entry", "%s is empty", path)
		}
	}
}
