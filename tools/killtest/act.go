package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

const planner = "ARCHITECT-PLANNER"

// act is one thing that the operator does, and what its acknowledgement means.
type act struct {
	role string
	args []string
	// title is that of the task which it files, else empty.
	title string
	// intend is noted before the call, since it may have its effect unseen.
	intend func(*ledger)
	// acknowledged is noted when the call says that it is done.
	acknowledged func(l *ledger, out string)
}

// do performs an act to its end.
func (p *project) do(ctx context.Context, a act) (*call, error) {
	c, err := p.beginAct(ctx, a)
	if err != nil {
		return nil, err
	}
	<-c.ended
	p.judgeCall(c, ctx.Err() != nil)
	p.endAct(a, c)
	return c, ctx.Err()
}

func (p *project) beginAct(ctx context.Context, a act) (*call, error) {
	if a.intend != nil {
		p.ledger.with(a.intend)
	}
	return p.begin(ctx, a.role, append(append([]string{}, a.args...), "--project-dir", p.dir)...)
}

// endAct notes what an ended call acknowledged.
func (p *project) endAct(a act, c *call) {
	if c.done() && a.acknowledged != nil {
		p.ledger.with(func(l *ledger) { a.acknowledged(l, c.out) })
	}
}

var createdTask = regexp.MustCompile(`([0-9]{4}-[a-z0-9-]+)\.yaml`)

// fileTask files a task under a title that no other task has.
func fileTask(title string) act {
	return act{role: planner, title: title,
		args: []string{"task", "new", "--stream", "product", "--title", title, "--kind", "bugfix", "--scope", "backend"},
		acknowledged: func(l *ledger, out string) {
			if m := createdTask.FindStringSubmatch(out); m != nil {
				l.filed[m[1]] = title
			}
		}}
}

func (p *project) planTask(id string) act {
	return act{role: planner,
		args: []string{"plan", id, "--triage", "clear", "--scope", "backend", "--assignee-role", "DEVELOPER", "--base-commit", p.base,
			"--plan-kind", "bugfix", "--mode", "A", "--stand-required", "false", "--body", "write the file"},
		acknowledged: func(l *ledger, _ string) { l.planned[id] = true }}
}

func answer(p permissionRow, option string) act {
	return act{args: []string{"run", "permission", p.ID, "--option", option},
		intend:       func(l *ledger) { l.asked[p.ID] = p.RunID },
		acknowledged: func(l *ledger, _ string) { l.answered[p.ID] = option }}
}

func setPaused(paused bool) act {
	verb := map[bool]string{true: "pause", false: "resume"}[paused]
	return act{args: []string{"run", verb}, intend: func(l *ledger) { l.paused = nil },
		acknowledged: func(l *ledger, _ string) { l.paused = &paused }}
}

func cancelRun(run string) act {
	return act{args: []string{"run", "cancel", run}, acknowledged: func(l *ledger, _ string) { l.cancelled[run] = true }}
}

func retryRun(run string) act {
	return act{args: []string{"run", "retry", run}, acknowledged: func(l *ledger, _ string) { l.retried[run] = true }}
}

func resolveCommand(request string) act {
	return act{args: []string{"run", "command-resolve", request, "--reason", "looked at it"},
		acknowledged: func(l *ledger, _ string) { l.resolved[request] = true }}
}

func repair(operation string, abandon bool) act {
	args := []string{"run", "repair", "--operation", operation}
	if abandon {
		args = append(args, "--abandon", "--reason", "given up")
	}
	return act{args: args}
}

var (
	// namedCommand is a command in a remedy, up to where the sentence goes on.
	namedCommand = regexp.MustCompile("greatminds ([a-z][^,;:`]*)")
	// namedLock is a file in a remedy that a person is told to remove.
	namedLock = regexp.MustCompile(`remove (/\S+\.lock)\b`)
)

// remedies are the acts that a remedy names. tried is how often they were done before: a repair that
// does not help is followed by the other way out, which stands beside it.
func remedies(text string, tried int) (acts []act, unknown []string) {
	for _, m := range namedCommand.FindAllStringSubmatch(text, -1) {
		words := strings.Fields(m[1])
		switch {
		case strings.ToUpper(words[len(words)-1]) == words[len(words)-1] && strings.Contains(m[1], "REQUEST_ID"), words[0] == "plan":
			// Permission requests and plans are dealt with by themselves.
		case len(words) == 3 && words[0] == "run" && words[1] == "retry":
			acts = append(acts, retryRun(words[2]))
		case len(words) == 2 && words[0] == "run" && words[1] == "resume":
			acts = append(acts, setPaused(false))
		case len(words) >= 3 && words[0] == "run" && words[1] == "command-resolve":
			acts = append(acts, resolveCommand(words[2]))
		case len(words) >= 4 && words[0] == "run" && words[1] == "repair":
			acts = append(acts, repair(words[3], tried%2 == 1))
		default:
			unknown = append(unknown, fmt.Sprintf("greatminds %s", m[1]))
		}
	}
	return acts, unknown
}
