package execgate

import "greatminds/internal/execgate/proc"

// Process is the identity of one process, as it is recorded before exec. See [proc.Process].
// Spec: "Persistence and ownership"; E-237, E-239.
type Process = proc.Process

// Life is what a look at a recorded process found.
type Life = proc.Life

// The answers of [Look]. Unknown is the zero value, and is never to be taken for Gone.
const (
	Unknown = proc.Unknown
	Alive   = proc.Living
	Gone    = proc.Gone
)

// ErrUnknown is wrapped by every answer that could not be found out. It permits nothing.
var ErrUnknown = proc.ErrUnknown

// Look tells whether the recorded process still lives. A zombie is Gone, as is a pid that now
// belongs to another process and everything recorded in another boot. Where the kernel or the
// file system does not let us see, the answer is Unknown with an error that wraps [ErrUnknown].
// Spec: E-239, E-241.
func Look(p Process) (Life, error) { return proc.Look(p) }
