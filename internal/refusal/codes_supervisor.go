package refusal

// Codes of the supervisor.
const (
	// CodeDaemonRunning is a second daemon on one project.
	CodeDaemonRunning Code = "daemon_running"
	// CodeLeaseBusy is a lease that another process holds and does not give up in time.
	CodeLeaseBusy Code = "lease_busy"
	// CodeOriginalRunning is the Python original at work in the project.
	CodeOriginalRunning Code = "original_running"
	// CodeLaunch is an executable that cannot be started.
	CodeLaunch Code = "launch_failed"
	// CodeMCPServer is an MCP server of the contract that cannot be passed to an agent.
	CodeMCPServer Code = "mcp_server_unusable"
	// CodePromptTooLarge is a prompt beyond the binding's max_prompt_bytes or max_session_input_bytes.
	CodePromptTooLarge Code = "input_budget_exceeded"
	// CodeUsageBudget is a prompt that its session's reported cost, or what is not known of it, holds back.
	CodeUsageBudget Code = "reported_usage_budget"
	// CodeProcessUnknown is a recorded process whose fate cannot be told.
	CodeProcessUnknown Code = "process_unknown"
	// CodePermissionGone is an answer to a permission request that can no longer be delivered.
	CodePermissionGone Code = "permission_gone"
	// CodePlatform is a kernel, file system or tool that is too old or cannot do what is needed.
	CodePlatform Code = "platform"
)

func init() {
	register([]Entry{
		{CodeDaemonRunning, Storage, "another daemon already supervises the project"},
		{CodeLeaseBusy, Storage, "another process holds the project's lease"},
		{CodeOriginalRunning, Storage, "the Python original works in the project"},
		{CodeLaunch, Failed, "an agent's executable cannot be started"},
		{CodeMCPServer, Failed, "an MCP server of the contract cannot be passed to an agent"},
		{CodePromptTooLarge, Invalid, "a prompt is larger than the binding allows"},
		{CodeUsageBudget, Forbidden, "a session's reported cost lets no further prompt go"},
		{CodeProcessUnknown, Storage, "the fate of a recorded process cannot be told"},
		{CodePermissionGone, Forbidden, "a permission request can no longer be answered"},
		{CodePlatform, Failed, "the machine cannot do what is needed"},
	})
}
