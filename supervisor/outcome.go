package supervisor

import (
	"encoding/json"

	"greatminds/runstore"
	"greatminds/transport"
)

// outcome gathers what the run's durable outcome will say.
type outcome struct {
	contextBytes    int64
	prompted        bool // the first prompt may have been sent
	reserved        int64
	sessionReserved int64
	stopReason      string
	strategy        string
	errorType       string
	errorCode       *int
	authMethod      *string
	inputBudget     map[string]any
	idle            map[string]any
	accountLimit    map[string]any
	usageBudget     map[string]any
	what            string
	missing         []string // variables that the daemon's environment lacks
}

// outcomeRecord is what is known of a run's outcome, at its end or while it goes on.
func (e *execution) outcomeRecord(s transport.Stats) *runstore.Outcome {
	c := e.outcome // what is published never changes
	o := &runstore.Outcome{ContextBytes: &c.contextBytes, Updates: &s.Updates, PromptStarted: &c.prompted,
		PrePromptActivity: &s.PrePromptActivity, SessionStrategy: c.strategy, InputBytesReserved: &c.reserved,
		SessionInputBytesReserved: &c.sessionReserved, ErrorType: c.errorType,
		ErrorCode: c.errorCode, AuthenticationMethod: c.authMethod, Extra: runstore.Members{}}
	o.ActivityUnavailable = e.feed.unavailable()
	if c.stopReason != "" {
		o.StopReason = &c.stopReason
	}
	if !s.LastActivity.IsZero() {
		at := runstore.Epoch(s.LastActivity)
		o.LastActivityAt = &at
	}
	if c.inputBudget != nil {
		o.InputBudget = raw(c.inputBudget)
	}
	if c.accountLimit != nil {
		o.AccountLimit = raw(c.accountLimit)
	}
	if c.idle != nil {
		o.Extra["idle"] = raw(c.idle)
	}
	if c.usageBudget != nil {
		o.UsageBudget = raw(c.usageBudget)
	}
	if c.what != "" {
		o.Extra["error_what"] = raw(c.what)
	}
	if len(c.missing) > 0 {
		o.Extra["missing_environment"] = raw(c.missing)
	}
	if skipped := counted(s); skipped != nil {
		o.Extra["protocol_counts"] = raw(skipped)
	}
	return o
}

// counted lists what the guard had to leave out or repair, where there was any.
func counted(s transport.Stats) map[string]int64 {
	out := map[string]int64{}
	for name, n := range map[string]int64{"garbage_lines": s.GarbageLines, "gaps": s.Gaps, "repaired": s.Repaired,
		"stray_replies": s.StrayReplies, "rejected_requests": s.Rejected, "unknown_updates": s.Unknown,
		"late_updates": s.LateUpdates, "replayed_updates": s.Replayed} {
		if n > 0 {
			out[name] = n
		}
	}
	if s.CloseFailed {
		out["session_close_failed"] = 1
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func raw(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic("supervisor: a plain value does not encode: " + err.Error())
	}
	return b
}
