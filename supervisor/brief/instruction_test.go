package brief

import (
	"strings"
	"testing"

	"greatminds/contract"
)

// What agents are told who only have the command line is known to work with many of them, and does
// not change because others have more.
//
// E-012
func TestTheInstructionForTheCommandLineStaysAsItIs(t *testing.T) {
	const want = "You are the DEVELOPER of this project and work on task 0001-x in the folder /w. " +
		"The JSON below is your whole assignment: the task, what your role does and must not do, and the moves you may choose. " +
		"Work only on this task and only in that folder; do not look into other queues and report no sign of life. " +
		"Call the project's command line as /bin/coordd greatminds (cli_argv), with the environment you were given: " +
		"`run command COMMAND_ID --request-id ID --wait SECONDS` asks the supervisor to run a configured command, " +
		"`run contract` prints this assignment again. " +
		"When you are done, submit exactly one decision with `run submit --json '{\"decision\": ..., \"payload\": {...}}'`; " +
		"if it is refused, mend it and submit again in this turn. A finished turn without a decision moves nothing."
	d := Document{Role: "DEVELOPER", TaskID: "0001-x", Workspace: "/w", CLIArgv: []string{"/bin/coordd", "greatminds"}}
	if got := instruction(d, contract.ToolsCLI); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for tools, words := range map[contract.SupervisorTools]struct{ has, lacks []string }{
		contract.ToolsMCP:  {has: []string{"MCP server `greatminds`", "the tool `submit`", "`command`", "`command_status`", "`contract`"}, lacks: []string{"cli_argv", "run submit"}},
		contract.ToolsBoth: {has: []string{"MCP server `greatminds`", "the tool `submit`", "cli_argv", "`run submit --json"}},
	} {
		got := instruction(d, tools)
		for _, w := range append(words.has, "exactly one decision", "mend it and submit again", "moves nothing.") {
			if !strings.Contains(got, w) {
				t.Errorf("%s: %q is not in %s", tools, w, got)
			}
		}
		for _, w := range words.lacks {
			if strings.Contains(got, w) {
				t.Errorf("%s: %q is in %s", tools, w, got)
			}
		}
	}
}
