package ops

import (
	"greatminds/internal/execgate"
	"greatminds/runstore"
)

// look reports whether a recorded process lives; nil where that cannot be told.
func look(p *runstore.Process) *bool {
	if p == nil {
		dead := false
		return &dead
	}
	life, err := execgate.Look(*p)
	if err != nil || life == execgate.Unknown {
		return nil
	}
	lives := life == execgate.Alive
	return &lives
}

// alive takes a process that cannot be looked at for dead: an answer must not be accepted for a
// callback that may be gone.
func alive(p *runstore.Process) bool {
	lives := look(p)
	return lives != nil && *lives
}
