package execgate

import (
	"os"

	"greatminds/internal/execgate/entry"
)

// Main must be the first call of every main function, and of TestMain in packages that start
// processes. It makes sure that a process re-exec'd as keeper or gate does its job and nothing
// else: the job itself begins during package initialization, before anything larger of the
// binary is set up, and does not return. In any other process Main marks the descriptors that the
// parent left open, the standard three aside, so that nothing started here inherits them.
func Main() {
	if _, role := os.LookupEnv(entry.RoleName); role {
		os.Exit(entry.ExitMisused)
	}
	entry.CloseOnExecAbove(2)
}
