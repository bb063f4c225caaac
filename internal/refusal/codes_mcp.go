package refusal

// Codes of the supervisor's MCP server.
const (
	// CodeToolsBusy is a tool call that came while as many as the server takes were open.
	CodeToolsBusy Code = "tools_busy"
)

func init() {
	register([]Entry{
		{CodeToolsBusy, Storage, "the run's MCP server has as many open tool calls as it takes"},
	})
}
