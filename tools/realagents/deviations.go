package main

// What several deviations share.
var (
	// answersError are the facts of a prompt that the agent answers with an error.
	answersError = facts{"run": "failed protocol_error"}
	// answersWell are those of a failing model that the agent keeps to itself: the turn ends as if
	// all were well, and the task stays, since nobody submitted a decision.
	answersWell = facts{"run": endedWell}
	// refusesModel are those of a binding whose model the agent does not offer as an option.
	refusesModel = facts{"run": "failed configuration_error", "stop": "none"}
	// neverAsks are those of a tool that is used without a question.
	neverAsks = facts{"asked": "0"}
)

const (
	errorForPrompt = "it answers the prompt with an error"
	endsAsIfWell   = "its turn ends with end_turn although its model failed; the task stays all the same"
	noModelOption  = "it offers models only for session/set_model, and no option of category model: the run ends before its prompt"
	asksNobody     = "it never asks for a permission"
	rejectCancels  = "its option of kind reject_once cancels the turn"
)

// deviations are where an agent is known to differ, in the order of the recipes.
var deviations = []deviation{
	{"codex", "rejected", facts{"run": "cancelled agent_cancelled", "stop": "cancelled"}, rejectCancels},
	{"codex", "429-once", facts{"run": "failed protocol_error", "stop": "none", "task": stays},
		"it does not ask again after 429, and answers the prompt with an error"},
	{"codex", "429", answersError, errorForPrompt},
	{"codex", "500", answersError, errorForPrompt},

	{"gemini", "killed", facts{"run": "failed session_load_unavailable", "stop": "none", "session": "", "task": stays},
		"it offers to load a session, but answers the load in a new process with an error: it has saved none"},
	{"gemini", "settings", refusesModel, noModelOption},

	{"codex-new", "rejected", facts{"run": "cancelled agent_cancelled", "stop": "cancelled"}, rejectCancels},
	{"codex-new", "429-once", facts{"task": stays}, "it does not ask again after 429, and its turn ends with end_turn all the same"},
	{"codex-new", "429", answersWell, endsAsIfWell},
	{"codex-new", "500", answersWell, endsAsIfWell},

	{"pi", "submit-cli", neverAsks, asksNobody},
	{"pi", "submit-mcp", facts{"task": stays}, "it shows its model no tool of an MCP server; its decisions go over the command line"},
	{"pi", "allowed", neverAsks, asksNobody},
	{"pi", "rejected", facts{"asked": "0", "file": "written"}, asksNobody + ", so there is nothing to reject"},
	{"pi", "cancelled", neverAsks, asksNobody},
	{"pi", "429", answersWell, endsAsIfWell},
	{"pi", "500", answersWell, endsAsIfWell},

	{"kimi", "settings", refusesModel, noModelOption},
	{"kimi", "429", answersWell, endsAsIfWell},
	{"kimi", "500", answersWell, endsAsIfWell},
}
