package probe

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
	"greatminds/transport"
)

const (
	// maxAsked is how many permission requests are listed; all are counted.
	maxAsked = 32
	// maxText bounds what is kept of the agent's answer, of its error and of its standard error, in
	// bytes; of the answer the beginning, of the others the end.
	maxText = 4 << 10
	// maxLabel bounds a single word or title, in bytes.
	maxLabel = 256
)

// Report is what was seen of an agent.
type Report struct {
	Version int    `json:"version"`
	Agent   string `json:"agent"`
	// Workspace is the folder that the agent was given.
	Workspace string `json:"workspace"`
	// ProtocolVersion is what the agent answered, null where it did not.
	ProtocolVersion *int      `json:"protocol_version"`
	AgentInfo       AgentInfo `json:"agent_info"`
	// Capabilities is agentCapabilities as it came, null where there was none.
	Capabilities json.RawMessage `json:"capabilities"`
	AuthMethods  []AuthMethod    `json:"auth_methods"`
	// AuthMethod is the one that was called, null for none.
	AuthMethod *string  `json:"auth_method"`
	Session    *Session `json:"session"`
	Prompt     *Prompt  `json:"prompt"`
	Error      *Failure `json:"error"`
	// ExitStatus is the agent's own where it ended by itself, null otherwise.
	ExitStatus *int `json:"exit_status"`
	// Ending says how the agent was ended, an [execgate.Cleanup]; null where it was not started.
	Ending json.RawMessage `json:"cleanup"`
	// Timings are milliseconds of launch, initialize, authenticate or session (which holds authenticate
	// too), prompt, end and total, as far as it came.
	Timings map[string]int64 `json:"timings_ms"`
}

// AgentInfo is what the agent calls itself; null where it does not.
type AgentInfo struct {
	Name    *string `json:"name"`
	Version *string `json:"version"`
}

// AuthMethod is one way to log in.
type AuthMethod struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Type string `json:"type"`
}

// Session is what a session lets its client choose.
type Session struct {
	ID string `json:"id"`
	// Mode is the one that the session began in, ModeSet the one that was asked for and confirmed.
	Mode    *string        `json:"mode"`
	ModeSet *string        `json:"mode_set"`
	Modes   []Choice       `json:"modes"`
	Model   *string        `json:"model"`
	Models  []Choice       `json:"models"`
	Options []ConfigOption `json:"config_options"`
}

// Choice is one mode or model.
type Choice struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// ConfigOption is one option of a session.
type ConfigOption struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Category string   `json:"category"`
	Type     string   `json:"type"`
	Current  string   `json:"current"`
	Values   []string `json:"values"`
}

// Prompt is what is known of the one turn.
type Prompt struct {
	// StopReason is the agent's, null where none came. It says nothing of what was done.
	StopReason *string `json:"stop_reason"`
	Updates    int     `json:"updates"`
	// Text is the beginning of the agent's answer, TextBytes all of it.
	Text      string `json:"text"`
	TextBytes int64  `json:"text_bytes"`
	// Permissions counts the requests, all of which were answered with cancelled; Asked lists the
	// first of them.
	Permissions int     `json:"permissions"`
	Asked       []Asked `json:"asked"`
	// Usage are the tokens that the answer reports, null where it reports none.
	Usage map[string]int64 `json:"usage"`
}

// Asked is one permission request.
type Asked struct {
	Title string `json:"title"`
	// ToolKind is the tool call's kind, empty where the agent gave none.
	ToolKind string `json:"tool_kind"`
	// Options are the kinds of the offered options, in their order.
	Options []string `json:"options"`
}

// Failure says why a probe did not go all the way.
type Failure struct {
	// Code is a refusal's; its exit status is the command's.
	Code  refusal.Code `json:"code"`
	Phase string       `json:"phase"`
	What  string       `json:"what"`
	// Remedy says what helps.
	Remedy string `json:"remedy"`
	// RPCCode and Message are of the agent's error answer; null and empty where there was none.
	RPCCode *int   `json:"rpc_code"`
	Message string `json:"message"`
	// Stderr is the end of what the agent wrote to its standard error.
	Stderr string `json:"stderr_tail"`
}

// Status is the exit status of a probe.
func (r *Report) Status() refusal.Status {
	if r.Error == nil {
		return 0
	}
	return (&refusal.Refusal{Code: r.Error.Code}).Status()
}

// describe fills in what the handshake has brought.
func (p *probing) describe() {
	r := p.report
	r.AuthMethods = []AuthMethod{}
	if p.session == nil {
		return
	}
	n, o := p.session.Negotiated(), p.session.Offer()
	if n.ProtocolVersion != 0 {
		r.ProtocolVersion = &n.ProtocolVersion
	}
	r.AgentInfo = AgentInfo{p.orNull(n.AgentName), p.orNull(n.AgentVersion)}
	if raw, err := p.secrets.JSON(o.Capabilities); err == nil { // else there were none
		r.Capabilities = raw
	}
	for _, m := range o.AuthMethods {
		r.AuthMethods = append(r.AuthMethods, AuthMethod{p.label(m.ID), p.label(m.Name), p.label(m.Type)})
	}
	r.AuthMethod = p.orNull(n.AuthMethod)
	if p.session.ID() == "" {
		return
	}
	s := &Session{ID: p.label(p.session.ID()), Mode: p.orNull(o.Mode), ModeSet: p.orNull(n.Mode), Modes: p.choices(o.Modes), Model: p.orNull(o.Model),
		Models: p.choices(o.Models), Options: []ConfigOption{}}
	for _, option := range o.Options {
		c := ConfigOption{ID: p.label(option.ID), Name: p.label(option.Name), Category: p.label(option.Category), Type: p.label(option.Type),
			Current: p.label(option.Current), Values: []string{}}
		for _, v := range option.Values {
			c.Values = append(c.Values, p.label(v))
		}
		s.Options = append(s.Options, c)
	}
	r.Session = s
}

