package redact_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"greatminds/internal/redact"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = `s3cr3t "with" quotes/and+signs`

func TestText(t *testing.T) {
	r := redact.New("hunter2", key, "on", "", "-----BEGIN KEY-----\nMIIBVgIBADANBgkq\n-----END KEY-----")
	for name, c := range map[string]struct{ in, want string }{
		"a known value":                   {"use hunter2 now", "use [redacted] now"},
		"a known value in JSON":           {`{"a":"s3cr3t \"with\" quotes/and+signs"}`, `{"a":"[redacted]"}`},
		"a known value in a URL":          {"?k=s3cr3t+%22with%22+quotes%2Fand%2Bsigns&b", "?k=[redacted]&b"},
		"one line of a known value":       {"x MIIBVgIBADANBgkq y", "x [redacted] y"},
		"short values would hide text":    {"turn it on", "turn it on"},
		"bearer tokens":                   {"curl -H 'x: BEARER abc.d-e_f' y", "curl -H 'x: BEARER [redacted]' y"},
		"an assignment":                   {"API_KEY=abc123 make", "API_KEY=[redacted] make"},
		"an option":                       {"--password 'x' --token=abc;ls", "--password 'x' --token=[redacted];ls"},
		"a quoted assignment":             {`password: "a b" c`, `password: [redacted] c`},
		"a header with a scheme":          {"Authorization: Basic dXNlcg==\nHost: h", "Authorization: [redacted]\nHost: h"},
		"JSON inside of text":             {`{"api-key":"abc","n":1}`, `{"api-key":[redacted],"n":1}`},
		"a password in a URL":             {"git clone https://me:pw@host/x", "git clone https://me:[redacted]@host/x"},
		"nothing secret":                  {"go test ./... && echo ok", "go test ./... && echo ok"},
		"a URL with a port and an e-mail": {"http://host:80/a me@host", "http://host:80/a me@host"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := r.Text(c.in); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestJSON(t *testing.T) {
	r := redact.New("hunter2", "on", key, "84618461", "7")
	for name, c := range map[string]struct{ in, want string }{
		"a known value that is a number": {`{"pin":84618461,"n":7,"m":846184610}`, `{"pin":"[redacted]","n":7,"m":846184610}`},
		"strings, names, order and numbers": {`{"z":1.50,"hunter2":["a hunter2",true,null],"a":1e400}`,
			`{"z":1.50,"[redacted]":["a [redacted]",true,null],"a":1e400}`},
		"sensitive members whole": {`{"Password":{"a":[1]},"x_api_KEY":7,"apiKey":"","accessToken":null,"AUTHORIZATION":"x","my-secret":true}`,
			`{"Password":"[redacted]","x_api_KEY":"[redacted]","apiKey":"[redacted]","accessToken":null,"AUTHORIZATION":"[redacted]","my-secret":"[redacted]"}`},
		"vendor metadata":            {`{"_meta":{"a":1},"b":[{"_meta":2,"c":3}]}`, `{"b":[{"c":3}]}`},
		"names that are escaped":     {`{"p\u0061ssword":"x","\u005fmeta":1}`, `{"password":"[redacted]"}`},
		"values that are escaped":    {`"h\u0075nter2"`, `"[redacted]"`},
		"short values by itself":     {`["on","turn on"]`, `["[redacted]","turn on"]`},
		"listed variables":           {`{"env":[{"name":"GH_TOKEN","value":"x"},{"name":"A","value":"y"}]}`, `{"env":[{"name":"GH_TOKEN","value":"[redacted]"},{"name":"A","value":"y"}]}`},
		"markup is not escaped":      {`"a<b>&c"`, `"a<b>&c"`},
		"a member that stands twice": {`{"a":"hunter2","a":"hunter2"}`, `{"a":"[redacted]","a":"[redacted]"}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := r.JSON([]byte(c.in))
			if err != nil || string(got) != c.want {
				t.Errorf("got %s %v, want %s", got, err, c.want)
			}
		})
	}
}

func TestBrokenJSONIsAnErrorAndNotACopy(t *testing.T) {
	for _, in := range []string{"", "{", `{"a":1}x`, `{} {}`, `{"a"}`, "nul", `[1,]`, strings.Repeat("[", 20000)} {
		if got, err := redact.New("hunter2").JSON([]byte(in)); err == nil || got != nil {
			t.Errorf("%.20q: got %.20q %v, want an error alone", in, got, err)
		}
	}
}

func TestNilRedactorMasksByNameAndForm(t *testing.T) {
	var r *redact.Redactor
	got, err := r.JSON([]byte(`{"token":"x","a":"Bearer abc"}`))
	if want := `{"token":"[redacted]","a":"Bearer [redacted]"}`; err != nil || string(got) != want {
		t.Fatalf("got %s %v, want %s", got, err, want)
	}
}

func TestRedactorDoesNotPrintItsSecrets(t *testing.T) {
	r := redact.New("hunter2")
	if got := fmt.Sprintf("%v %+v %#v %s", r, r, r, r); strings.Contains(got, "hunter2") {
		t.Fatal(got)
	}
}

func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"a":"hunter2","token":1,"_meta":{},"b":[1.0,"Bearer x"]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := redact.New("hunter2")
		out, err := r.JSON(in)
		if (err == nil) != json.Valid(in) {
			t.Fatalf("%q: error %v", in, err)
		}
		if err != nil {
			return
		}
		if !json.Valid(out) || bytes.Contains(out, []byte("hunter2")) || bytes.Contains(out, []byte(`"_meta":`)) {
			t.Fatalf("%q became %q", in, out)
		}
		if twice, err := r.JSON(out); err != nil || json.Valid(twice) == false {
			t.Fatalf("%q became %q, then %q", in, out, twice)
		}
	})
}
