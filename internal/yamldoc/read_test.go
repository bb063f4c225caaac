package yamldoc_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"greatminds/internal/yamldoc"
)

// reasons reads a document and returns its faults, one a line.
func reasons(text string, o yamldoc.Options) []string {
	_, faults := yamldoc.Read("f", []byte(text), o)
	var out []string
	for _, r := range faults.Reasons() {
		out = append(out, r.String())
	}
	return out
}

func TestEachFaultIsRefusedAtItsPlace(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"repeated key", "a: 1\nb: 2\na: 3\n", `f:3:1: key "a" is repeated, first on line 1`},
		{"repeated key below", "x:\n  - {a: 1, 'a': 2}\n", `f:2:12: x[0]: key "a" is repeated, first on line 2`},
		{"anchor", "a: &x 1\n", "f:1:4: a: anchor &x"},
		{"alias", "a: &x 1\nb: *x\n", "f:2:4: b: alias *x"},
		{"merge key", "a:\n  <<: {b: 1}\n", "f:2:3: a: merge key <<"},
		{"merge value", "a: <<\n", "f:1:4: a: some readers take << for"},
		{"tag", "a: !!str 5\n", `f:1:4: a: tag "!!str"`},
		{"lone tag", "a: ! 5\n", `f:1:4: a: tag "!"`},
		{"own tag on a mapping", "a: !x {b: 1}\n", `f:1:4: a: tag "!x"`},
		{"directive", "%YAML 1.1\n---\na: 1\n", `f:1:1: directive "%YAML 1.1"`},
		{"further document", "a: 1\n---\nb: 2\n", "f:2:1: a further document begins here"},
		{"further broken document", "a: 1\n--- {\n", "a further document begins here"},
		{"key that is a number", "1: a\n", "f:1:1: a key must be text, but 1 is an integer"},
		{"key that is a list", "? [a]\n: b\n", "f:1:3: a key must be text, but this is a list"},
		{"tab before a value", "a:\t1\n", "f:1:4: a: a tab stands before the value"},
		{"tab in plain text", "a: b\tc\n", `f:1:4: a: a tab inside unquoted text: "b\tc"`},
		{"tab as indentation", "a:\n\tb: 1\n", "f:2:1: the line is indented with a tab"},
		{"NUL", "a: b\x00c\n", "f:1:5: a NUL character (byte 0x00)"},
		{"escaped NUL", "a: \"b\\0\"\n", `f:1:4: a: text with a NUL character`},
		{"control character", "a: 1\nb: \"\x1b\"\n", "f:2:5: a control character (byte 0x1b)"},
		{"no UTF-8", "a: \xff\n", "f:1:4: a byte that is no UTF-8 (byte 0xff)"},
		{"UTF-16", "\xff\xfea\x00", "f:1:1: the file is in UTF-16 or UTF-32"},
		{"invisible line break", "a: \"x\u2028y\"\n", "f:1:6: an invisible line break"},
		{"second byte order mark", "\ufeffa: \"\ufeff\"\n", "f:1:5: a byte order mark inside the file"},
		{"nothing", "", "f:1:1: the file is empty"},
		{"comments alone", "# a\n# b\n", "f:1:1: the file is empty"},
		{"no value", "a:\nb: 1\n", "f:1:3: a: there is no value here"},
		{"null", "a: null\n", "f:1:4: a: null is no value here"},
		{"octal", "a: 010\n", "f:1:4: a: some readers take 010 for a number; quote it, or write 8"},
		{"hexadecimal", "a: -0x10\n", "quote it, or write -16"},
		{"binary", "a: 0b101\n", "quote it, or write 5"},
		{"underscores", "a: 1_000\n", "quote it, or write 1000"},
		{"sexagesimal", "a: 1:30\n", "quote it, or write 90"},
		{"infinity", "a: -.inf\n", "some readers take -.inf for a number"},
		{"boolean words", "a: yes\n", "some readers take yes for true or false; quote it, or write true"},
		{"date", "a: 2026-11-30\n", "some readers take 2026-11-30 for a date; quote it"},
		{"time", "a: 2026-11-30 10:20:30 +01:00\n", "for a date"},
		{"key without a value in a list", "a: [b:]\n", `some readers take b: for a key without a value`},
		{"broken indentation", "a:\n  b: 1\n c: 2\nd: 3\n", "f:3:2: not valid YAML from here on"},
		{"open bracket", "x: 1\na: [1,\nb: 2\n", "f:2:1: not valid YAML from here on"},
		{"open quote", "x: 1\na: \"b\nc: 2\n", "f:2:1: not valid YAML from here on"},
		{"colon in text", "x: 1\na: b: c\n", "f:2:1: not valid YAML from here on"},
		{"a fault far from the beginning of its block", manyKeys(200) + " k: 1\n" + manyKeys(200), "f:201:2: not valid YAML from here on"},
		{"a fault after a long quoted text", manyKeys(50) + "q: \"" + strings.Repeat("x\n\n  ", 5) + "\"\n" + manyKeys(30) + " k: 1\n", "f:92:2: not valid YAML from here on"},
		{"a fault in a file of many lines", manyKeys(3000) + "k: a: b\n", "f:3001:1: not valid YAML from here on"},
		{"too deep", strings.Repeat("[", 33) + strings.Repeat("]", 33), "f:1:33: [0]"},
		{"too deep by far", strings.Repeat("[", 100_000), "not valid YAML from here on"},
		{"too long", "a: " + strings.Repeat("x", 1<<20), "f: the file has 1048579 bytes, but 1048576 are the limit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := reasons(c.text, yamldoc.Options{})
			for _, r := range got {
				if strings.Contains(r, c.want) {
					return
				}
			}
			t.Fatalf("got %q, want a fault with %q", got, c.want)
		})
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d: {a: [1, 2]}\n", i)
	}
	return b.String()
}