func (p *probing) choices(from []transport.Choice) []Choice {
	list := []Choice{}
	for _, c := range from {
		list = append(list, Choice{p.label(c.ID), p.label(c.Name)})
	}
	return list
}

// label is a word of the agent, masked and bounded.
func (p *probing) label(s string) string { return clip(p.secrets.Text(s), maxLabel) }

func (p *probing) orNull(s string) *string {
	if s == "" {
		return nil
	}
	s = p.label(s)
	return &s
}

// turned fills in what is known of the turn.
func (p *probing) turned(t transport.Turn) {
	text, count, asked := p.heard.all()
	out := &Prompt{StopReason: p.orNull(t.StopReason), Updates: t.Updates, TextBytes: t.TextBytes,
		Text: clip(p.heading(text, t.TextBytes), maxText), Permissions: count, Asked: []Asked{}}
	for _, a := range asked {
		a.Title, a.ToolKind = p.label(a.Title), p.label(a.ToolKind)
		for i, kind := range a.Options {
			a.Options[i] = p.label(kind)
		}
		out.Asked = append(out.Asked, a)
	}
	if t.Tokens.Reading == transport.Reported {
		out.Usage = map[string]int64{}
		for name, c := range map[string]transport.Counter{"input": t.Tokens.Input, "output": t.Tokens.Output, "total": t.Tokens.Total,
			"thought": t.Tokens.Thought, "cached_read": t.Tokens.CachedRead, "cached_written": t.Tokens.CachedWritten} {
			if c.Reading == transport.Reported {
				out.Usage[name] = c.Value
			}
		}
	}
	p.report.Prompt = out
}

// heading is the beginning of a text of whole bytes, masked. A secret that it was cut in is left out.
func (p *probing) heading(text string, whole int64) string {
	if int64(len(text)) >= whole {
		return p.secrets.Text(text)
	}
	return p.secrets.Head(text, max(0, len(text)-1))
}

// tail is the end of a text, masked. Where the text was cut before, what a secret may have left of itself
// at its beginning is left out.
func (p *probing) tail(text string, cut bool) string {
	shown := p.secrets.Text(text)
	if cut {
		shown = shown[min(len(shown), p.secrets.Longest()):]
	}
	return shown
}

// fail fills in what went wrong.
func (p *probing) fail(err error) {
	if err == nil {
		return
	}
	f := &Failure{Code: refusal.CodeFailed, Phase: string(transport.PhasePreflight), What: p.label(err.Error())}
	var talk *transport.Error
	var exec *execgate.ExecError
	switch {
	case errors.As(err, &talk):
		r := talk.Refusal()
		f.Code, f.Remedy, f.Phase = r.Code, r.Remedy, string(talk.Phase)
		if talk.Kind == transport.Timeout {
			f.Remedy = "check that the agent works by itself, or give it more time with --timeout SECONDS" // no binding's time ran
		}
		f.What = clip(p.secrets.Text(talk.Error()), maxText)
		f.RPCCode, f.Message = talk.Code, clip(p.secrets.Text(talk.Message), maxText)
	case errors.As(err, &exec):
		f.Code, f.Phase, f.What = refusal.CodeLaunch, "launch", exec.Error()
		f.Remedy = "mend agents." + p.Agent.ID + ".argv in coordination/execution.yaml, or install the program"
	default:
		if r, ok := refusal.Find(err); ok {
			f.Code, f.What, f.Remedy = r.Code, r.Error(), r.Remedy
		}
	}
	if p.session != nil {
		// Masked before it is cut: a secret that is cut in two would not be recognized.
		kept := p.session.StderrTail()
		said := p.tail(strings.ToValidUTF8(string(kept), "\ufffd"), int64(len(kept)) < p.session.Stats().StderrBytes)
		f.Stderr = strings.ToValidUTF8(said[max(0, len(said)-maxText):], "")
	}
	p.report.Error = f
}

// clip is the beginning of a text.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// listener keeps what the agent says and grants nothing.
type listener struct {
	mu    sync.Mutex
	text  strings.Builder
	count int
	asked []Asked
}

// Update keeps the beginning of the agent's answer.
func (l *listener) Update(u transport.Update) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Twice what is shown, so that what is masked in it is seen whole.
	if u.Kind == "agent_message_chunk" && !u.Replayed && l.text.Len() < 2*maxText {
		l.text.WriteString(u.Text[:min(len(u.Text), 2*maxText-l.text.Len())])
	}
	return nil
}

// Permission answers every request with cancelled.
func (l *listener) Permission(_ context.Context, r transport.PermissionRequest) transport.PermissionAnswer {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	if len(l.asked) < maxAsked {
		a := Asked{Title: r.Title, ToolKind: r.ToolKind, Options: []string{}}
		for _, o := range r.Options {
			a.Options = append(a.Options, o.Kind)
		}
		l.asked = append(l.asked, a)
	}
	return transport.PermissionAnswer{}
}

func (l *listener) all() (text string, count int, asked []Asked) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.ToValidUTF8(l.text.String(), ""), l.count, l.asked
}
