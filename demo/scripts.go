package demo

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"greatminds/fixtures/agent"
)

// AgentCommand is the hidden command by which this program becomes the scripted agent.
const AgentCommand = "demo-agent"

// AgentMain is the scripted agent's main function.
func AgentMain(args []string) int { return agent.Main(args) }

func (s *story) scriptPath(stage string) string {
	return filepath.Join(s.root, "agents", stage, "agent-script.json")
}

// writeScripts writes what each scripted agent does. They stand outside the project, since
// whatever lies in it belongs to the source.
func (s *story) writeScripts() error {
	if len(s.Agent) > 0 {
		return nil
	}
	now := s.Now().UTC().Format(time.RFC3339)
	for stage, steps := range map[string][]any{"developer": developerSteps(s.base), "tester": testerSteps(s.base, now), "reviewer": reviewerSteps(s.base)} {
		doc := map[string]any{"version": 1, "launches": []any{map[string]any{"steps": steps}}}
		data, err := json.MarshalIndent(doc, "", " ")
		if err != nil {
			return err
		}
		path := s.scriptPath(stage)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

type step = map[string]any

// developerSteps asks before it edits: the binding's policy allows what stays inside the
// workspace, without a person.
func developerSteps(base string) []any {
	return []any{
		step{"handshake": step{}}, step{"prompt": "p"},
		step{"say": "Greet drops names[0]. I mend the slice."},
		step{"ask": "edit", "title": "Edit greeter.go", "kind": "edit",
			"tool": step{"locations": []any{step{"path": "${cwd}/greeter.go"}}}},
		step{"await": "edit", "within_ms": 20000},
		step{"file": step{"op": "write", "path": "${cwd}/greeter.go", "text": fixed}},
		step{"cli": []any{"run", "submit", "--json", decision("feature_test", step{"kind": "implementation", "base_commit": base,
			"files": []any{"greeter.go"}, "ready_for_test": true, "notes": "Greet joins all names."})}},
		step{"say": "Done."}, step{"end_turn": "p"},
	}
}

// testerSteps has the supervisor run the real `go test`, and cites its receipt.
func testerSteps(base, now string) []any {
	return []any{
		step{"handshake": step{}}, step{"prompt": "p"},
		step{"cli": []any{"run", "command", "unit-tests", "--request-id", "demo-unit-tests", "--wait", "200"}},
		step{"cli": []any{"run", "submit", "--json", decision("feature_review", step{"kind": "tests", "base_commit": base,
			"test_files": []any{"greeter_test.go"}, "command_request_id": "demo-unit-tests", "gate_check_result": "n/a",
			"gate_check_at": now, "gate_check_commit": base, "ready_for_review": true, "notes": "go test passes."})}},
		step{"end_turn": "p"},
	}
}

func reviewerSteps(base string) []any {
	return []any{
		step{"handshake": step{}}, step{"prompt": "p"},
		step{"cli": []any{"run", "submit", "--json", decision("verified", step{"kind": "review", "outcome": "approved",
			"commit": base, "notes": "One slice, covered by the test."})}},
		step{"end_turn": "p"},
	}
}

func decision(to string, block step) string {
	b, err := json.Marshal(step{"decision": "handoff", "payload": step{"to_queue": to, "blocks": []any{block}}})
	if err != nil {
		panic(fmt.Sprintf("demo: a plain decision does not encode: %v", err))
	}
	return string(b)
}
