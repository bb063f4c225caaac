// Package redact masks secrets in text and JSON before they are kept or shown.
//
// It is best effort on content that an agent wrote, no general detector of secrets: known
// values, members with sensitive names, bearer tokens, and assignments to sensitive names in
// text are masked, and vendor metadata (_meta) is dropped. It never fails open: JSON that
// cannot be read is an error, not an unmasked copy.
// Spec: "Operator permission requests".
package redact

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Mask replaces what was secret.
const Mask = "[redacted]"

const (
	// minSecret is the shortest value in bytes that is masked inside other text: shorter ones
	// ("1", "on") would hide half of what is to be read. Alone in a JSON string they are masked.
	minSecret = 4
	// minLine is the shortest line of a secret of several lines that is masked by itself.
	minLine = 12
)

// sensitive matches names whose value is a secret whatever it is.
const sensitive = `(?:password|secret|token|authorization|api.?key)`

var (
	name = regexp.MustCompile(`(?i)` + sensitive)
	// bearer keeps the scheme, so that a reader sees what was there.
	bearer = regexp.MustCompile(`(?i)\b(bearer\s+)[A-Za-z0-9._~+/=-]+`)
	// assigned is NAME=VALUE, NAME: VALUE and "NAME":"VALUE", with an authentication scheme
	// before the value or not.
	assigned = regexp.MustCompile(`(?i)(` + sensitive + `[\w.-]*\\?["']?\s*[:=]\s*)(?:(?:basic|bearer)\s+)?` +
		`(?:\\?"(?:[^"\\]|\\[^"])*\\?"|'[^']*'|[^\s"',;&)}\]]+)`)
	// login is the password in a URL.
	login = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^\s/:@]*:)[^\s/@]+@`)
)

// Redactor masks one set of known secrets. It is immutable and safe for concurrent use; a
// nil or zero one knows no values and masks by names and forms alone.
type Redactor struct {
	values *strings.Replacer
	whole  map[string]bool
	// forms are what values replaces, longest first.
	forms []string
}

// New returns a redactor for these secret values; empty ones are ignored.
func New(secrets ...string) *Redactor {
	r := &Redactor{whole: map[string]bool{}}
	var forms []string
	for _, s := range secrets {
		if s == "" {
			continue
		}
		r.whole[s] = true
		forms = append(forms, variants(s)...)
	}
	// Longest first, or a part would be masked and the rest shown.
	slices.SortStableFunc(forms, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	r.forms = slices.Compact(forms)
	for _, f := range r.forms {
		pairs = append(pairs, f, Mask)
	}
	r.values = strings.NewReplacer(pairs...)
	return r
}

// variants returns the forms in which a secret can stand in text.
func variants(secret string) []string {
	var out []string
	add := func(s string, least int) {
		if len(s) >= least && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	add(secret, minSecret)
	if quoted, err := json.Marshal(secret); err == nil {
		add(string(quoted[1:len(quoted)-1]), minSecret)
	}
	add(url.QueryEscape(secret), minSecret)
	add(url.PathEscape(secret), minSecret)
	for line := range strings.Lines(secret) {
		add(strings.TrimSpace(line), minLine)
	}
	return out
}

// Sensitive says that a member of this name holds a secret.
func Sensitive(member string) bool { return name.MatchString(member) }

// Text masks what is secret in s.
func (r *Redactor) Text(s string) string {
	if r != nil && r.values != nil {
		s = r.values.Replace(s)
	}
	if mentions(s, "bearer") {
		s = bearer.ReplaceAllString(s, "${1}"+Mask)
	}
	if mentions(s, stems...) {
		s = assigned.ReplaceAllString(s, "${1}"+Mask)
	}
	if strings.Contains(s, "://") {
		s = login.ReplaceAllString(s, "${1}"+Mask+"@")
	}
	return s
}

// stems are in every match of sensitive.
var stems = []string{"password", "secret", "token", "authorization", "api"}

// mentions says that a word may stand in s, in any case. It is there for speed: it says no where a
// pattern that needs one of the words cannot match, a hundred times sooner than the pattern does.
func mentions(s string, words ...string) bool {
	if strings.Contains(s, "\u017f") || strings.Contains(s, "\u212a") {
		return true // what a pattern takes for an s and a k
	}
	var starts [256]bool
	for _, w := range words {
		starts[w[0]], starts[w[0]-'a'+'A'] = true, true
	}
	for i := range len(s) {
		if starts[s[i]] && begins(s[i:], words) {
			return true
		}
	}
	return false
}

// begins tells whether s begins with one of the words, in any case.
func begins(s string, words []string) bool {
	for _, w := range words {
		if len(s) >= len(w) && s[0]|0x20 == w[0] && strings.EqualFold(s[:len(w)], w) {
			return true
		}
	}
	return false
}

// JSON masks one JSON value: strings and member names like text, the value of a sensitive
// member whole, and leaves out every _meta. The order of members and the text of numbers
// stay. It fails when raw is not one JSON value.
func (r *Redactor) JSON(raw json.RawMessage) (json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var out bytes.Buffer
	v, err := read(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("redact: more than one JSON value")
	}
	r.write(&out, v)
	return out.Bytes(), nil
}

// LogValue keeps the secrets out of logs.
func (r *Redactor) LogValue() slog.Value { return slog.StringValue(Mask) }

// String keeps the secrets out of formatted text.
func (r *Redactor) String() string { return Mask }

// GoString keeps the secrets out of %#v.
func (r *Redactor) GoString() string { return Mask }

// object is a JSON object in its order.
type object []pair

type pair struct {
	name  string
	value any
}

func read(d *json.Decoder) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		var o object
		for d.More() {
			n, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := read(d)
			if err != nil {
				return nil, err
			}
			o = append(o, pair{n.(string), v}) // the decoder lets only strings stand here
		}
		_, err := d.Token()
		return o, err
	case json.Delim('['):
		a := []any{}
		for d.More() {
			v, err := read(d)
			if err != nil {
				return nil, err
			}
			a = append(a, v)
		}
		_, err := d.Token()
		return a, err
	}
	return t, nil
}

func (r *Redactor) write(out *bytes.Buffer, v any) {
	switch v := v.(type) {
	case object:
		r.writeObject(out, v)
	case []any:
		out.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				out.WriteByte(',')
			}
			r.write(out, e)
		}
		out.WriteByte(']')
	case string:
		if r != nil && r.whole[v] {
			v = Mask
		}
		writeString(out, r.Text(v))
	case json.Number:
		if r != nil && len(v) >= minSecret && r.whole[v.String()] {
			writeString(out, Mask)
			return
		}
		out.WriteString(v.String())
	case bool:
		if v {
			out.WriteString("true")
		} else {
			out.WriteString("false")
		}
	default:
		out.WriteString("null")
	}
}

func (r *Redactor) writeObject(out *bytes.Buffer, o object) {
	// {"name": "API_KEY", "value": "..."} is how environment variables and headers are listed.
	listed := slices.ContainsFunc(o, func(p pair) bool {
		n, ok := p.value.(string)
		return ok && p.name == "name" && Sensitive(n)
	})
	out.WriteByte('{')
	first := true
	for _, p := range o {
		if p.name == "_meta" {
			continue
		}
		if !first {
			out.WriteByte(',')
		}
		first = false
		writeString(out, r.Text(p.name))
		out.WriteByte(':')
		if p.value != nil && (Sensitive(p.name) || listed && p.name == "value") {
			writeString(out, Mask)
			continue
		}
		r.write(out, p.value)
	}
	out.WriteByte('}')
}

func writeString(out *bytes.Buffer, s string) {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	_ = e.Encode(s)             // strings always encode, buffers always take
	out.Truncate(out.Len() - 1) // the encoder's newline
}
