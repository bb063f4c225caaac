package runstore

import (
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// What Recent shows beside everything that is not over. Bytes are those of compact JSON.
const (
	recentRuns       = 50
	recentOperations = 50
	recentEvents     = 200
	// recentWhole is how many bytes of finished runs are shown with all that belongs to them, beside
	// as many others in brief as there are; each that is not there makes room of the size of one.
	recentWhole = 16 << 10
	recentBrief = 3 << 9
	// recentTool is the largest tool description of a closed question that is shown whole, and
	// recentTitle what is left of a larger one's title, in bytes.
	recentTool  = 2 << 10
	recentTitle = 256
	// recentEventBytes bounds the events where they are long.
	recentEventBytes = 48 << 10
)

// Recent returns the store's part of `run status` as one compact JSON object with sorted keys: what
// has not ended or has something open, the newest 50 finished runs, the newest 50 maintenance
// operations and the newest 200 events (fewer where they are long). Finished runs are whole, with
// their results, commands and permission requests, as long as they are small together; the older of
// them are in brief, with their results, which a member `brief` tells; so does that of a closed question whose
// tool description is long, and shown by title and kind alone. It has no credentials' hashes, request
// receipts and application records, and its size does not grow with the history. Spec: reference 6.3.
func (v *View) Recent() json.RawMessage {
	h := v.h
	shown := &hot{projectID: h.projectID, paused: h.paused, retention: h.retention, findings: h.findings, extra: h.extra,
		observations: h.observations, observed: h.observed, accountHolds: h.accountHolds, held: h.held, events: h.lastEvents()}
	brief := h.recentRuns(shown)
	for i, o := range newestFirst(h.maintenance.values(), byStart) {
		if i < recentOperations || o.Open() {
			shown.putOperation(o)
		}
	}
	h.open(shown)
	s := shown.sections(false)
	s["runs"] = shown.withBrief(brief)
	for name, used := range map[string]bool{inCommands: h.commands.len() > 0, inPermissions: h.permissions.len() > 0, inMaintenance: h.maintenance.len() > 0} {
		if _, there := s[name]; used && !there {
			s[name] = json.RawMessage("{}")
		}
	}
	return s.join()
}

// briefly marks a record that is shown in part.
var briefly = Members{"brief": json.RawMessage("true")}

// lastEvents returns the newest events within their bounds.
func (h *hot) lastEvents() []tailEvent {
	tail := h.events[max(0, len(h.events)-recentEvents):]
	size := 0
	for i := len(tail) - 1; i >= 0; i-- {
		if size += len(tail[i].raw); size > recentEventBytes {
			return tail[i+1:]
		}
	}
	return tail
}

func newestFirst[V any](all []V, order func(a, b V) int) []V {
	slices.SortFunc(all, func(a, b V) int { return order(b, a) })
	return all
}

// recentRuns puts into shown every run that is not settled, and the newest finished ones; those that
// there is no room for are returned.
func (h *hot) recentRuns(shown *hot) (brief []*Run) {
	var ended []*Run
	h.runs.each(func(_ string, r *Run) bool {
		if h.settled(r) {
			ended = append(ended, r)
		} else {
			shown.take(h.bundleOfRun(r.ID).shortQuestions())
		}
		return true
	})
	slices.SortFunc(ended, func(a, b *Run) int { return endOf(a).newestFirst(endOf(b)) })
	ended = ended[:min(recentRuns, len(ended))]
	room := recentWhole + (recentRuns-len(ended))*recentBrief
	for _, r := range ended {
		b := h.bundleOfRun(r.ID).shortQuestions()
		if room -= len(appendChanges(nil, b.entities(), b)); room >= 0 {
			shown.take(b)
			continue
		}
		brief = append(brief, r)
		putAll(b.results, func(res *Result) {
			c := *res
			c.Envelope.Payload, c.Validation, c.Timings, c.Extra = nil, nil, nil, briefly
			shown.results = shown.results.set(string(res.ID()), &c)
		})
	}
	return brief
}

// shortQuestions leaves title and kind of what the larger closed questions were about. A question may
// have 256 KiB, and a run many: `run permission` and `run show` have them whole.
func (h *hot) shortQuestions() *hot {
	h.permissions.each(func(id string, p *Permission) bool {
		if p.Status == permissionPending || p.Status == permissionAnswered || len(p.Tool) <= recentTool {
			return true
		}
		var tool struct {
			Kind  string `json:"kind"`
			Title string `json:"title"`
		}
		// A description of another shape is shown without both.
		_ = json.Unmarshal(p.Tool, &tool)
		tool.Title, tool.Kind = cutText(tool.Title, recentTitle), cutText(tool.Kind, recentTitle)
		c := *p
		c.Tool, c.Extra = encode(tool), briefly
		h.permissions = h.permissions.set(id, &c)
		return true
	})
	return h
}

// cutText cuts a text to n bytes, between two characters.
func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// open puts into shown whatever is open, also where its run is not there.
func (h *hot) open(shown *hot) {
	putAll(h.openResults, shown.putResult)
	putAll(h.openCommands, shown.putCommand)
	putAll(h.openPermissions, shown.putPermission)
}

// withBrief renders the section of runs with some of them in brief.
func (h *hot) withBrief(brief []*Run) json.RawMessage {
	all := h.runs
	short := map[string]json.RawMessage{}
	for _, r := range brief {
		c := *r
		c.TokenSHA256, c.Protocol, c.Usage, c.Timings, c.Process, c.processNull = "", nil, nil, nil, nil, false
		c.WorkspacePlan, c.WorkspaceIdentity, c.QueueObservation, c.Outcome, c.AccountLimit = nil, nil, nil, nil, nil
		c.Extra = briefly
		short[string(r.ID)] = encode(&c)
		all = all.set(string(r.ID), r)
	}
	out := []byte{'{'}
	all.each(func(id string, r *Run) bool {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(appendText(out, id), ':')
		if text, ok := short[id]; ok {
			out = append(out, text...)
		} else {
			out = append(out, h.whole(r, false)...)
		}
		return true
	})
	return append(out, '}')
}
