package supervisor_test

import (
	"os"
	"path/filepath"
	"testing"

	"greatminds/contract"
	"greatminds/tasks"
)

// Files that we write have, in the reference implementation, the revision that they have here:
// these are what its runs recorded when it was given the files and claimed them. The other
// direction stands beside the files that it wrote, in the tests of package tasks.
func TestOurTaskFilesHaveTheRevisionsThatTheOriginalRecords(t *testing.T) {
	for file, want := range map[string]string{
		"feature_test/0003-planned-feature-backend.yaml": "35ea560cad00d62629915ad70fe9c13a44f32be5bd8eea0d7f77f52e2dd77902",
		"feature_inbox/0001-yes.yaml":                    "4f5b29c52b0da2cbd16fd65ef158f918c9c51cd6eef4da7817013a2be34d5ac4",
	} {
		data, err := os.ReadFile(filepath.Join("../tasks/testdata/ours", file))
		must(t, err)
		task, err := tasks.Parse(contract.EmbeddedSchema(), contract.Queue(filepath.Dir(file)), file, data)
		if err != nil || string(task.Revision) != want {
			t.Errorf("%s: got revision %v, %v, want %s", file, task, err, want)
		}
	}
}
