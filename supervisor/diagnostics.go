package supervisor

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"greatminds/runstore"
	"greatminds/transport"
)

// protocol is a run's bounded protocol record: what was negotiated, what was seen of tools, how it
// failed and how it stopped. It holds no prompt, title, argument or other text of the agent but its own
// name and version, masked. It approves nothing and is no evidence.
// Spec: "Managed protocol diagnostics".
type protocol struct {
	Version    int    `json:"version"`
	Negotiated *fact  `json:"negotiated,omitempty"`
	Tools      []fact `json:"tool_events"`
	// Truncated says that there was more of tools than the record takes.
	Truncated bool  `json:"tool_events_truncated"`
	Error     *fact `json:"error,omitempty"`
	Stop      *fact `json:"stop,omitempty"`
}

// fact is one observation. At is in seconds of the Unix epoch.
type fact struct {
	At   float64         `json:"at"`
	Data json.RawMessage `json:"data"`
}

// observeProtocol brings a run's protocol record up to what was seen, and emits what is new:
// protocol_observed once for the negotiation, the stop and the error, and once for all tool
// observations that came since the record was written last, with their number; protocol_trace_truncated
// when the trace is full. What stands already is left alone, its time too, and emits nothing. E-661.
func (e *execution) observeProtocol(tx *runstore.Tx, run *runstore.Run, s transport.Stats, end ending) (json.RawMessage, error) {
	var p protocol
	if len(run.Protocol) > 0 {
		if err := json.Unmarshal(run.Protocol, &p); err != nil {
			return nil, err
		}
	}
	p.Version = 1
	if p.Tools == nil {
		p.Tools = []fact{}
	}
	was := p
	at := runstore.Epoch(tx.Now())
	if p.Negotiated == nil && e.session != nil {
		p.Negotiated = e.negotiated(at)
	}
	if len(p.Tools) < len(s.Tools) {
		p.Tools = slices.Clip(p.Tools)
		for _, t := range s.Tools[len(p.Tools):] {
			p.Tools = append(p.Tools, fact{runstore.Epoch(t.At), raw(map[string]any{"phase": t.Phase, "update": t.Update, "tool_reference": t.Reference,
				"kind": t.ToolKind, "status": t.Status, "content_count": t.ContentCount, "location_count": t.LocationCount})})
		}
	}
	p.Truncated = p.Truncated || s.ToolsTruncated
	if reason := e.outcome.stopReason; reason != "" {
		if !transport.KnownStop(reason) {
			reason = "other" // the agent's own word stays out of the record
		}
		p.Stop = renew(p.Stop, at, map[string]any{"phase": transport.PhasePrompt, "reason": reason})
	}
	if e.outcome.errorType != "" || e.outcome.errorCode != nil {
		p.Error = renew(p.Error, at, map[string]any{"exception": e.outcome.errorType, "phase": e.failedIn(end.cause), "rpc_code": e.outcome.errorCode})
	}
	emitProtocol(tx, run.ID, was, p)
	return json.Marshal(p)
}

// renew is the fact of this data: the one that stands where that says the same.
func renew(old *fact, at float64, data map[string]any) *fact {
	fresh := &fact{at, raw(data)}
	if old != nil && bytes.Equal(old.Data, fresh.Data) {
		return old
	}
	return fresh
}

func emitProtocol(tx *runstore.Tx, run runstore.RunID, was, is protocol) {
	for _, f := range []struct {
		kind    string
		was, is *fact
	}{{"negotiated", was.Negotiated, is.Negotiated}, {"error", was.Error, is.Error}, {"stop", was.Stop, is.Stop}} {
		if f.is != f.was {
			told := map[string]any{}
			_ = json.Unmarshal(f.is.Data, &told) // an object of our own
			told["kind"] = f.kind
			tx.Emit("protocol_observed", run, told)
		}
	}
	if n := len(is.Tools) - len(was.Tools); n > 0 {
		tx.Emit("protocol_observed", run, map[string]any{"kind": "tool", "new": n, "total": len(is.Tools)})
	}
	if is.Truncated && !was.Truncated {
		tx.Emit("protocol_trace_truncated", run, map[string]any{"limit": len(is.Tools)})
	}
}

// negotiated is what initialize agreed on; nil where it did not come to that.
func (e *execution) negotiated(at float64) *fact {
	n := e.session.Negotiated()
	if n.ProtocolVersion == 0 {
		return nil
	}
	return &fact{at, raw(map[string]any{"phase": transport.PhaseInitialize, "protocol_version": n.ProtocolVersion, "capabilities": n.Capabilities,
		"optional_capabilities": optional(n), "agent": map[string]any{"name": e.secrets.Text(n.AgentName), "version": e.secrets.Text(n.AgentVersion)}})}
}

// failedIn names the stage of the protocol that failed: that of the transport's error, else the prompt
// once that began, and preflight before.
func (e *execution) failedIn(cause error) transport.Phase {
	var te *transport.Error
	switch {
	case errors.As(cause, &te):
		return te.Phase
	case e.outcome.prompted:
		return transport.PhasePrompt
	}
	return transport.PhasePreflight
}
