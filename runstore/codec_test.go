package runstore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestCheckJSONNamesTheByte(t *testing.T) {
	for _, c := range []struct {
		text, what string
		off        int
	}{
		{``, "unexpected end", 0},
		{`{"a":1`, "unexpected end", 6},
		{`{"a":1,}`, "a key expected", 7},
		{`{"a":1 "b":2}`, "a comma or the object's end", 7},
		{`{"a" 1}`, "a colon", 5},
		{`{"a":1,"b":{"c":1,"c":2}}`, `duplicate key "c"`, 18},
		{`{"a":1,"\u0061":2}`, `duplicate key "a"`, 7},
		{`[1,2,]`, "a value expected", 5},
		{`[1 2]`, "a comma or the array's end", 3},
		{`[01]`, "a comma", 2},
		{`[1.]`, "a digit", 3},
		{`[-]`, "a digit", 2},
		{`[1e]`, "a digit", 3},
		{`[NaN]`, "a value", 1},
		{`[nul]`, "null", 1},
		{"[\"a\nb\"]", "control character", 3},
		{"[\"\xff\"]", "invalid UTF-8", 2},
		{`["\x"]`, "an escape", 3},
		{`["\u12g4"]`, "a hex digit", 6},
		{`{} {}`, "after the end", 3},
		{"{}\x00", "after the end", 2},
		{strings.Repeat("[", maxDepth+2), "nested deeper", maxDepth + 1},
	} {
		err := checkJSON([]byte(c.text))
		f, ok := err.(*fault)
		if !ok || f.off != c.off || !strings.Contains(f.what, c.what) {
			t.Errorf("%q: got %v, want byte %d: …%s…", c.text, err, c.off, c.what)
		}
	}
	for _, text := range []string{`{}`, ` [ ] `, `"a\"\\\/\b\f\n\r\tA"`, `-0.5e+3`, "{\"\":null}\n", `[{"a":1},{"a":1}]`} {
		if err := checkJSON([]byte(text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// What checkJSON passes, the standard decoder passes too, and split and canonical keep its
// meaning.
func FuzzCheckJSON(f *testing.F) {
	for _, seed := range []string{`{}`, `{"b":[1,{"c":null}],"a":"x,y:{}"}`, `[[],{},"",-1.5e3,true,false]`, `"é😀"`, `{"a":{"a":1}}`, " {\n\"k\" : [ 1 , 2 ] }\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if checkJSON(data) != nil {
			return
		}
		if !json.Valid(data) || !utf8.Valid(data) {
			t.Fatalf("passed %q, which is not valid", data)
		}
		c := canonical(data)
		if err := checkJSON(c); err != nil {
			t.Fatalf("canonical form %q of %q: %v", c, data, err)
		}
		if again := canonical(c); !bytes.Equal(again, c) {
			t.Fatalf("canonical form %q becomes %q", c, again)
		}
		if got, want := decoded(t, c), decoded(t, data); !reflect.DeepEqual(got, want) {
			t.Fatalf("%q and its canonical form %q mean %v and %v", data, c, want, got)
		}
		s := scanner{data: data}
		s.space()
		for _, m := range split(data[s.pos:], s.pos) {
			if !bytes.HasPrefix(data[m.off:], m.raw) || checkJSON(m.raw) != nil {
				t.Fatalf("member %q of %q is not %q at %d", m.key, data, m.raw, m.off)
			}
		}
	})
}

func decoded(t *testing.T, data []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestUnknownMembersSurviveInEveryEntity(t *testing.T) {
	for name, v := range map[string]any{"run": new(Run), "result": new(Result), "command": new(Command),
		"permission": new(Permission), "operation": new(Operation), "event": new(Event), "observation": new(Observation),
		"request": new(Request), "retention": new(Retention), "reservation": new(Reservation), "meta": new(meta)} {
		t.Run(name, func(t *testing.T) {
			text := sample(reflect.TypeOf(v).Elem(), 2)
			if err := checkJSON([]byte(text)); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if err := decode([]byte(text), 0, v); err != nil {
				t.Fatal(err)
			}
			got := string(encode(v))
			if diff := cmp.Diff(decoded(t, []byte(text)), decoded(t, []byte(got))); diff != "" {
				t.Errorf("decoded and encoded again (-want +got):\n%s", diff)
			}
			if got != string(canonical([]byte(got))) {
				t.Errorf("keys are not sorted: %s", got)
			}
		})
	}
}

// sample is a value of the type with every known member set, and in every object unknown
// members: one that sorts first, one last, and one that is a known name but for its case.
func sample(t reflect.Type, processes int) string {
	if t == rawType {
		return `{"kept":[1,null,"x"]}`
	}
	switch t.Kind() {
	case reflect.Pointer:
		if t.Elem() == reflect.TypeFor[Process]() && processes == 0 {
			return "null"
		}
		return sample(t.Elem(), processes-1)
	case reflect.Slice:
		return "[" + sample(t.Elem(), processes) + "]"
	case reflect.Map:
		return `{"key":` + sample(t.Elem(), processes) + "}"
	case reflect.String:
		return `"text"`
	case reflect.Bool:
		return "true"
	case reflect.Float64:
		return "1.5"
	case reflect.Struct:
		out := `{"A_first":{"z":1,"a":[]},"zz_last":"x"`
		for i, f := range infoOf(t).fields {
			if i == 0 {
				out += fmt.Sprintf(",%q:0", strings.ToUpper(f.name))
			}
			if member := sample(t.Field(f.index).Type, processes); member != "null" {
				out += fmt.Sprintf(",%q:%s", f.name, member)
			}
		}
		return out + "}"
	}
	return "7"
}

func TestEventsAreCheckedBeforeTheyAreAskedFor(t *testing.T) {
	for text, want := range map[string]string{
		`{"sequence":1.5}`:             "byte 19: an integer from 0",
		`{"data":{"a":1},"kind":7}`:    "byte 30: a string",
		`{ "at" : "x" }`:               "byte 16: a number",
		`{"run_id":[]}`:                "byte 17: a string",
		`{"\u0061t":"x","sequence":1}`: "a number",
		`[]`:                           "byte 7: an object",
	} {
		if _, err := readEvent([]byte(text), 7); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	e, err := readEvent([]byte(` {"sequence": 3, "kind": "k", "data": {"b": 1, "a": [ ]}, "x": "\u0061" }`)[1:], 0)
	if err != nil || string(e.raw) != `{"data":{"a":[],"b":1},"kind":"k","sequence":3,"x":"\u0061"}` {
		t.Fatalf("got %s, %v", e.raw, err)
	}
	if got := e.event(); got.Sequence != 3 || got.Kind != "k" || got.RunID != nil || string(got.Extra["x"]) != `"\u0061"` {
		t.Errorf("got %+v", got)
	}
}

func TestNamesAreExact(t *testing.T) {
	var r Run
	err := decode([]byte(`{"State":"bogus","STATE":1,"state":"running"}`), 0, &r)
	if err != nil || r.State != Running || string(r.Extra["State"]) != `"bogus"` || string(r.Extra["STATE"]) != "1" {
		t.Fatalf("got %#v, %v", r, err)
	}
}

func TestDecodeNamesTypeAndPlace(t *testing.T) {
	for _, c := range []struct {
		text, what string
		off        int
	}{
		{`{"id":7}`, "a string expected", 6},
		{`{"conversation_task":"yes"}`, "true or false expected", 21},
		{`{"sequence":-1}`, "an integer from 0 expected", 12},
		{`{"sequence":1.5}`, "an integer from 0 expected", 12},
		{`{"schema_version":99999999999999999999}`, "an integer expected", 18},
		{`{"created_at":"1"}`, "a number expected", 14},
		{`{"created_at":1e999}`, "a number expected", 14},
		{`{"outcome":[]}`, "an object expected", 11},
		{`{"process":{"keeper":{"pid":"x"}}}`, "an integer expected", 28},
		{`{"timings":{"a":null}}`, "a number expected", 16},
	} {
		err := decode([]byte(c.text), 0, new(Run))
		f, ok := err.(*fault)
		if !ok || f.off != c.off || !strings.Contains(f.what, c.what) {
			t.Errorf("%s: got %v, want byte %d: %s", c.text, err, c.off, c.what)
		}
	}
}

func TestNumbersKeepTheirKind(t *testing.T) {
	for want, f := range map[string]float64{"5.0": 5, "0.0": 0, "-2.5": -2.5, "1800000000.000001": 1800000000.000001, "1e+17": 1e17, "1e-07": 1e-7, "1e+308": 1e308} {
		got := string(appendFloat(nil, f))
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestTextStaysReadable(t *testing.T) {
	for in, want := range map[string]string{"a<b>&c": `"a<b>&c"`, "é😀": `"é😀"`, "a\"b\\\n\t\x01": `"a\"b\\\n\t\u0001"`, "\u2028": "\"\u2028\"", "\xff": "\"\uFFFD\""} {
		if got := string(appendText(nil, in)); got != want || !json.Valid([]byte(got)) {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

func TestWhatCannotBeStoredIsRefusedOnEntry(t *testing.T) {
	nan := math.NaN()
	for name, r := range map[string]*Run{
		"number":       {Outcome: &Outcome{ElapsedSeconds: &nan}},
		"raw":          {Usage: json.RawMessage(`{"a":1,"a":2}`)},
		"deep raw":     {Usage: json.RawMessage(strings.Repeat("[", 70) + strings.Repeat("]", 70))},
		"known member": {Extra: Members{"state": json.RawMessage(`"x"`)}},
		"list member":  {Extra: Members{inReceipts: json.RawMessage(`{}`)}},
		"inner member": {Outcome: &Outcome{Extra: Members{"updates": json.RawMessage(`1`)}}},
	} {
		if _, err := normal(r); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	shared := &Outcome{Extra: Members{"x": json.RawMessage(` {"b": 1, "a": 2} `)}}
	got, err := normal(&Run{Outcome: shared, Workspace: "/a\xffb", Timings: map[string]float64{"x": 1}})
	if err != nil {
		t.Fatal(err)
	}
	shared.Extra["x"] = json.RawMessage("7")
	if string(got.Outcome.Extra["x"]) != `{"a":2,"b":1}` || got.Workspace != "/a\uFFFDb" {
		t.Errorf("got %s and %q, want a canonical copy", got.Outcome.Extra["x"], got.Workspace)
	}
}

func TestAPublicRunHasNoCredential(t *testing.T) {
	r := &Run{ID: "r", State: Running, TokenSHA256: "hash", Extra: Members{"x_future": json.RawMessage("1")}}
	b, err := json.Marshal(r)
	if err != nil || bytes.Contains(b, []byte("token")) || !bytes.Contains(b, []byte(`"x_future":1`)) {
		t.Fatalf("got %s, %v", b, err)
	}
	var back Run
	if err := json.Unmarshal(b, &back); err != nil || back.State != Running || string(back.Extra["x_future"]) != "1" {
		t.Fatalf("got %#v, %v", back, err)
	}
	if err := json.Unmarshal([]byte(`{"id":"a","id":"b"}`), &back); err == nil {
		t.Error("a duplicate key was accepted")
	}
}
