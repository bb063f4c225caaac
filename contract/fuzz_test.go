package contract_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"greatminds/contract"
	"greatminds/internal/refusal"
)

// FuzzParse: no input makes the parser panic; a refusal names places in the file; what is
// accepted can be pinned and read back.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/golden/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatalf("no golden contracts (%v)", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, seed := range []string{"", "version: 1", "a: &a [*a]", "agents: {a: {argv: x}}\nbindings: {b: {agent: a}}", "\ufeffversion: 1\r\nagents: {}\r\nbindings: {}\r\n",
		withAgentField("account_limit_errors: [{code: -32000}]"), withAgentField(servers + ", supervisor_tools: mcp"), "version: 1\nagents: []\nbindings: 010\nstand: {authorized: true}\n"} {
		f.Add([]byte(seed))
	}
	schema := contract.EmbeddedSchema()
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := contract.Parse("f.yaml", data, schema)
		if err != nil {
			mustExplain(t, err, refusal.CodeContractInvalid)
			return
		}
		back, err := contract.FromCanonical(c.Canonical())
		if err != nil || !bytes.Equal(back.Canonical(), c.Canonical()) {
			t.Fatalf("%q\nis pinned as %s\nwhich does not read back: %v", data, c.Canonical(), err)
		}
	})
}

// FuzzParseSchema: as FuzzParse.
func FuzzParseSchema(f *testing.F) {
	text := string(contract.EmbeddedSchema().Text)
	f.Add([]byte(text))
	f.Add([]byte(strings.Replace(text, "kind: active", "kind: idle", 1)))
	f.Add([]byte(text[:len(text)/2]))
	f.Add([]byte("version: 1\nqueues: {a: {}}\nroles: []\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := contract.ParseSchema("f.yaml", data)
		if err != nil {
			mustExplain(t, err, refusal.CodeSchemaInvalid)
			return
		}
		if s.Version != 1 || !bytes.Equal(s.Text, data) || len(s.SHA256) != 64 || len(s.JSON()) == 0 {
			t.Fatalf("accepted %q as %+v", data, s)
		}
	})
}

func mustExplain(t *testing.T, err error, code refusal.Code) {
	t.Helper()
	r, ok := refusal.Find(err)
	if !ok || r.Code != code || len(r.Reasons) == 0 || r.Remedy == "" {
		t.Fatalf("%v is no refusal with reasons and remedy", err)
	}
	for _, reason := range r.Reasons {
		if !strings.HasPrefix(reason.Place, "f.yaml") || reason.What == "" {
			t.Fatalf("reason %+v", reason)
		}
	}
}
