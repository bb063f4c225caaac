package execgate

import (
	"encoding/json"
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// kind names a message of the control channel.
type kind string

const (
	kindUp       kind = "up"       // keeper: the gate, or the tool, runs; its pidfd comes along
	kindFailed   kind = "failed"   // keeper: it could not be started, see Errno and Path
	kindExit     kind = "exit"     // keeper: the process itself ended with Status
	kindEmpty    kind = "empty"    // keeper, its last word: nothing is left but Survivors
	kindRecorded kind = "recorded" // daemon: the identity is on record, the gate may be reaped
	kindStop     kind = "stop"     // daemon: end the tree within Term and Kill
)

// message is one packet of the control channel.
type message struct {
	Kind kind `json:"kind"`
	// PID comes with up. Grouped says that it runs in the cgroup that was offered. Package entry
	// writes this message.
	PID     int  `json:"pid,omitempty"`
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
	// process itself left out, that were signalled; Forced says that SIGKILL was used.
	Ended     int       `json:"ended,omitempty"`
	Forced    bool      `json:"forced,omitempty"`
	Survivors []Process `json:"survivors,omitempty"`
}

const (
	// maxMessage bounds a packet; the default send buffer of a socket is 212992 bytes.
	maxMessage = 128 << 10
	// maxSurvivors bounds the list that must fit a packet.
	maxSurvivors = 256
)

func parseMessage(data []byte) (message, error) {
	var m message
	if err := json.Unmarshal(data, &m); err != nil {
		return message{}, fmt.Errorf("execgate: control message: %w", err)
	}
	return m, nil
}

// sendMessage writes one packet to the keeper's end, which is a blocking descriptor. An error
// means that the daemon is gone, which the reader of the same channel learns too.
func sendMessage(fd int, m message) error {
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
