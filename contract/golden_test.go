package contract_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"greatminds/contract"
)

// document is what `project execution` prints.
type document struct {
	Version   int             `json:"version"`
	Source    string          `json:"source"`
	SHA256    string          `json:"sha256"`
	SchemaSHA string          `json:"schema_sha256"`
	Execution json.RawMessage `json:"execution"`
}

// The golden files hold what the original program prints for the same bytes: fingerprint and
// expanded contract. They are compared to the last digit of every number.
func TestFingerprintAndDocumentEqualTheOriginals(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*.yaml")
	if err != nil || len(files) < 60 {
		t.Fatalf("found %d golden contracts (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			var want document
			golden(t, strings.TrimSuffix(file, ".yaml")+".json", &want)
			c, err := contract.Load(contract.Project{}, file, contract.EmbeddedSchema())
			if err != nil {
				t.Fatal(err)
			}
			if got := c.SHA256(); got != want.SHA256 {
				t.Errorf("sha256: got %s, want %s", got, want.SHA256)
			}
			var got document
			if err := json.Unmarshal(c.Document(file, contract.EmbeddedSchema()), &got); err != nil {
				t.Fatal(err)
			}
			if got.Version != 1 || got.Source != file || got.SHA256 != c.SHA256() || got.SchemaSHA != contract.EmbeddedSchema().SHA256 {
				t.Errorf("document is %+v", got)
			}
			if d := cmp.Diff(exact(t, want.Execution), exact(t, got.Execution)); d != "" {
				t.Errorf("execution (-original +ours):\n%s", d)
			}
			pinned, err := contract.FromCanonical(c.Canonical())
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c, pinned, cmp.AllowUnexported(contract.Number{})); d != "" {
				t.Errorf("pinned and read back (-before +after):\n%s", d)
			}
		})
	}
}

func golden(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

// exact decodes JSON with every number as it is written.
func exact(t *testing.T, data []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestEmptyContractHasTheKnownFingerprint(t *testing.T) {
	for _, text := range []string{"version: 1\nagents: {}\nbindings: {}\n", "{bindings: {}, agents: {}, 'version': 1}", "\ufeff# c\r\nversion: +1\r\nagents: {}\r\nbindings: {}\r\n"} {
		if got := parsed(t, text).SHA256(); got != "039f3e351eb4c55cdfdc90ca1aec561ecac579218d18d9fa0aeecb7115a33f4e" {
			t.Errorf("%q: got %s", text, got)
		}
	}
}

// Every character that the original escapes in its answer is escaped in ours, so that the answer
// survives any terminal encoding.
func TestDocumentIsASCIIAndEndsWithALineEnd(t *testing.T) {
	c, err := contract.Load(contract.Project{}, "testdata/golden/strings.yaml", contract.EmbeddedSchema())
	if err != nil {
		t.Fatal(err)
	}
	text := c.Document("é.yaml", contract.EmbeddedSchema())
	if !bytes.HasSuffix(text, []byte("}\n")) || bytes.ContainsFunc(text, func(r rune) bool { return r > 0x7e }) {
		t.Fatalf("got %s", text)
	}
	if !bytes.HasPrefix(text, []byte("{\n  \"version\": 1,\n  \"source\": \"\\u00e9.yaml\",\n  \"sha256\": \"")) {
		t.Fatalf("got %.100s", text)
	}
}
