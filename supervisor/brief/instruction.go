package brief

import (
	"fmt"
	"strings"

	"greatminds/contract"
)

// instruction is the paragraph before the document: what to keep to, and how to reach the
// supervisor.
func instruction(d Document, tools contract.SupervisorTools) string {
	start := fmt.Sprintf("You are the %s of this project and work on task %s in the folder %s. "+
		"The JSON below is your whole assignment: the task, what your role does and must not do, and the moves you may choose. "+
		"Work only on this task and only in that folder; do not look into other queues and report no sign of life. ",
		d.Role, d.TaskID, d.Workspace)
	const end = "A finished turn without a decision moves nothing."
	switch tools {
	case contract.ToolsMCP:
		return start + byMCP() + "When you are done, submit exactly one decision with the tool `submit`; " +
			"if it is refused, mend it and submit again in this turn. " + end
	case contract.ToolsCLI:
		return start + byCLI(d, "Call the project's command line as") + "When you are done, submit exactly one decision with " + submitByCLI + "; " +
			"if it is refused, mend it and submit again in this turn. " + end
	}
	return start + byMCP() + byCLI(d, "Where you do not have these tools, call the project's command line as") +
		"When you are done, submit exactly one decision, with the tool `submit` or with " + submitByCLI + "; " +
		"if it is refused, mend it and submit again in this turn. " + end
}

const submitByCLI = "`run submit --json '{\"decision\": ..., \"payload\": {...}}'`"

// byCLI tells of the command line; lead is how the sentence begins.
func byCLI(d Document, lead string) string {
	return lead + " " + strings.Join(d.CLIArgv, " ") + " (cli_argv), with the environment you were given: " +
		"`run command COMMAND_ID --request-id ID --wait SECONDS` asks the supervisor to run a configured command, " +
		"`run contract` prints this assignment again. "
}

// byMCP tells of the tools of our own MCP server.
func byMCP() string {
	return "Use the tools of the MCP server `" + contract.OwnMCPServer + "`: `command` asks the supervisor to run a configured command, " +
		"`command_status` shows its receipt, `contract` shows this assignment again. " +
		"If your tools are loaded on demand, search for them by these names first. "
}
