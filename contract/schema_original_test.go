package contract_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"greatminds/contract"
	"greatminds/fixtures/original"
	"greatminds/internal/refusal"
)

// A run keeps the schema that it was claimed under, also one that the original pinned.
func TestTheOriginalsPinnedSchemaIsRead(t *testing.T) {
	ours := contract.EmbeddedSchema()
	if _, err := contract.ParseSchema("schema.yaml", original.Schema); err == nil {
		t.Fatal("the original's words pass as our own")
	}
	s, err := contract.ParsePinnedSchema("schema.json", original.Schema)
	if err != nil {
		t.Fatal(err)
	}
	if string(s.Text) != string(original.Schema) || s.SHA256 == ours.SHA256 || s.Source != "schema.json" {
		t.Errorf("got %s of %s", s.SHA256, s.Source)
	}
	for name, pair := range map[string][2]any{"queues": {ours.Queues, s.Queues}, "roles": {ours.Roles, s.Roles},
		"transitions": {ours.Transitions, s.Transitions}, "streams": {ours.Streams, s.Streams}, "blocks": {ours.BlockKinds, s.BlockKinds},
		"accepted blocks": {ours.QueueAccepts, s.QueueAccepts}, "enumerations": {ours.Enums, s.Enums}, "system": {ours.SystemTransitions, s.SystemTransitions}} {
		if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
			t.Errorf("%s (-ours +read):\n%s", name, diff)
		}
	}
}

// What it says counts, where it says something else than ours.
func TestTheOriginalsPinnedSchemaCounts(t *testing.T) {
	text := string(original.Schema)
	edited := strings.Replace(text, "authored_by: [TESTER]", "authored_by: [READER]", 1)
	edited = strings.Replace(edited, "allowed_test_results: [pass, fail, partial]", "allowed_test_results: [pass, fail]", 1)
	s, err := contract.ParsePinnedSchema("schema.json", []byte(edited))
	if err != nil {
		t.Fatal(err)
	}
	b, _ := s.BlockKind("tests")
	if len(b.Authors) != 1 || b.Authors[0] != "READER" || len(b.Allowed["allowed_test_results"]) != 2 || b.BodyField != "notes" {
		t.Errorf("got %+v", b)
	}
}

func TestAPinnedSchemaThatIsNeitherIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"neither":         "version: 1\n",
		"no document":     "",
		"undefined queue": strings.Replace(string(original.Schema), "from: feature_dev", "from: feature_nowhere", 1),
		"cut short":       string(original.Schema[:len(original.Schema)/2]),
	} {
		_, err := contract.ParsePinnedSchema("schema.json", []byte(text))
		if r, ok := refusal.Find(err); !ok || r.Code != refusal.CodeSchemaInvalid || !strings.Contains(r.Error(), "schema.json") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
