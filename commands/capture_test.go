package commands

import (
	"os"
	"path/filepath"
	"testing"

	"greatminds/internal/durable"
)

// What a command wrote is kept however late its reader comes to run: on a busy machine the whole
// command can be over, and the time for its pipes too, before anything was read.
func TestOutputIsKeptByAReaderThatComesTooLate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	c, err := openCapture(durable.NewDisk(nil), dir, 4)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{"ok\n", "longer\n"} {
		if _, err := c.streams[i].theirs.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	// The far ends stay open, as in a process outside of the tree: no end of file tells that this is all.
	out, err := c.finish()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		text          string
		bytes, stored int64
	}{{"ok\n", 3, 3}, {"long", 7, 4}} {
		got := out.Stdout
		if i == 1 {
			got = out.Stderr
		}
		text, err := os.ReadFile(got.Path)
		if err != nil || string(text) != want.text || got.Bytes != want.bytes || got.StoredBytes != want.stored || got.Truncated != (want.stored < want.bytes) {
			t.Errorf("stream %d: %q, %+v, %v, want %+v", i, text, got, err, want)
		}
		if err := c.streams[i].theirs.Close(); err != nil {
			t.Error(err)
		}
	}
}
