// Package entry is what warden, keeper and gate do in their first microseconds.
//
// It imports nothing but syscall, and does its work in init: package initialization runs what is
// ready first, so this comes before every larger package of the binary. A launch starts two copies of
// our binary one after the other, its warden having been started ahead of it, and waiting until each
// has set up command line, HTTP and YAML packages would double its time (measured without other load,
// over a plain exec and one fdatasync: 3.6 ms here, 5.9 ms from main of a small test binary). A gate
// never gets further than this package, nor does a warden whose keeper does its work; a keeper has
// started its gate here and goes on in package keep, whose init takes over for good.
//
// A process gets its role through the variable GREATMINDS_EXECGATE, because package os, and with
// it the command line, is not there yet. The program that the gate becomes does not see it: its
// environment comes with the launch request.
package entry

import "syscall"

// RoleName is the environment variable that makes a re-exec of our binary a keeper or a gate.
const RoleName = "GREATMINDS_EXECGATE"

// MarkName is the environment variable that carries a launch's mark, in keeper, gate and program.
const MarkName = "GREATMINDS_MARK"

// SelfExe is our own binary even after it was replaced or removed on disk.
const SelfExe = "/proc/self/exe"

// The roles. A keeper's is followed by a space and the folder of a cgroup to make, where there is one.
// A warden is told that by its first message. A tool's keeper starts the request itself, without gate,
// and has no warden.
const (
	roleGate       = "gate"
	RoleWarden     = "warden"
	RoleKeeper     = "keeper"
	RoleToolKeeper = "tool-keeper"
)

// Descriptors of a keeper beside the program's standard three. A warden has the first.
const (
	ControlFD = 3 // the channel to the daemon; warden and keeper share their end
	RequestFD = 4 // passed on to the gate; tool's keeper: read here
	StatusFD  = 5 // passed on to the gate
)

// ExitUnauthorized and the others are exit statuses of keeper and gate. The daemon does not rely
// on them: it reads the control channel and the status pipe.
const (
	ExitUnauthorized = 70
	ExitExecFailed   = 71
	ExitMisused      = 72
)

// Keeper is what a keeper, or a warden that lost its keeper, has done when package keep takes over.
type Keeper struct {
	// Tool says that this keeper's program is a tool, which has no record.
	Tool bool
	// Warden says that this is a warden, whose keeper did not end as it should.
	Warden bool
	// PID of the gate or tool, or of a warden's keeper; 0 where it could not be started, with Errno
	// and Path.
	PID   int
	Errno syscall.Errno
	Path  string
	// Group is the folder of the cgroup that was made for the launch, or "".
	Group string
}

var own *Keeper

// Own returns what this process did as a keeper or warden, or nil in any other process.
func Own() *Keeper { return own }

func init() {
	value, ok := syscall.Getenv(RoleName)
	if !ok {
		return
	}
	role, group := value, ""
	for i := range len(value) {
		if value[i] == ' ' {
			role, group = value[:i], value[i+1:]
			break
		}
	}
	switch role {
	case roleGate:
		syscall.Exit(gate())
	case RoleWarden:
		own = ward()
	case RoleKeeper, RoleToolKeeper:
		own = keep(role == RoleToolKeeper, group)
	default:
		syscall.Exit(ExitMisused)
	}
}
