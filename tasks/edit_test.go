package tasks

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Whatever the shape of a file, a block appended to it keeps every byte where it can, and every
// value where it cannot.
func TestAppendedBlocksKeepTheFile(t *testing.T) {
	head := "id: 0001-sample\nstream: product # the stream\ntitle: T\n"
	cases := map[string]struct {
		text string
		keep string // what the new file begins with; "" where the file is spelled anew
	}{
		"empty list":         {head + "blocks: []\n", head + "blocks:\n"},
		"comment behind":     {head + "blocks: []  # none yet\nlast: x\n", head + "blocks: # none yet\n"},
		"list on two lines":  {head + "blocks: [\n]\n", head + "blocks:\n"},
		"no line end":        {head + "blocks: []", head + "blocks:\n"},
		"missing":            {head, head + "blocks:\n"},
		"missing, no end":    {strings.TrimSpace(head), head + "blocks:\n"},
		"one block":          {head + "blocks:\n- kind: a\n  by: b\n  at: c\n", head + "blocks:\n- kind: a\n  by: b\n  at: c\n"},
		"indented list":      {head + "blocks:\n    - kind: a\n      by: b\n      at: c\n", head + "blocks:\n    - kind: a\n      by: b\n      at: c\n    - kind: new\n      by: X\n"},
		"not the last key":   {head + "blocks:\n- kind: a\n  by: b\n  at: c\n# note\nlast: x\n", head + "blocks:\n- kind: a\n  by: b\n  at: c\n# note\n- kind: new\n"},
		"comment at the end": {head + "blocks:\n- kind: a\n  by: b\n  at: c\n# human note\n", head + "blocks:\n- kind: a\n  by: b\n  at: c\n# human note\n- kind: new\n"},
		"literal at the end": {head + "blocks:\n- kind: a\n  by: b\n  at: c\n  notes: |\n    x\n\n", head + "blocks:\n- kind: a\n  by: b\n  at: c\n  notes: |\n    x\n\n- kind: new\n"},
		"kept line ends":     {head + "blocks:\n- kind: a\n  by: b\n  at: c\n  notes: |+\n    x\n\n", head + "blocks:\n- kind: a\n  by: b\n  at: c\n  notes: |+\n    x\n\n- kind: new\n"},
		"open literal":       {head + "blocks:\n- kind: a\n  by: b\n  at: c\n  notes: |\n    x", ""},
		"CRLF":               {strings.ReplaceAll(head+"blocks:\n- kind: a\n  by: b\n  at: c\n", "\n", "\r\n"), strings.ReplaceAll(head+"blocks:\n- kind: a\n  by: b\n  at: c\n- kind: new\n  by: X\n", "\n", "\r\n")},
		"byte order mark":    {"\ufeff" + head + "blocks: []\n", "\ufeff" + head + "blocks:\n"},
		"odd line end":       {head + "note: 'a\u2028  b'\nblocks: []\nlast: x\n", head + "note: 'a\u2028  b'\nblocks:\n- kind: new\n"},
		"indented document":  {"  id: 0001-sample\n  title: T\n  blocks: []\n", "  id: 0001-sample\n  title: T\n  blocks:\n  - kind: new\n"},
		"document end":       {head + "blocks:\n- kind: a\n  by: b\n  at: c\n...\n", ""},
		"flow list":          {head + "blocks: [{kind: a, by: b, at: c}]\n", ""},
		"flow document":      {"{id: 0001-sample, title: T, blocks: []}\n", ""},
		"null":               {head + "blocks:\n", ""},
	}
	added := []Block{{Kind: "new", By: "X", At: "now", Fields: Fields{{"notes", "a\nb\n"}, {"list", []any{"x", Fields{{"y", nil}}}}}},
		{Kind: "second", By: "X", At: "now"}}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			task, faults := decode("feature_dev", "feature_dev/0001-sample.yaml", []byte(c.text))
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			got, err := task.withBlocks(added)
			if err != nil {
				t.Fatal(err)
			}
			if c.keep != "" && !bytes.HasPrefix(got, []byte(c.keep)) {
				t.Errorf("got\n%q\nwant it to begin with\n%q", got, c.keep)
			}
			after, faults := decode("feature_dev", "feature_dev/0001-sample.yaml", got)
			if len(faults) > 0 || !sameFields(after.Header, task.Header) || !sameBlocks(after.Blocks, append(append([]Block(nil), task.Blocks...), added...)) {
				t.Errorf("the values changed: %v\n%s", faults, got)
			}
		})
	}
}

