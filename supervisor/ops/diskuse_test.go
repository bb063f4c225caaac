package ops

import (
	"strings"
	"testing"
)

// A disk is warned of before it is full, in bytes or in files; a small one at a tenth of its size.
func TestADiskIsWarnedOfBeforeItIsFull(t *testing.T) {
	const gib = 1 << 30
	for name, c := range map[string]struct {
		free, size         int64
		freeInodes, inodes uint64
		want               string
	}{
		"room":                 {2 * gib, 100 * gib, 5000, 9000, ""},
		"nearly full":          {gib - 1, 100 * gib, 5000, 9000, "1024.0 MiB of 100.0 GiB left"},
		"small, with room":     {gib / 4, 2 * gib, 5000, 9000, ""},
		"small, nearly full":   {gib / 6, 2 * gib, 5000, 9000, "170.7 MiB of 2.0 GiB left"},
		"no inodes":            {2 * gib, 100 * gib, 999, 9000, "999 more files"},
		"inodes without bound": {2 * gib, 100 * gib, 0, 0, ""},
		"size not told":        {0, 0, 5000, 9000, ""},
	} {
		f, low := spaceFinding(c.free, c.size, c.freeInodes, c.inodes)
		if low != (c.want != "") || !strings.Contains(f.What, c.want) || low && (f.Severity != "warning" || f.Remedy == "") {
			t.Errorf("%s: got %v, %+v, want %q", name, low, f, c.want)
		}
	}
}

func TestEveryFileBelongsToOnePart(t *testing.T) {
	for rel, want := range map[string]string{".runtime/state.json": "snapshot", ".runtime/journal.jsonl": "journal", ".runtime/journal-tail-3-90.jsonl": "journal",
		".runtime/history/seg": "history", ".runtime/history-aside-3-runs-000001.jsonl": "history", ".runtime/contracts/x.json": "contracts", ".runtime/command-output/r/stdout": "artifacts",
		".runtime/activity/r.json": "activity",
		".runtime/supervisor.lock": "tasks", "feature_dev/0001-a.yaml": "tasks", "journal.ndjson": "tasks"} {
		if got := partOf(rel); got != want {
			t.Errorf("%s belongs to %s, want %s", rel, got, want)
		}
	}
}
