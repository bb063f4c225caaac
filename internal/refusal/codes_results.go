package refusal

// Codes of supervisor/results: the application of decisions.
const (
	// CodeResultBusy is a result whose run has not ended yet.
	CodeResultBusy Code = "result_run_active"
	// CodeResultRejected is a decision that does not count when it is applied.
	CodeResultRejected Code = "result_rejected"
	// CodeResultRecovery is an operation whose state a person has to look at.
	CodeResultRecovery Code = "result_needs_recovery"
	// CodeResultSettled is a repair of a result that needs none.
	CodeResultSettled Code = "result_settled"
	// CodeOperationBegun is an operation that can only be finished, not given up.
	CodeOperationBegun Code = "operation_begun"
	// CodeOperationForeign is a task file that somebody else changed while an operation on it was open.
	CodeOperationForeign Code = "operation_foreign_edit"
	// CodeArtifactChanged is an artifact whose bytes changed since the decision was judged.
	CodeArtifactChanged Code = "artifact_changed"
)

func init() {
	register([]Entry{
		{CodeResultBusy, Storage, "the run behind a result has not ended yet"},
		{CodeResultRejected, Invalid, "a decision does not count when it is applied"},
		{CodeResultRecovery, Storage, "an operation cannot be finished without a person"},
		{CodeResultSettled, Invalid, "there is nothing to repair or to give up"},
		{CodeOperationBegun, Storage, "an operation has gone too far to be given up"},
		{CodeOperationForeign, Storage, "a task file was changed by somebody else while an operation on it was open"},
		{CodeArtifactChanged, Storage, "an artifact changed after its decision was judged"},
	})
}
