package main

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// Wherever a message was cut, what is made of its two ends is one JSON value of the length asked
// for, which begins and ends as the message did.
func TestPadEveryCut(t *testing.T) {
	const whole = `{"jsonrpc": "2.0", "method": "session/update", "params": {"n": 12, "list": [{"name": "ä\n\u00e4\"", "input": {"hint": "[a|b]"}}, ` +
		`{"name": "two", "ok": true, "none": null}, ["x", 3], {"name": "three, {\"a\": 1}", "input": {}}], "last": {"deep": [{"id": "z"}]}}}`
	const size = 5000
	joined := 0
	for head := 1; head < len(whole); head += 2 {
		for _, tail := range []int{1, 2, 3, 10, 40, 80, 150} {
			if head+tail > len(whole) || !utf8.ValidString(whole[:head]) {
				continue
			}
			got, err := pad(whole[:head], whole[len(whole)-tail:], size)
			if err != nil {
				continue // the two may have nothing in common, such as a head that ends before its first bracket
			}
			joined++
			if !json.Valid([]byte(got)) || utf8.RuneCountInString(got) != size || repeats([]byte(got)) {
				t.Fatalf("head %d, tail %d: %d characters, valid %v:\n%.200s", head, tail, utf8.RuneCountInString(got), json.Valid([]byte(got)), got)
			}
			// A member's name that is cut goes, a value stays.
			if kept := commonPrefix(got, whole[:head]); head-kept > len(`, "none": null, "`) {
				t.Errorf("head %q: only %d of %d bytes stay", whole[:head], kept, head)
			}
			if !strings.HasSuffix(got, whole[len(whole)-1:]) {
				t.Errorf("tail %q is gone: …%s", whole[len(whole)-tail:], got[len(got)-20:])
			}
		}
	}
	if joined < 700 {
		t.Errorf("only %d cuts fit together", joined)
	}
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func TestPadKeepsTheTail(t *testing.T) {
	for _, c := range []struct{ head, tail, want string }{
		{`{"a": [{"b": "c`, `ee"}, {"b": "d"}]}`, `{"a": [{"b": "c","_pad":"xxx"}, {"b": "d"}]}`},
		{`{"a": [`, `}]}`, `{"a": [{"_pad":"xxx"}]}`},
		{`{"a": 1, "b": 2`, `3, "c": 4}`, `{"a": 1,"_pad":"xxx", "c": 4}`},
		{`{"a": "b\`, `n", "c": 1}`, `{"a": "b","_pad":"xxx", "c": 1}`},
		{`"all of it is a str`, `ing"`, `"all of it is a strxxxing"`},
	} {
		if got, err := pad(c.head, c.tail, len(c.want)); err != nil || got != c.want {
			t.Errorf("%s … %s\ngot  %s %v\nwant %s", c.head, c.tail, got, err, c.want)
		}
	}
	for _, c := range []struct {
		head, tail string
		size       int
	}{{`{"a": [1, `, `, 2]}`, 9}, {`{"a": [1, `, `, 2}]`, 99}, {`{"a": {"b": 1, `, `2]`, 99}, {`{"a": 1, `, `, "a": 2`, 99}, {`nothing`, `at all`, 99}} {
		if got, err := pad(c.head, c.tail, c.size); err == nil {
			t.Errorf("%s … %s in %d: got %s, want an error", c.head, c.tail, c.size, got)
		}
	}
}

// What was cut in a recording is again as long as it was, on the wire too.
func TestCutLinesAreWhole(t *testing.T) {
	cut, replies := 0, 0
	for _, r := range recorded(t) {
		file, one, lines := r.file, r.one, r.lines
		// How long the lines are that the steps write; of an answer, without its id.
		written, answers := map[int]bool{}, map[int]bool{}
		for _, c := range one.Conversations {
			for _, s := range c.Steps {
				written[utf8.RuneCountInString(s.Raw)-1] = true
				if len(s.Result) > 0 {
					answer := strings.TrimSpace(string(encoded(s.Result)))
					answers[utf8.RuneCountInString(`{"jsonrpc":"2.0","id":,"result":}`+answer)] = true
				}
			}
		}
		for _, l := range lines {
			if l.Cut == 0 {
				continue
			}
			cut++
			if utf8.RuneCountInString(l.text) != l.Cut || !json.Valid([]byte(l.text)) {
				t.Errorf("%s:%d: %d characters, want %d", file, l.number, utf8.RuneCountInString(l.text), l.Cut)
			}
			if kept := commonPrefix(l.text, l.Head); kept < len(l.Head)-200 {
				t.Errorf("%s:%d: %d of the %d bytes of its head are left", file, l.number, kept, len(l.Head))
			}
			found := written[l.Cut] || answers[l.Cut-len(l.msg.ID)]
			if !found && one.NotApplicable == nil {
				t.Errorf("%s:%d: no step writes a line of %d characters", file, l.number, l.Cut)
			}
			if l.msg.Method == "" {
				replies++
			}
		}
	}
	if cut < 30 || replies < 5 {
		t.Errorf("looked at %d cut lines, %d of them answers", cut, replies)
	}
}
