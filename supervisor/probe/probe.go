// Package probe talks to one agent without a task: it starts the agent of a manifest as a run would,
// through the same gate and the same transport and with the same environment, makes the handshake,
// on request a session and one prompt, and reports what it saw.
//
// The invariants kept: nothing is recorded, no permission is ever granted, and when [Run] returns
// nothing of the agent is left, also after an interrupt. Every word of the agent in a report is
// bounded and has the values of the manifest's environment masked.
package probe

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"greatminds/contract"
	"greatminds/internal/execgate"
	"greatminds/internal/redact"
	"greatminds/internal/refusal"
	"greatminds/supervisor/mcpservers"
	"greatminds/transport"
)

// DefaultTimeout is the time for a whole conversation.
const DefaultTimeout = 60 * time.Second

// Request is one probe.
type Request struct {
	Agent contract.Agent
	// Getenv is the environment that the agent's is taken from.
	Getenv func(string) string
	// Version is the version of this program, as the agent is told.
	Version string
	// Workspace is the absolute path of the folder that the agent works in; empty for a fresh
	// temporary one, which is removed at the end.
	Workspace string
	// Session asks for a session too. Mode, where it is not empty, asks for one in this mode, which has
	// to be offered and confirmed as in a run, and Prompt for one with one turn in it.
	Session      bool
	Mode, Prompt string
	// Timeout bounds the whole conversation, in which the handshake has no shorter limits of its own;
	// 0 means [DefaultTimeout]. Ending the agent may take some seconds more.
	Timeout time.Duration
	Now     func() time.Time
}

// ladder is how long an agent may take to leave.
var ladder = execgate.Grace{Term: 2 * time.Second, Kill: 5 * time.Second}

const (
	// leaving is what an agent gets to leave by itself at the end of its input.
	leaving = time.Second
	// endLimit bounds the whole end.
	endLimit = 20 * time.Second
)

// Run probes an agent. What the agent does wrong stands in the report, as its error, and is no
// error of Run, which fails only where nothing was started (a refusal), where ctx has ended, or
// where something of the agent may be left.
func Run(ctx context.Context, q Request) (*Report, error) {
	if err := q.required(); err != nil {
		return nil, err
	}
	if q.Timeout <= 0 {
		q.Timeout = DefaultTimeout
	}
	if q.Workspace == "" {
		dir, err := os.MkdirTemp("", "greatminds-probe-")
		if err != nil {
			return nil, err
		}
		// The agent may have left anything in it; what cannot be removed is the system's to clear.
		defer func() { _ = os.RemoveAll(dir) }()
		q.Workspace = dir
	}
	env, secrets := q.Agent.Environ(q.Getenv)
	servers, err := q.servers(env)
	if err != nil {
		return nil, err
	}
	p := &probing{Request: q, env: env, servers: servers, secrets: redact.New(secrets...), began: q.Now(),
		report: &Report{Version: 1, Agent: q.Agent.ID, Workspace: q.Workspace, Timings: map[string]int64{}}}
	talk := p.converse(ctx)
	left := p.end(context.WithoutCancel(ctx))
	if ctx.Err() != nil {
		return nil, errors.Join(ctx.Err(), left)
	}
	if left != nil {
		return nil, left
	}
	p.describe()
	p.fail(talk)
	p.report.Timings["total"] = p.since()
	return p.report, nil
}