// show is a short form of a tree: kinds and texts.
func show(n *yamldoc.Node) string {
	switch n.Kind {
	case yamldoc.Mapping:
		var parts []string
		for _, f := range n.Fields {
			parts = append(parts, f.Key.Text+"="+show(f.Value))
		}
		return "{" + strings.Join(parts, " ") + "}"
	case yamldoc.Sequence:
		var parts []string
		for _, item := range n.Items {
			parts = append(parts, show(item))
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	letter := map[yamldoc.Kind]string{yamldoc.String: "s", yamldoc.Integer: "i", yamldoc.Float: "f", yamldoc.Boolean: "b", yamldoc.Null: "n"}[n.Kind]
	return letter + ":" + n.Text
}

func TestWhatAllReadersAgreeAboutIsResolved(t *testing.T) {
	for text, want := range map[string]string{
		"[0, 7, -12, +3]":                              "[i:0 i:7 i:-12 i:+3]",
		"[1.5, .5, 1., 1.0e+22, 010.5, -2.50]":         "[f:1.5 f:.5 f:1. f:1.0e+22 f:010.5 f:-2.50]",
		"[true, True, TRUE, false, False, FALSE]":      "[b:true b:true b:true b:false b:false b:false]",
		"[1e3, 1.0e22, 1e+3, y, n, 0o17, 08, 09:30]":   "[s:1e3 s:1.0e22 s:1e+3 s:y s:n s:0o17 s:08 s:09:30]",
		"[-.5, 1.2.3, tRUE, nULL, '010', \"yes\", ~x]": "[s:-.5 s:1.2.3 s:tRUE s:nULL s:010 s:yes s:~x]",
		"\ufeffa: 1\r\nb: x\r\n  y\r\n":                "{a=i:1 b=s:x y}",
		"a: |\r\n  x\r\n  y\r\n":                       "{a=s:x\ny\n}",
		"--- # c\na: {b: [], c: {}}\n...\n":            "{a={b=[] c={}}}",
		"a: \"\\ttab\ttab\"\nb: |\n  x\ty\n# \t\n":     "{a=s:\ttab\ttab b=s:x\ty\n}",
	} {
		n, faults := yamldoc.Read("f", []byte(text), yamldoc.Options{})
		if faults.Len() != 0 {
			t.Errorf("%q: %v", text, faults.Reasons())
			continue
		}
		if got := show(n); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	for text, want := range map[string]string{"a: ~\nb:\nc: null\n": "{a=n:~ b=n: c=n:null}", "": "n:", "# c\n": "n:"} {
		n, faults := yamldoc.Read("f", []byte(text), yamldoc.Options{Null: true})
		if faults.Len() != 0 || show(n) != want {
			t.Errorf("%q where null is allowed: got %s %v", text, show(n), faults.Reasons())
		}
	}
}

func TestPlacesCountCharactersAfterAByteOrderMark(t *testing.T) {
	n, faults := yamldoc.Read("f", []byte("\ufeffé: x\nb: [ü, 1]\n"), yamldoc.Options{})
	if faults.Len() != 0 {
		t.Fatal(faults.Reasons())
	}
	x, one := n.Get("é"), n.Get("b").Items[1]
	if x.Line != 1 || x.Column != 4 || one.Line != 2 || one.Column != 8 {
		t.Fatalf("got %d:%d and %d:%d, want 1:4 and 2:8", x.Line, x.Column, one.Line, one.Column)
	}
	if n.Get("none") != nil || x.Get("a") != nil {
		t.Fatal("Get found what is not there")
	}
}

func TestAllFaultsComeAtOnceInOrderAndBounded(t *testing.T) {
	var b strings.Builder
	for i := range 70 {
		fmt.Fprintf(&b, "k%d: yes\n", i)
	}
	got := reasons(b.String(), yamldoc.Options{})
	if len(got) != 51 || got[50] != "f: and 20 more faults" {
		t.Fatalf("got %d lines ending with %q, want 50 and one that counts 20 more", len(got), got[len(got)-1])
	}
	for i, r := range got[:50] {
		if !strings.HasPrefix(r, fmt.Sprintf("f:%d:", i+1)) {
			t.Fatalf("line %d is %q, want the order of the file", i, r)
		}
	}
	all := reasons("a: 1\na: yes\nb: &x 010\n", yamldoc.Options{})
	if len(all) != 4 {
		t.Fatalf("got %q, want four faults", all)
	}
}

// bomb is a document whose aliases would expand to 9^levels nodes.
func bomb(levels int) string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i <= levels; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), ","))
	}
	return b.String()
}

