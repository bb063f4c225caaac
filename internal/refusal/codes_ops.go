package refusal

// Codes of the operations.
const (
	// CodeRunUnknown is a run id that the store does not hold.
	CodeRunUnknown Code = "run_unknown"
	// CodeRunEnded is a control of a run that has already ended.
	CodeRunEnded Code = "run_ended"
	// CodeRunActive is a retry of a run that is still at work.
	CodeRunActive Code = "run_active"
	// CodeRunSuperseded is a retry of a run after which the task was claimed again.
	CodeRunSuperseded Code = "run_superseded"
	// CodeControlPending is a control while another one of the same run is pending.
	CodeControlPending Code = "control_pending"
	// CodeResultPending is a retry while the run's result is neither applied nor rejected.
	CodeResultPending Code = "result_pending"
	// CodeCommandPending is an action that has to wait for the outcome of a command.
	CodeCommandPending Code = "command_pending"
	// CodeRunNotAccepting is a decision of a run that is in no state to decide.
	CodeRunNotAccepting Code = "run_not_accepting"
	// CodeDecisionRefused is a decision that could not be applied; it may be mended and sent again.
	CodeDecisionRefused Code = "decision_refused"
	// CodeDecisionConflict is a second, different decision of one run.
	CodeDecisionConflict Code = "decision_conflict"
	// CodeIdentityMismatch is a decision that names another run, task, revision, schema or role.
	CodeIdentityMismatch Code = "identity_mismatch"
	// CodeCommandUnknown is a command id that the run's contract does not configure.
	CodeCommandUnknown Code = "command_unknown"
	// CodeCommandReceipt is a command request id that the store does not hold.
	CodeCommandReceipt Code = "command_receipt_unknown"
	// CodeNotRecoverable is a resolve or repair of something that waits for no recovery.
	CodeNotRecoverable Code = "not_awaiting_recovery"
	// CodePermissionUnknown is a permission request id that the store does not hold.
	CodePermissionUnknown Code = "permission_unknown"
	// CodeOptionRefused is an option that was not offered, or that would grant more than once.
	CodeOptionRefused Code = "option_refused"
	// CodeRequestReused is a request id that already stands for another request.
	CodeRequestReused Code = "request_id_reused"
	// CodeOutcomeUnknown is a request that was begun, but whose end is on no record.
	CodeOutcomeUnknown Code = "outcome_unknown"
	// CodeRoleMissing is a domain command without a caller role.
	CodeRoleMissing Code = "role_missing"
)

func init() {
	register([]Entry{
		{CodeRunUnknown, Invalid, "the store holds no run of this id"},
		{CodeRunEnded, Invalid, "the run has already ended"},
		{CodeRunActive, Invalid, "the run is still at work"},
		{CodeRunSuperseded, Invalid, "the task was claimed again after this run"},
		{CodeControlPending, Invalid, "another control of the run is pending"},
		{CodeResultPending, Invalid, "the run's result is neither applied nor rejected yet"},
		{CodeCommandPending, Invalid, "a command of the run has no outcome yet"},
		{CodeRunNotAccepting, Forbidden, "the run is not in a state to submit or to request"},
		{CodeDecisionRefused, Invalid, "the decision cannot be applied; mend it and submit again"},
		{CodeDecisionConflict, Invalid, "the run has already submitted another decision"},
		{CodeIdentityMismatch, Forbidden, "the decision names another run, task, revision, schema or role"},
		{CodeCommandUnknown, Failed, "the run's contract configures no such command"},
		{CodeCommandReceipt, Failed, "the store holds no command request of this id"},
		{CodeNotRecoverable, Failed, "nothing of this id waits for recovery"},
		{CodePermissionUnknown, Invalid, "the store holds no permission request of this id"},
		{CodeOptionRefused, Invalid, "the option was not offered, or grants more than one use"},
		{CodeRequestReused, Invalid, "the request id already stands for another request"},
		{CodeOutcomeUnknown, Storage, "the request was begun, but its outcome is on no record"},
		{CodeRoleMissing, Failed, "the command needs the caller's role"},
	})
}
