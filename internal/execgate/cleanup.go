package execgate

import (
	"encoding/json"
	"fmt"
	"time"
)

// CleanupMember is the name under which runs and command receipts carry a [Cleanup].
const CleanupMember = "cleanup"

// Cleanup is the durable form of an [Ending]: what was ended, how, how long that took, and what it
// was allowed to take. Times are seconds.
type Cleanup struct {
	// How is one of the How constants.
	How string `json:"how"`
	// Ended counts the processes that were ended beside the recorded one.
	Ended int `json:"ended"`
	// Seconds is the time from the stop, or the process's own end, to the proof that nothing is left.
	Seconds float64 `json:"seconds"`
	// TermSeconds and KillSeconds are the limits between SIGTERM and SIGKILL, and of the killing.
	TermSeconds float64 `json:"term_seconds"`
	KillSeconds float64 `json:"kill_seconds"`
}

// Cleanup returns the record of an ending that had the limits g, in JSON.
func (e Ending) Cleanup(g Grace) json.RawMessage {
	if g.Kill <= 0 {
		g.Kill = defaultKill
	}
	data, err := json.Marshal(Cleanup{How: e.How, Ended: e.Ended, Seconds: e.Took.Round(time.Microsecond).Seconds(),
		TermSeconds: max(g.Term, 0).Seconds(), KillSeconds: g.Kill.Seconds()})
	if err != nil {
		panic(fmt.Sprintf("execgate: ending %+v: %v", e, err)) // numbers and a word
	}
	return data
}
