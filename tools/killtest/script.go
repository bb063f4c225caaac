package main

import (
	"encoding/json"
	"fmt"
	"time"
)

// stage is one binding of the pipeline.
type stage struct{ id, role string }

var stages = []stage{{"developer", "DEVELOPER"}, {"tester", "TESTER"}, {"reviewer", "ARCHITECT-REVIEWER"}}

// commandID is the configured command of every project.
const commandID = "check"

// workFile is the file of one start of the developer; its text is the worktree, which names the task.
const workFile = "work-${launch}.txt"

type step = map[string]any

// agentScript is what the agents of a stage do, start by start. base is the commit that tasks start
// from.
func agentScript(stage, base string, p projectPlan, now time.Time) ([]byte, error) {
	launches := make([]any, 0, scriptedStarts+1)
	for i := range scriptedStarts {
		steps := []any{step{"handshake": step{"sessionId": "session-${launch}"}}, step{"prompt": "p"}}
		if p.spawns[i] {
			child := step{"name": "child-${launch}", "setsid": true}
			if p.deaf[i] {
				child["ignore_signals"] = []any{"TERM"}
			}
			steps = append(steps, step{"spawn": child})
		}
		if stage == "developer" && p.asks[i] {
			steps = append(steps, submit("needs_input", step{"question": "Which of the two is meant?"}))
		} else {
			steps = append(steps, work(stage, base, now)...)
		}
		launches = append(launches, step{"steps": append(steps, step{"end_turn": "p"})})
	}
	last := append([]any{step{"handshake": step{"sessionId": "session-${launch}"}}, step{"prompt": "p"}}, work(stage, base, now)...)
	launches = append(launches, step{"steps": append(last, step{"end_turn": "p"})})
	return json.Marshal(step{"version": 1, "launches": launches})
}

// work is what an agent of a stage does between prompt and end of turn.
func work(stage, base string, now time.Time) []any {
	switch stage {
	case "developer":
		return []any{
			step{"ask": "edit", "title": "Write the file", "kind": "execute"}, step{"await": "edit", "within_ms": 60000},
			step{"file": step{"op": "write", "path": "${cwd}/" + workFile, "text": "${cwd}\n"}},
			handoff("feature_test", step{"kind": "implementation", "base_commit": base, "files": []any{workFile},
				"ready_for_test": true, "notes": "Done."}),
		}
	case "tester":
		request := commandID + "-${launch}"
		return []any{
			step{"cli": []any{"run", "command", commandID, "--request-id", request, "--wait", "30"}},
			handoff("feature_review", step{"kind": "tests", "base_commit": base, "test_files": []any{"README"},
				"command_request_id": request, "gate_check_result": "n/a", "gate_check_at": now.UTC().Format(time.RFC3339),
				"gate_check_commit": base, "ready_for_review": true, "notes": "It passes."}),
		}
	case "reviewer":
		return []any{handoff("verified", step{"kind": "review", "outcome": "approved", "commit": base, "notes": "Fine."})}
	}
	panic("killtest: no stage " + stage)
}

func handoff(to string, block step) step {
	return submit("handoff", step{"to_queue": to, "blocks": []any{block}})
}

func submit(decision string, payload step) step {
	text, err := json.Marshal(step{"decision": decision, "payload": payload})
	if err != nil {
		panic(fmt.Sprintf("killtest: a plain value does not encode: %v", err))
	}
	return step{"cli": []any{"run", "submit", "--json", string(text)}}
}
