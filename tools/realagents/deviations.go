package main

// noAnswer are the facts of a prompt that the agent answers with an error.
var noAnswer = facts{"run": "failed protocol_error"}

// deviations are where an agent is known to differ, in the order of the recipes.
var deviations = []deviation{
	{"codex", "rejected", facts{"run": "cancelled agent_cancelled", "stop": "cancelled"},
		"its option of kind reject_once is abort: the turn ends as cancelled"},
	{"codex", "429-once", facts{"run": "failed protocol_error", "stop": "none", "task": stays},
		"it does not ask again after 429, and answers the prompt with an error"},
	{"codex", "429", noAnswer, "it answers the prompt with an error"},
	{"codex", "500", noAnswer, "it answers the prompt with an error after two more requests"},
	{"gemini", "killed", facts{"run": "failed session_load_unavailable", "stop": "none", "session": "", "task": stays},
		"it offers to load a session, but answers the load in a new process with an error: it has saved none"},
	{"gemini", "settings", facts{"run": "failed configuration_error", "stop": "none"},
		"it offers models only for session/set_model, and no option of category model: the run ends before its prompt"},
}
