package ops

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"greatminds/runstore"
	"greatminds/supervisor/audit"
)

// takenOver tells of the original's state.json that a take-over has kept, as long as it is there.
func (d *doctor) takenOver(v *runstore.View) {
	from := v.TakenOver()
	if from == nil {
		return
	}
	path := filepath.Join(d.Project.StoreDir(), filepath.Base(from.File))
	if _, err := os.Stat(path); err != nil {
		return
	}
	at := time.UnixMilli(int64(from.At * 1000)).UTC().Format(time.RFC3339)
	d.report.add(audit.Finding{Component: "runtime", Code: "store_taken_over", Severity: audit.Info, Place: path,
		What:   fmt.Sprintf("the run store was taken over from the original greatminds at %s, and its state.json is kept as %s", at, path),
		Remedy: "nothing is to be done; remove the file when you will not go back"})
}
