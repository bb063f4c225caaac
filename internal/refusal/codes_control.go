package refusal

// Codes of the control API between the command line and the daemon.
const (
	// CodeDaemonBusy is a call that came while as many calls as the daemon takes were open.
	CodeDaemonBusy Code = "daemon_busy"
	// CodeDaemonStopping is a call that came while the daemon was on its way out.
	CodeDaemonStopping Code = "daemon_stopping"
	// CodeDaemonSilent is a lease that is held while its holder answers no call.
	CodeDaemonSilent Code = "daemon_silent"
	// CodeAPIVersion is a caller and a daemon of different API versions.
	CodeAPIVersion Code = "api_version"
	// CodeUnknownOperation is an operation that this daemon does not have.
	CodeUnknownOperation Code = "unknown_operation"
	// CodeRequestTooLarge is a call larger than the daemon reads.
	CodeRequestTooLarge Code = "request_too_large"
	// CodeRequestMalformed is a call that is not valid JSON of its shape.
	CodeRequestMalformed Code = "request_malformed"
	// CodeSocketUnsupported is a file system that cannot hold the control socket.
	CodeSocketUnsupported Code = "socket_unsupported"
	// CodeSocketTaken is something in the socket's place that is no socket.
	CodeSocketTaken Code = "socket_taken"
	// CodeForeignRuntime is a runtime folder that belongs to another user.
	CodeForeignRuntime Code = "foreign_runtime"
	// CodeForeignPeer is a call by a process of another user.
	CodeForeignPeer Code = "foreign_peer"
	// CodeInternal is a broken invariant of our own, reported instead of an answer.
	CodeInternal Code = "internal"
)

func init() {
	register([]Entry{
		{CodeDaemonBusy, Storage, "the daemon has as many open calls as it takes"},
		{CodeDaemonStopping, Storage, "the daemon is stopping and takes no new call"},
		{CodeDaemonSilent, Storage, "the project's lease is held, but its holder does not answer"},
		{CodeAPIVersion, Storage, "the command and the running daemon speak different API versions"},
		{CodeUnknownOperation, Invalid, "the running daemon does not know the operation"},
		{CodeRequestTooLarge, Invalid, "the request is larger than the daemon reads"},
		{CodeRequestMalformed, Invalid, "the request is not valid JSON of the expected shape"},
		{CodeSocketUnsupported, Storage, "the file system of the runtime folder cannot hold a socket"},
		{CodeSocketTaken, Storage, "a file that is no socket stands where the control socket belongs"},
		{CodeForeignRuntime, Storage, "the runtime folder belongs to another user"},
		{CodeForeignPeer, Forbidden, "the caller runs as another user than the daemon"},
		{CodeInternal, Failed, "an internal invariant is broken; the daemon's log has the details"},
	})
}