func TestHostileInputCostsLittle(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		mib  uint64
	}{
		"alias bomb":        {bomb(20), 8},
		"many aliases":      {"a: &a x\nb: [" + strings.Repeat("*a,", 50_000) + "]\n", 200},
		"many brackets":     {strings.Repeat("[", 1<<20), 400},
		"many keys":         {strings.Repeat("? ", 1<<19), 400},
		"many indents":      {strings.Repeat("- ", 1<<19), 400},
		"many small values": {"a: [" + strings.Repeat("x,", 1<<17) + "]", 300},
		"many broken lines": {strings.Repeat("a: [\n", 20_000), 200},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			yamldoc.Read("f", []byte(c.text), yamldoc.Options{})
			runtime.ReadMemStats(&after)
			if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > c.mib {
				t.Fatalf("allocated %d MiB in all, want at most %d", got, c.mib)
			}
		})
	}
}

func TestTreeAsJSON(t *testing.T) {
	text := "b: [1, +2, 1.50, .5, 1.0e+22, 1.0e-7, true]\na: \"é\\n\\u007f<&>\"\nc: {}\nd: []\ne: \"\\\\\\\"\\t\\r\\b\\f\\x01\"\nf: ~\n"
	n, faults := yamldoc.Read("f", []byte(text), yamldoc.Options{Null: true})
	if faults.Len() != 0 {
		t.Fatal(faults.Reasons())
	}
	got := string(n.AppendJSON(nil))
	want := `{"b":[1,2,1.5,0.5,1e+22,1e-07,true],"a":"é\n` + "\x7f" + `<&>","c":{},"d":[],"e":"\\\"\t\r\b\f\u0001","f":null}`
	if got != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
}

func TestEscapedStringsReadBack(t *testing.T) {
	for _, s := range []string{"", "é😀\x7f", "a\"\\\n", "\u2028<>&", "\x00\x1f"} {
		for _, ascii := range []bool{true, false} {
			b := yamldoc.AppendString(nil, s, ascii)
			var back string
			if err := json.Unmarshal(b, &back); err != nil || back != s {
				t.Errorf("%q as %s reads back as %q (%v)", s, b, back, err)
			}
			if ascii && bytes.ContainsFunc(b, func(r rune) bool { return r >= 0x7f }) {
				t.Errorf("%q as %s is not ASCII", s, b)
			}
		}
	}
	if got := string(yamldoc.AppendString(nil, "é😀\x7f", true)); got != `"\u00e9\ud83d\ude00\u007f"` {
		t.Errorf("got %s", got)
	}
}

func TestLongValuesAreCutInMessages(t *testing.T) {
	if got := yamldoc.Show(strings.Repeat("é", 100)); got != `"`+strings.Repeat("é", 60)+`"…` {
		t.Fatalf("got %s", got)
	}
}

// FuzzRead: whatever comes in, Read ends without a panic, and what it accepts has a JSON form
// and no node that is Invalid.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{"a: 1", "a: [b, {c: d}]\n", "a: &x 1\nb: *x", "\ufeffa: |\r\n  b", "? a\n: b", "a: 010", "--- a\n...\n--- b", "a:\tb", "{a: [b:]}", bomb(3), "%TAG ! x\n---\na: !b c", "a: \"\\ud800\""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		n, faults := yamldoc.Read("f", data, yamldoc.Options{})
		if faults.Len() > 0 {
			if len(faults.Reasons()) == 0 {
				t.Fatal("faults without reasons")
			}
			return
		}
		check(t, n)
		if !json.Valid(n.AppendJSON(nil)) {
			t.Fatalf("no JSON: %s", n.AppendJSON(nil))
		}
	})
}

func check(t *testing.T, n *yamldoc.Node) {
	if n.Kind == yamldoc.Invalid || n.Line < 1 || n.Column < 1 {
		t.Fatalf("node %v at %d:%d without a fault", n.Kind, n.Line, n.Column)
	}
	for _, f := range n.Fields {
		if f.Key.Kind != yamldoc.String {
			t.Fatalf("key %v without a fault", f.Key.Kind)
		}
		check(t, f.Value)
	}
	for _, item := range n.Items {
		check(t, item)
	}
}
