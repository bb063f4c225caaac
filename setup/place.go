package setup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"greatminds/contract"
	"greatminds/internal/refusal"
)

// place is the project that the folder will be. Its runtime is .greatminds whatever was there
// before: setup never adopts the old layout.
func place(dir string) (contract.Project, error) {
	p, err := contract.ProjectAt(dir)
	if err != nil {
		return p, err
	}
	if slices.Contains(strings.Split(p.Root, string(filepath.Separator)), ".worktrees") {
		return p, refusal.New(refusal.CodeSetupInsideWorktree, "run it in the project's own folder",
			"%s is the worktree of a task", p.Root)
	}
	p.Runtime = filepath.Join(p.Root, ".greatminds")
	return p, nil
}

// checkLayout refuses a second runtime beside task data of the old layout.
// Spec: "Bootstrap", E-474.
func checkLayout(p contract.Project) error {
	if _, err := os.Lstat(p.Runtime); err == nil {
		return nil
	}
	dir := filepath.Dir(p.ExecutionPath())
	if found := contract.RuntimeData(dir); len(found) > 0 {
		return refusal.New(refusal.CodeSetupOldLayout,
			fmt.Sprintf("move them to %s first, so that there is one runtime", p.Runtime),
			"task data sits in %s: %s", dir, strings.Join(found, ", "))
	}
	return nil
}
