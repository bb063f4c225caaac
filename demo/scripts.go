package demo

import (
	"os"
	"path/filepath"

	"greatminds/fixtures/agent"
	"greatminds/fixtures/sample"
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
	for _, st := range sample.Stages {
		path := s.scriptPath(st.ID)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, sample.Script(st.ID, s.base, s.Now()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
