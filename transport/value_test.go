package transport

import (
	"strings"
	"testing"
	"time"
)

func TestMembersThatStandTwice(t *testing.T) {
	deep := strings.Repeat(`{"a":[`, 400) + "X" + strings.Repeat(`]}`, 400)
	for raw, want := range map[string]bool{
		`{}`: false, `[]`: false, `7`: false, `"a"`: false, ``: false, `{"a":1}`: false, `{"a":1,"b":{"a":1}}`: false, `[{"a":1},{"a":1}]`: false,
		` { "a" : [ 1 , { "b" : null } ] , "b" : { } } `: false, `{"a":1,"a":1}`: true, `{"a":1,"\u0061":2}`: true, `{"":1,"":2}`: true,
		`{"x":[1,[{"a":{},"b":2,"a":3}]]}`: true, `[{"a":1},{"b":1,"b":2}]`: true, ` { "a" : 1 , "a" : 2 } `: true,
		strings.Replace(deep, "X", `{"q":1}`, 1): false, strings.Replace(deep, "X", `{"q":1,"q":2}`, 1): true,
		// What is no JSON says nothing, and ends.
		`{`: false, `[`: false, `{"a"`: false, `{"a":`: false, `{"a":1`: false, `{"a":1,`: false, `{a:1}`: false, `{"a" 1}`: false, `[1 2]`: false, `{"a":1]`: false,
		`{"a":1}{"a":1}`: false, strings.Repeat("[", 1<<20): false, strings.Repeat(`{"a":`, 1<<20): false,
	} {
		if got := repeats([]byte(strings.TrimSpace(raw))); got != want {
			t.Errorf("%.60s: got %v", raw, got)
		}
	}
}

// What is nested deep is read about as often as what is not, and not once for each level: one line could
// hold up its turn, and with it a cancel, for minutes otherwise.
func TestDeepNestingIsReadOnce(t *testing.T) {
	list := "[" + strings.Repeat("1,", 20_000) + "1]"
	in := func(depth int, open, end string) []byte {
		return []byte(strings.Repeat(open, depth) + list + strings.Repeat(end, depth))
	}
	best := func(f func()) time.Duration {
		took := time.Hour
		for range 3 {
			began := time.Now()
			f()
			took = min(took, time.Since(began))
		}
		return took
	}
	for name, read := range map[string]func(depth int) func(){
		"config options": func(depth int) func() {
			raw := append(append([]byte(`[{"type":"select","id":"m","options":`), in(depth, `[{"options":`, `}]`)...), `}]`...)
			return func() { readConfig(raw) }
		},
		"an update": func(depth int) func() {
			raw := append(append([]byte(`{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"t","title":"x","content":`), in(depth, `{"a":[`, `]}`)...), `}}`...)
			return func() { newToolbook().note("t", true, decodeUpdate(raw).Raw) }
		},
		"a question": func(depth int) func() {
			raw := append(append([]byte(`{"sessionId":"s","toolCall":{"toolCallId":"t","rawInput":`), in(depth, `{"a":[`, `]}`)...), `},"options":[{"optionId":"o"}]}`...)
			return func() {
				if _, why := readPermission(raw); why != "" {
					t.Error(why)
				}
			}
		},
	} {
		flat, nested := best(read(2)), best(read(450))
		if nested > 10*flat+200*time.Millisecond {
			t.Errorf("%s: %s, but %s where it is flat", name, nested, flat)
		}
	}
}
