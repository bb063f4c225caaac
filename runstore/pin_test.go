package runstore

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"greatminds/internal/durable"
	"greatminds/internal/durable/faultdisk"
	"greatminds/internal/refusal"
)

// E-154, E-156
func TestPinnedDocumentsAreThereBeforeTheyAreUsed(t *testing.T) {
	dir := storeDir(t)
	fd := faultdisk.New()
	s := openStore(t, options(dir, fd))
	text := []byte("version: 1\n# é\n")
	schema, err := SchemaDocument(text, 1)
	if err != nil {
		t.Fatal(err)
	}
	docs := map[string][]byte{PinnedExecution: []byte(`{"agents":[]}`), PinnedSchema: schema}
	shas := map[string]string{PinnedExecution: hashText(`{"agents":[]}`), PinnedSchema: hashText(string(text))}
	for kind, data := range docs {
		if err := s.PinDocument(kind, shas[kind], data); err != nil {
			t.Fatal(err)
		}
		path := dir + "/contracts/" + kind + "-" + shas[kind] + ".json"
		if got := readText(t, path); got != string(data) {
			t.Errorf("%s holds %q", path, got)
		}
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("got mode %v, %v", st.Mode(), err)
		}
		if got, err := s.Pinned(kind, shas[kind]); err != nil || string(got) != string(data) {
			t.Errorf("got %q, %v", got, err)
		}
	}
	// Synced when the call returns: the last step of each is the sync of the folder.
	var synced []string
	for _, st := range fd.Steps() {
		if strings.Contains(st.Path, "contracts") && (st.Op == durable.OpSync || st.Op == durable.OpSyncDir || st.Op == durable.OpMove) {
			synced = append(synced, string(st.Op))
		}
	}
	if got := fmt.Sprint(synced); got != "[sync move syncdir sync move syncdir]" {
		t.Errorf("got steps %s", got)
	}
	steps := len(fd.Steps())
	if err := s.PinDocument(PinnedSchema, shas[PinnedSchema], schema); err != nil || len(fd.Steps()) != steps {
		t.Errorf("pinning again: %v, %d more steps", err, len(fd.Steps())-steps)
	}
	if got, err := SchemaText(schema); err != nil || string(got) != string(text) {
		t.Errorf("got %q, %v", got, err)
	}
	closeStore(t, s)

	// Another process finds the file, which may be in the page cache alone.
	fd = faultdisk.New()
	s = openStore(t, options(dir, fd))
	if err := s.PinDocument(PinnedSchema, shas[PinnedSchema], schema); err != nil || len(fd.Steps()) != 3 {
		t.Errorf("pinning what is there: %v, %d steps, want the syncs of both folders and the file", err, len(fd.Steps()))
	}
	closeStore(t, s)
}

func TestAPinnedDocumentIsNeverAnother(t *testing.T) {
	dir := storeDir(t)
	s := openStore(t, options(dir, nil))
	defer closeStore(t, s)
	data := []byte(`{"agents":[]}`)
	sha := hashText(string(data))
	for name, err := range map[string]error{
		"wrong hash":    s.PinDocument(PinnedExecution, hashText("x"), data),
		"unknown kind":  s.PinDocument("recipe", sha, data),
		"schema: text":  s.PinDocument(PinnedSchema, sha, []byte(`{"version":1}`)),
		"schema: form":  s.PinDocument(PinnedSchema, sha, []byte(`[`)),
		"missing":       second(s.Pinned(PinnedExecution, sha)),
		"outside":       second(s.Pinned("../../etc/x", sha)),
		"missing in it": second(s.Pinned(PinnedSchema, sha)),
	} {
		if r, ok := refusal.Find(err); !ok || r.Code != refusal.CodePinned || r.Remedy == "" {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := s.PinDocument(PinnedExecution, sha, data); err != nil {
		t.Fatal(err)
	}
	path := dir + "/contracts/execution-" + sha + ".json"
	writeText(t, path, `{"agents":[1]}`)
	refused(t, second(s.Pinned(PinnedExecution, sha)), refusal.CodePinned)
	other := openStore(t, options(storeDir(t), nil))
	defer closeStore(t, other)
	other.o.Dir = dir
	refused(t, other.PinDocument(PinnedExecution, sha, data), refusal.CodePinned)
	if got := readText(t, path); got != `{"agents":[1]}` {
		t.Errorf("the file was changed to %s", got)
	}
}

func second(_ []byte, err error) error { return err }

// E-156, E-165: a pin that fails leaves nothing that a run could refer to.
func TestAFailedPinIsNoPin(t *testing.T) {
	data := []byte(`{"agents":[]}`)
	sha := hashText(string(data))
	for n := 1; ; n++ {
		dir := storeDir(t)
		fd := faultdisk.New()
		s := openStore(t, options(dir, fd))
		fd.Plan(faultdisk.CrashAt(len(fd.Steps()) + n))
		err := s.PinDocument(PinnedExecution, sha, data)
		if !fd.Crashed() {
			if err != nil || n < 5 {
				t.Errorf("after %d steps: %v", n, err)
			}
			closeStore(t, s)
			return
		}
		refused(t, err, refusal.CodeStoreWrite)
		if err := s.Close(t.Context()); err != nil && !errors.Is(err, faultdisk.ErrCrashed) {
			t.Error(err)
		}
		s = openStore(t, options(dir, nil))
		if err := s.PinDocument(PinnedExecution, sha, data); err != nil {
			t.Errorf("after a crash at step %d: %v", n, err)
		}
		closeStore(t, s)
	}
}
