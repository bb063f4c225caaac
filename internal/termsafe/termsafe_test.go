package termsafe_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"greatminds/internal/termsafe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTextAndLine(t *testing.T) {
	for name, c := range map[string]struct{ in, text, line string }{
		"plain text stays":            {"héllo 世界 🙂 \\x1b", "héllo 世界 🙂 \\x1b", "héllo 世界 🙂 \\x1b"},
		"layout is for text alone":    {"a\n\tb", "a\n\tb", `a\n\tb`},
		"escape sequences":            {"\x1b[2J\x1b]0;x\a", `\x1b[2J\x1b]0;x\x07`, `\x1b[2J\x1b]0;x\x07`},
		"carriage return and delete":  {"ok\rno\b\x7f", `ok\rno\x08\x7f`, `ok\rno\x08\x7f`},
		"eight bit controls":          {"\u009b31m\u0085", `\u009b31m\u0085`, `\u009b31m\u0085`},
		"reordering":                  {"a\u202eb\u2066c", `a\u202eb\u2066c`, `a\u202eb\u2066c`},
		"hidden characters":           {"a\u200bb\ufeffc\U000e0041", `a\u200bb\ufeffc\U000e0041`, `a\u200bb\ufeffc\U000e0041`},
		"line separators":             {"a\u2028b\u2029", `a\u2028b\u2029`, `a\u2028b\u2029`},
		"bytes that are no text":      {"a\xff\xc3(", `a\xff\xc3(`, `a\xff\xc3(`},
		"a replacement character":     {"a\ufffdb", "a\ufffdb", "a\ufffdb"},
		"raw eight bit control bytes": {"\x9b31m", `\x9b31m`, `\x9b31m`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := termsafe.Text(c.in); got != c.text {
				t.Errorf("text: got %q, want %q", got, c.text)
			}
			if got := termsafe.Line(c.in); got != c.line {
				t.Errorf("line: got %q, want %q", got, c.line)
			}
		})
	}
}

func TestCutBetweenWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()),
			func(b []byte) string { return string(b) })).Draw(t, "text")
		var out strings.Builder
		w := termsafe.NewWriter(&out)
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			if got, err := w.Write([]byte(rest[:n])); got != n || err != nil {
				t.Fatalf("wrote %d of %d: %v", got, n, err)
			}
			rest = rest[n:]
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if want := termsafe.Text(text); out.String() != want {
			t.Fatalf("got %q, want %q", out.String(), want)
		}
	})
}

func FuzzText(f *testing.F) {
	f.Add("\x1b[2J\u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		for _, r := range termsafe.Line(s) {
			if r != utf8.RuneError && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
				t.Fatalf("%q lets %q through", s, r)
			}
		}
		if out := termsafe.Text(s); !utf8.ValidString(out) || termsafe.Text(out) != out {
			t.Fatalf("%q became %q, which is not safe", s, out)
		}
	})
}

// JSON for a terminal shows nothing unsafe and stands for the same values.
func TestJSONKeepsItsValues(t *testing.T) {
	for _, text := range []string{"plain", "a\tb\nc", "\x1b[2J", "\u202eevil\u2066", "\u0085\u009b31m\x7f", "\u2028\u2029", "\U000e0041tag", "naïve ✓ 漢"} {
		for _, indent := range []string{"", "\t"} {
			var b bytes.Buffer
			enc := json.NewEncoder(&b)
			enc.SetEscapeHTML(false)
			enc.SetIndent("", indent)
			if err := enc.Encode(map[string]any{text: []string{text}}); err != nil {
				t.Fatal(err)
			}
			got := termsafe.JSON(b.String())
			if got != termsafe.Text(got) {
				t.Errorf("%q is unsafe: %q", text, got)
			}
			var back map[string][]string
			if err := json.Unmarshal([]byte(got), &back); err != nil || len(back[text]) != 1 || back[text][0] != text {
				t.Errorf("%q came back as %q, %v", text, back, err)
			}
		}
	}
}
