package execgate

// Process is the identity of one process of this boot.
type Process struct {
	PID        int      `json:"pid"`
	StartTicks uint64   `json:"start_ticks"`
	BootID     string   `json:"boot_id"`
	Group      int      `json:"group"`
	Session    int      `json:"session"`
	PidfdInode *uint64  `json:"pidfd_inode"`
	Keeper     *Process `json:"keeper,omitempty"`
}

// Life is what a look at a recorded process found.
type Life int

// The answers of [Look]. Unknown is the zero value, and never means dead.
const (
	Unknown Life = iota
	Alive
	Gone
)

// Look tells whether the recorded process still lives.
func Look(p Process) (Life, error) { return Unknown, errUnfinished }
