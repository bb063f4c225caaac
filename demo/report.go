package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"greatminds/fixtures/sample"
)

// report shows what is left as evidence: the merge, the journal, the receipts, a clean
// repository; then what to try in a project of one's own.
func (s *story) report(ctx context.Context) error {
	merge, err := s.git(ctx, "log", "-1", "--format=%h %s%n         parents %p, by %an <%ae>", "main")
	if err != nil {
		return err
	}
	s.plain("\nmerged:  %s", merge)
	if err := s.reportJournal(); err != nil {
		return err
	}
	if err := s.reportReceipts(ctx); err != nil {
		return err
	}
	dirty, err := s.git(ctx, "status", "--porcelain", "--untracked-files=all")
	if err != nil {
		return err
	}
	if dirty != "" {
		return fmt.Errorf("the repository is not clean after the merge:\n%s", dirty)
	}
	s.plain("clean:   git status shows nothing; the task's worktree and branch are gone")
	s.plain("took:    %.2fs", s.Now().Sub(s.began).Seconds())
	if !s.Brief {
		s.plain("\n%s", nextSteps)
	}
	return nil
}

func (s *story) reportJournal() error {
	data, err := os.ReadFile(filepath.Join(s.project, ".greatminds", "journal.ndjson"))
	if err != nil {
		return err
	}
	s.plain("journal:")
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		var e struct{ T, Actor, From, To, Reason string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return fmt.Errorf("read the journal: %w", err)
		}
		s.plain("  %s  %-17s %s → %s  (%s)", e.T, e.Actor, e.From, e.To, e.Reason)
	}
	return nil
}

func (s *story) reportReceipts(ctx context.Context) error {
	out, err := s.cli(ctx, "", "run", "status", "--json", "--project-dir", s.project)
	if err != nil {
		return err
	}
	var doc struct {
		Results map[string]struct {
			Status, Role string
			Envelope     struct{ Decision string }
		}
		Commands map[string]struct {
			CommandID string `json:"command_id"`
			Status    string
			ExitCode  *int     `json:"exit_code"`
			Started   *float64 `json:"started_at"`
			Finished  *float64 `json:"finished_at"`
		}
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		return fmt.Errorf("read the status: %w", err)
	}
	s.plain("receipts:")
	for _, st := range sample.Stages {
		for id, r := range doc.Results {
			if r.Role == st.Role {
				s.plain("  result  %.12s  %-18s %s: %s", id, r.Role, r.Envelope.Decision, r.Status)
			}
		}
	}
	for id, c := range doc.Commands {
		if c.ExitCode != nil && c.Started != nil && c.Finished != nil {
			s.plain("  command %-15s %s: %s, exit status %d, %.2fs", id, c.CommandID, c.Status, *c.ExitCode, *c.Finished-*c.Started)
		}
	}
	return nil
}

const nextSteps = `Next, in a project of your own:
  greatminds setup                                  # writes coordination/execution.yaml
  $EDITOR coordination/execution.yaml               # name your agent and its bindings
  greatminds task new --stream product --title ...  # file a task, then: greatminds plan ID ...
  greatminds coordd                                 # supervise it
  greatminds run status                             # what runs, what waits, and what helps
See the sample again with: greatminds demo --keep`