// required refuses an agent that a run would not start. Spec: "required_env".
func (q Request) required() error {
	var lacking []string
	for _, name := range q.Agent.RequiredEnv {
		if q.Getenv(name) == "" {
			lacking = append(lacking, name)
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	return refusal.New(refusal.CodeAuthenticationRequired, "set it, here and for the daemon",
		"agent %s needs the variable %s, which this environment lacks", q.Agent.ID, strings.Join(lacking, ", "))
}

// initializeOnly says that no session is wanted.
func (q Request) initializeOnly() bool { return !q.Session && q.Mode == "" && q.Prompt == "" }

// servers are the MCP servers of the manifest, for a session. The supervisor's own is not among
// them: it serves runs.
func (q Request) servers(env []string) ([]transport.MCPServer, error) {
	if q.initializeOnly() {
		return nil, nil
	}
	place := mcpservers.Place{Getenv: q.Getenv, Workspace: q.Workspace, Environment: env}
	var servers []transport.MCPServer
	for _, s := range q.Agent.MCPServers {
		if missing := place.Unset(s); len(missing) > 0 {
			return nil, refusal.New(refusal.CodeAuthenticationRequired, "set it, here and for the daemon",
				"MCP server %s of agent %s needs the variable %s, which this environment lacks", s.Name, q.Agent.ID, strings.Join(missing, ", "))
		}
		resolved, err := place.Resolve(q.Agent.ID, s)
		if err != nil {
			return nil, err
		}
		servers = append(servers, resolved)
	}
	return servers, nil
}

// probing is a probe under way.
type probing struct {
	Request
	servers []transport.MCPServer
	env     []string
	secrets *redact.Redactor
	report  *Report
	began   time.Time
	ours    [3]*os.File
	child   *execgate.Child
	session *transport.Session
	heard   listener
}

// since is the time from the beginning, in milliseconds.
func (p *probing) since() int64 { return p.Now().Sub(p.began).Milliseconds() }

// converse goes as far as it was asked to.
func (p *probing) converse(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	if err := p.launch(ctx); err != nil {
		return err
	}
	launched := p.since()
	p.report.Timings["launch"] = launched
	ready := launched
	var err error
	p.session, err = transport.Open(ctx, transport.Options{
		Stdin: p.ours[0], Stdout: p.ours[1], Stderr: p.ours[2], Ended: p.child.Ended(),
		ClientName: "greatminds", ClientVersion: p.Version, Cwd: p.Workspace, AuthMethod: word(p.Agent.AuthMethod),
		RequiredCapabilities: p.Agent.RequiredCapabilities, InitializeOnly: p.initializeOnly(), Mode: p.Mode, MCPServers: p.servers,
		RequestTimeout: p.Timeout, Handler: &p.heard, Now: p.Now,
		Observe: func(s transport.Stage) {
			if s == transport.StageProtocolReady {
				ready = p.since()
				p.report.Timings["initialize"] = ready - launched
			}
		},
	})
	p.ours = [3]*os.File{} // the session's, also where it failed
	if err != nil {
		return err
	}
	opened := p.since()
	switch {
	case p.session.ID() != "":
		p.report.Timings["session"] = opened - ready
	case p.Agent.AuthMethod != nil:
		p.report.Timings["authenticate"] = opened - ready
	}
	if p.Prompt == "" {
		return nil
	}
	turn, err := p.session.Prompt(ctx, p.Prompt)
	p.report.Timings["prompt"] = p.since() - opened
	p.turned(turn)
	return err
}

// launch starts the agent behind a gate, as a run does; only that nothing is put on record.
func (p *probing) launch(ctx context.Context) error {
	var theirs [3]*os.File
	for i := range theirs {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(theirs[:])
			return err
		}
		theirs[i], p.ours[i] = w, r
		if i == 0 {
			theirs[i], p.ours[i] = r, w
		}
	}
	child, err := execgate.Start(ctx, execgate.Launch{Argv: p.Agent.Argv, Env: p.env, Dir: p.Workspace,
		Stdin: theirs[0], Stdout: theirs[1], Stderr: theirs[2]})
	if err != nil {
		return err
	}
	p.child = child
	return child.Open(ctx)
}

// end ends the agent, its whole tree and the conversation. It fails where something may be left.
func (p *probing) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, endLimit)
	defer cancel()
	defer closeAll(p.ours[:])
	if p.child == nil {
		return nil
	}
	began := p.since()
	if p.session != nil {
		p.leave(ctx)
	}
	ending, err := p.child.Stop(ctx, ladder)
	p.report.Ending = ending.Cleanup(ladder)
	if ending.Known && ending.Signal == 0 && ending.How == execgate.HowExited {
		p.report.ExitStatus = &ending.Code
	}
	if p.session != nil {
		// Its goroutines end with it; what the agent still said is kept.
		err = errors.Join(err, p.session.Close(ctx))
	}
	p.report.Timings["end"] = p.since() - began
	return err
}

// leave gives the agent a moment to go by itself.
func (p *probing) leave(ctx context.Context) {
	brief, cancel := context.WithTimeout(ctx, leaving)
	defer cancel()
	// One that is gone, or does not read, has no use for the end of its input.
	_ = p.session.CloseInput(brief)
	select {
	case <-p.child.Ended():
	case <-brief.Done():
	}
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close() // pipes, nothing is buffered
		}
	}
}

func word(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
