package refusal

// Codes of the room transport: why a run's conversation with its agent ended. They are also
// the reasons that runs record.
const (
	// CodeTransportFailure is a lost agent or connection.
	CodeTransportFailure Code = "transport_failure"
	// CodeTimeout is a request or turn that did not end within its limit.
	CodeTimeout Code = "timeout"
	// CodeAuthenticationRequired is an agent that wants a login.
	CodeAuthenticationRequired Code = "authentication_required"
	// CodeProtocolError is an error answer, or a broken rule of the protocol.
	CodeProtocolError Code = "protocol_error"
	// CodeConfigurationError is a setting that the agent does not offer or confirm.
	CodeConfigurationError Code = "configuration_error"
	// CodeSessionLoadUnavailable is a session that could not be loaded.
	CodeSessionLoadUnavailable Code = "session_load_unavailable"
	// CodeTurnCancelled is a turn ended on request.
	CodeTurnCancelled Code = "turn_cancelled"
)

func init() {
	register([]Entry{
		{CodeTransportFailure, Failed, "the agent or the connection to it was lost"},
		{CodeTimeout, Failed, "a request to the agent or a prompt turn did not end within its limit"},
		{CodeAuthenticationRequired, Failed, "the agent asks for a login that only the operator can give"},
		{CodeProtocolError, Failed, "the agent answered with an error or broke the protocol"},
		{CodeConfigurationError, Invalid, "the agent does not offer or confirm what the binding asks for"},
		{CodeSessionLoadUnavailable, Failed, "the agent could not load the session"},
		{CodeTurnCancelled, Failed, "the turn was cancelled on request"},
	})
}
