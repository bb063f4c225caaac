package refusal

// Codes of the room tasks.
const (
	// CodeTaskYAML is a task file that is not the YAML we read.
	CodeTaskYAML Code = "task_yaml"
	// CodeTaskInvalid is a task whose header or blocks break a rule.
	CodeTaskInvalid Code = "task_invalid"
	// CodeTaskFile is an entry of a queue folder that is no task file: a link, a folder, a pipe.
	CodeTaskFile Code = "task_file"
	// CodeTaskLegacy is a task in the old Markdown format.
	CodeTaskLegacy Code = "task_legacy"
	// CodeTaskNotFound is a task that stands in no queue.
	CodeTaskNotFound Code = "task_not_found"
	// CodeTaskAmbiguous is a short id that several tasks answer to.
	CodeTaskAmbiguous Code = "task_ambiguous"
	// CodeTaskDuplicate is one task that stands in several queues.
	CodeTaskDuplicate Code = "task_duplicate"
	// CodeTaskExists is a number that another task has already.
	CodeTaskExists Code = "task_exists"
	// CodeTaskThere is a move to the queue that the task is in.
	CodeTaskThere Code = "task_already_there"
	// CodeQueueUnknown is a word that names no queue.
	CodeQueueUnknown Code = "queue_unknown"
	// CodeRevisionStale is a task that has changed since it was read.
	CodeRevisionStale Code = "revision_stale"
	// CodeTaskBusy is a task with an open operation of the daemon.
	CodeTaskBusy Code = "task_busy"
	// CodeTaskLocked is a task whose lock somebody else keeps.
	CodeTaskLocked Code = "task_locked"
	// CodeTaskStorage is a task file, counter or folder that could not be read or written.
	CodeTaskStorage Code = "task_storage"
	// CodeJournalCorrupt is a task journal with an unreadable line that is not its last.
	CodeJournalCorrupt Code = "journal_corrupt"
	// CodeRoleUnknown is a caller without a role of the schema.
	CodeRoleUnknown Code = "role_unknown"
	// CodeIntake is a wrong argument of `task new`.
	CodeIntake Code = "intake"
	// CodeNoTransition is a move that no row of the transition table has.
	CodeNoTransition Code = "no_transition"
	// CodeTransitionRole is a move that the table leaves to other roles.
	CodeTransitionRole Code = "transition_role"
	// CodeScopeMismatch is a destination that belongs to another scope.
	CodeScopeMismatch Code = "scope_mismatch"
	// CodeNotReady is a task that lacks the block or flag its destination needs.
	CodeNotReady Code = "task_not_ready"
	// CodeCheckFailed is a named check of the transition table that does not hold.
	CodeCheckFailed Code = "check_failed"
	// CodeGateFailed is a stand gate that is not passed.
	CodeGateFailed Code = "gate_failed"
	// CodeBlockKind is a word that is no kind of block of this stream.
	CodeBlockKind Code = "block_kind"
	// CodeBlockReserved is a block field that only the service sets.
	CodeBlockReserved Code = "block_field_reserved"
	// CodeBlockAuthor is a block that the role may not file, or that names another author.
	CodeBlockAuthor Code = "block_author"
	// CodeBlockQueue is a block that the task's queue does not take.
	CodeBlockQueue Code = "block_queue"
	// CodeBlockField is a block field that is missing or has a wrong value.
	CodeBlockField Code = "block_field"
	// CodeBlockRule is a block that contradicts the blocks before it.
	CodeBlockRule Code = "block_rule"
	// CodeStandEvidence is a tests block without the stand evidence its plan asks for.
	CodeStandEvidence Code = "stand_evidence"
	// CodeWorkspaceIsolation is work done outside the task's own worktree.
	CodeWorkspaceIsolation Code = "workspace_isolation"
	// CodeFileEvidence is a named file without a change to show for it.
	CodeFileEvidence Code = "file_evidence"
	// CodeDecisionForm is a submission that is no decision.
	CodeDecisionForm Code = "decision_form"
	// CodeDecisionIdentity is a decision that claims another identity than its run's.
	CodeDecisionIdentity Code = "decision_identity"
	// CodePayloadField is a payload field that is unknown, missing or of a wrong type.
	CodePayloadField Code = "payload_field"
	// CodeArtifact is an artifact that is no file inside the workspace.
	CodeArtifact Code = "artifact"
	// CodeCommandEvidence is a command request that does not count as evidence.
	CodeCommandEvidence Code = "command_evidence"
)

func init() {
	register([]Entry{
		{CodeTaskYAML, Invalid, "the task file is not the YAML that tasks are written in"},
		{CodeTaskInvalid, Invalid, "the task's header or blocks break a rule"},
		{CodeTaskFile, Storage, "an entry of a queue folder is no task file"},
		{CodeTaskLegacy, Invalid, "the task is in the old Markdown format"},
		{CodeTaskNotFound, Failed, "the task stands in no queue"},
		{CodeTaskAmbiguous, Failed, "several tasks answer to this short id"},
		{CodeTaskDuplicate, Storage, "the task stands in more than one queue"},
		{CodeTaskExists, Failed, "another task has this number already"},
		{CodeTaskThere, Failed, "the task is in that queue already"},
		{CodeQueueUnknown, Failed, "the schema has no such task queue"},
		{CodeRevisionStale, Storage, "the task has changed since it was read"},
		{CodeTaskBusy, Storage, "an operation of the daemon on the task is not finished"},
		{CodeTaskLocked, Storage, "somebody else keeps the task's lock"},
		{CodeTaskStorage, Storage, "a task file, counter or folder could not be read or written"},
		{CodeJournalCorrupt, Storage, "a line of the task journal cannot be read"},
		{CodeRoleUnknown, Failed, "the caller has no role of the schema"},
		{CodeIntake, Failed, "an argument of the new task is missing or wrong"},
		{CodeNoTransition, Forbidden, "the transition table has no such move"},
		{CodeTransitionRole, Forbidden, "the transition table leaves the move to other roles"},
		{CodeScopeMismatch, Invalid, "the destination belongs to another scope"},
		{CodeNotReady, Invalid, "the task lacks the block or flag that its destination needs"},
		{CodeCheckFailed, Invalid, "a check of the transition table does not hold"},
		{CodeGateFailed, Invalid, "the stand gate is not passed"},
		{CodeBlockKind, Invalid, "the word names no kind of block of this stream"},
		{CodeBlockReserved, Forbidden, "only the service sets this block field"},
		{CodeBlockAuthor, Forbidden, "the role may not file this block, or the block names another author"},
		{CodeBlockQueue, Invalid, "the task's queue does not take this kind of block"},
		{CodeBlockField, Invalid, "a block field is missing or has a wrong value"},
		{CodeBlockRule, Invalid, "the block contradicts the blocks before it"},
		{CodeStandEvidence, Invalid, "the tests block lacks the stand evidence that its plan asks for"},
		{CodeWorkspaceIsolation, Invalid, "the work was done outside the task's own worktree"},
		{CodeFileEvidence, Invalid, "a named file has no change to show"},
		{CodeDecisionForm, Invalid, "the submission is no decision"},
		{CodeDecisionIdentity, Forbidden, "the decision claims another identity than its run's"},
		{CodePayloadField, Invalid, "a payload field is unknown, missing or of a wrong type"},
		{CodeArtifact, Invalid, "an artifact is no file inside the workspace"},
		{CodeCommandEvidence, Invalid, "a command request does not count as evidence"},
	})
}