func TestBlocksAppendToFilesOfTheOriginalWithoutTouchingThem(t *testing.T) {
	files, err := filepath.Glob("testdata/original/*/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("got %d files, %v", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		task, faults := decode("q", file, data)
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		got, err := task.withBlocks([]Block{{Kind: "k", By: "b", At: "a"}})
		if err != nil {
			t.Fatal(err)
		}
		if kept := bytes.TrimSuffix(data, []byte(" []\n")); !bytes.HasPrefix(got, kept) {
			t.Errorf("%s: bytes have changed:\n%s", file, got)
		}
	}
}

// fragments make texts that YAML writers get wrong.
var fragments = []string{"a", "b: c", " ", "\n", "\t", "'", `"`, "#", " #x", ":", "- ", "-", "?", "é", "漢", "\U0001F600", "\u0085", "\u2028",
	"\ufeff", "\x00", "\x07", "\x1b", "\x7f", "\u00a0", "|", ">", "%", "@", "`", "yes", "null", "~", "1", "0x1", "1e5", "1.5", "2026-01-01", "...",
	"---", "{", "}", "[", "]", ",", "&a", "*a", "!t", "=", "<<", `\`, "some longer words ", "\r", "1:30", "0o7", ".inf", "\u009f", "\ufffe"}

func oddText() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(fragments), 0, 6).Draw(t, "text"), "")
	})
}

func oddValue(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kind := rapid.IntRange(0, 7).Draw(t, "kind")
		switch {
		case kind == 1:
			return rapid.Int64().Draw(t, "int")
		case kind == 2:
			return rapid.Bool().Draw(t, "bool")
		case kind == 3:
			return rapid.Float64().Draw(t, "float")
		case kind == 4:
			return nil
		case kind == 5 && depth > 0:
			return rapid.SliceOfN(oddValue(depth-1), 0, 3).Draw(t, "list")
		case kind == 6 && depth > 0:
			return oddFields(depth-1).Draw(t, "fields")
		}
		return oddText().Draw(t, "text")
	})
}

func oddFields(depth int) *rapid.Generator[Fields] {
	return rapid.Custom(func(t *rapid.T) Fields {
		var f Fields
		for range rapid.IntRange(0, 3).Draw(t, "n") {
			key := oddText().Draw(t, "key")
			if !f.Has(key) && key != "blocks" && key != "kind" && key != "by" && key != "at" {
				f = append(f, Field{key, oddValue(depth).Draw(t, "value")})
			}
		}
		return f
	})
}

// Any value that can stand in a task reads back as itself, and blocks appended to what we wrote
// leave its bytes alone.
func TestWhatIsWrittenReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		header := append(Fields{{"id", "0001-sample"}}, oddFields(3).Draw(t, "header").Without("id")...)
		first := Block{Kind: "k", By: "b", At: "a", Fields: oddFields(3).Draw(t, "block")}
		data := render(header, []Block{first})
		task, faults := decode("q", "q/0001-sample.yaml", data)
		if len(faults) > 0 || !sameFields(task.Header, header) || !sameBlocks(task.Blocks, []Block{first}) {
			t.Fatalf("got %v\n%s", faults, data)
		}
		second := Block{Kind: "k", By: "b", At: "a", Fields: oddFields(3).Draw(t, "second")}
		got, err := task.withBlocks([]Block{second})
		if err != nil || !bytes.HasPrefix(got, data) {
			t.Fatalf("got %v\n%s\nfrom\n%s", err, got, data)
		}
	})
}

// FuzzTaskFile holds the reader to its promises on any bytes: it never panics, each fault has a
// text, and a file that it takes can take a block.
func FuzzTaskFile(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, text := range []string{"", "a: &b [*b]", "? [a]\n: b", "a: !!binary x", "{", "- - - -", "a: |+\n\n\n", "a: 'x\u2028 y'\nblocks: []", "%YAML 1.1\n---\na: b\n...\n", "a: \"\\ud800\""} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		task, faults := decode("feature_dev", "feature_dev/0001-sample.yaml", data)
		if (task == nil) != (len(faults) > 0) {
			t.Fatalf("got %v and %v", task, faults)
		}
		for _, fault := range faults {
			if fault.What == "" || fault.Code == "" || !strings.HasPrefix(fault.Place, "feature_dev/0001-sample.yaml") {
				t.Fatalf("got the fault %+v", fault)
			}
		}
		if task == nil {
			return
		}
		got, err := task.withBlocks([]Block{{Kind: "k", By: "b", At: "a", Fields: Fields{{"notes", "x\ny"}}}})
		if err != nil && len(data) < MaxTaskBytes/8 {
			t.Fatalf("a file that reads takes no block: %v", err)
		}
		if err == nil {
			if _, faults := decode("feature_dev", "feature_dev/0001-sample.yaml", got); len(faults) > 0 {
				t.Fatal(faults)
			}
		}
	})
}
