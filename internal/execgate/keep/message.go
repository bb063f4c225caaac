package keep

import (
	"encoding/json"
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"greatminds/internal/execgate/proc"
)

// Kind names a message of the control channel.
type Kind string

// The kinds. A keeper says Up or Failed first and Empty last; the daemon says Recorded and Stop.
const (
	Up       Kind = "up"       // the gate, or the tool, runs; its pidfd and the keeper's own come along
	Failed   Kind = "failed"   // it could not be started, see Errno and Path
	Exit     Kind = "exit"     // the process itself ended with Status
	Empty    Kind = "empty"    // nothing is left but Survivors
	Recorded Kind = "recorded" // the identity is on record, the gate may be reaped
	Stop     Kind = "stop"     // end the tree within Term and Kill
)

// Message is one packet of the control channel.
type Message struct {
	Kind Kind `json:"kind"`
	// PID comes with up. Grouped says that it runs in the cgroup that was offered. Package entry
	// writes this message.
	PID int `json:"pid,omitempty"`
	// Keeper is the keeper's own pid.
	Keeper  int  `json:"keeper,omitempty"`
	Grouped bool `json:"grouped,omitempty"`
	// Errno and Path come with failed.
	Errno syscall.Errno `json:"errno,omitempty"`
	Path  string        `json:"path,omitempty"`
	// Status is the wait status of an exit. Natural says that it came before any stop.
	Status  uint32 `json:"status,omitempty"`
	Natural bool   `json:"natural,omitempty"`
	// Term and Kill are nanoseconds, counted from the receipt of a stop.
	Term time.Duration `json:"term,omitempty"`
	Kill time.Duration `json:"kill,omitempty"`
	// Ended, Forced and Survivors come with empty. Ended counts the members of the tree, the
	// process itself left out, that were signalled; Forced says that SIGKILL was used; Lost that
	// a warden says it, because its keeper is gone.
	Ended     int            `json:"ended,omitempty"`
	Forced    bool           `json:"forced,omitempty"`
	Lost      bool           `json:"lost,omitempty"`
	Survivors []proc.Process `json:"survivors,omitempty"`
}

// MaxMessage bounds a packet, in bytes; the default send buffer of a socket is 212992.
const MaxMessage = 128 << 10

// ParseMessage reads one packet.
func ParseMessage(data []byte) (Message, error) {
	var m Message
	if err := json.Unmarshal(data, &m); err != nil {
		return Message{}, fmt.Errorf("execgate: control message: %w", err)
	}
	return m, nil
}

// send writes one packet to the keeper's end, which is a blocking descriptor. An error
// means that the daemon is gone, which the reader of the same channel learns too.
func send(fd int, m Message) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	for {
		err = unix.Sendmsg(fd, data, nil, nil, unix.MSG_NOSIGNAL)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
