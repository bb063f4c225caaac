package runstore

// State is the state of a run's life cycle. Spec: "Lifecycle and result receipts".
type State string

// The states of a run.
const (
	Claimed      State = "claimed"
	Starting     State = "starting"
	Running      State = "running"
	WaitingInput State = "waiting_input"
	WaitingAuth  State = "waiting_auth"
	Cancelling   State = "cancelling"
	Completed    State = "completed"
	Failed       State = "failed"
	Cancelled    State = "cancelled"
	Interrupted  State = "interrupted"
)

// Terminal tells whether a run in this state has ended for good.
func (s State) Terminal() bool {
	return s == Completed || s == Failed || s == Cancelled || s == Interrupted
}
