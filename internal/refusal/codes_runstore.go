package refusal

// Codes of the run store.
const (
	// CodeAccountHold is the end of an account's hold that is not the one on record.
	CodeAccountHold Code = "account_hold_changed"
	// CodeStoreMalformed is a snapshot or journal that does not parse, or does not fit together.
	CodeStoreMalformed Code = "store_malformed"
	// CodeStoreNewer is a snapshot that a newer version wrote.
	CodeStoreNewer Code = "store_newer"
	// CodeStoreConflict is a snapshot that another tool has written beside a journal that goes on
	// from another one.
	CodeStoreConflict Code = "store_conflict"
	// CodeStoreUnreadable is a store file or folder that cannot be read or made.
	CodeStoreUnreadable Code = "store_unreadable"
	// CodeStoreWrite is a change that could not be written and is not in effect.
	CodeStoreWrite Code = "store_write_failed"
	// CodeStoreUncertain is a change that may or may not be in effect.
	CodeStoreUncertain Code = "store_uncertain"
	// CodeStoreFailed is a store that can no longer be written by this process.
	CodeStoreFailed Code = "store_failed"
	// CodeStoreClosed is a change after the store was closed.
	CodeStoreClosed Code = "store_closed"
	// CodeStoreBusy is a store that changed under every attempt to read it.
	CodeStoreBusy Code = "store_busy"
	// CodeHistoryUnreadable is a question that the history of finished work cannot answer.
	CodeHistoryUnreadable Code = "history_unreadable"
	// CodePinned is a pinned document that is missing or holds other bytes than its name says.
	CodePinned Code = "pinned_document"
	// CodeRunTransition is a change of state that the life cycle does not have.
	CodeRunTransition Code = "run_transition"
	// CodeEventReused is an event id that already stands for other contents.
	CodeEventReused Code = "event_id_reused"
	// CodeTransition is a change of status that a result, command, permission, control or
	// operation does not have.
	CodeTransition Code = "status_transition"
	// CodeIdentity is an id that does not have the form of one, or is taken.
	CodeIdentity Code = "identity_invalid"
	// CodeEventLimit is an event limit out of range.
	CodeEventLimit Code = "event_limit"
	// CodeRecordInvalid is a record that cannot be stored: a value without a JSON form.
	CodeRecordInvalid Code = "record_invalid"
)

func init() {
	register([]Entry{
		{CodeAccountHold, Failed, "the account's hold is not the one that was named"},
		{CodeStoreMalformed, Storage, "the run store's files do not parse or do not fit together; nothing was changed"},
		{CodeStoreNewer, Storage, "a newer version wrote the run store"},
		{CodeStoreConflict, Storage, "another tool has written the run store while a journal of ours was open; nothing was changed"},
		{CodeStoreUnreadable, Storage, "a file or folder of the run store cannot be read or made"},
		{CodeStoreWrite, Storage, "a change could not be written and is not in effect"},
		{CodeStoreUncertain, Storage, "a change may or may not be in effect"},
		{CodeStoreFailed, Storage, "the run store can no longer be written by this process"},
		{CodeStoreClosed, Storage, "the run store is closed"},
		{CodeStoreBusy, Storage, "the run store changed under every attempt to read it"},
		{CodeHistoryUnreadable, Storage, "the history of finished work is damaged where it was needed; nothing was changed"},
		{CodePinned, Storage, "a pinned document is missing or damaged"},
		{CodeRunTransition, Invalid, "the run's life cycle has no such transition"},
		{CodeEventReused, Invalid, "the event id already stands for other contents"},
		{CodeTransition, Invalid, "the record's life cycle has no such change of status"},
		{CodeIdentity, Invalid, "an id does not have the form of one, or is taken"},
		{CodeEventLimit, Invalid, "the event limit is out of range"},
		{CodeRecordInvalid, Invalid, "a record holds a value that cannot be stored"},
	})
}
