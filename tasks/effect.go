package tasks

import (
	"fmt"
	"slices"
	"strings"

	"greatminds/contract"
	"greatminds/internal/refusal"
)

// WorktreeAction is what happens to a task's worktree around a move.
type WorktreeAction string

// Worktree actions.
const (
	WorktreeCreate WorktreeAction = "create"
	WorktreeMerge  WorktreeAction = "merge"
	WorktreeRemove WorktreeAction = "remove"
)

// Artifact is a file that a decision hands over.
type Artifact struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// Planned is the whole effect of a decision, computed before anything is touched.
type Planned struct {
	// Destination is the queue that the task ends in; its own for a decision that does not move.
	Destination contract.Queue
	// Moves says that Destination is another queue than the task's.
	Moves bool
	// After is the whole new file. For a decision that adds no block it equals the task's bytes.
	After []byte
	// Pre happens before the task file is touched, Post after the journal line.
	Pre, Post []WorktreeAction
	// Question is the text of needs_input, empty otherwise.
	Question string
	// Reason is the reason that handoff, blocked or no_change gave, empty where it gave none.
	Reason string
	// Artifacts are the decision's files with their hashes. Never nil.
	Artifacts []Artifact
	// Commands are the command request ids that the decision relies on, each once. Never nil.
	Commands []string
}

// Effect plans a decision of f.Role about a task, or returns every reason against it, and then
// no plan. It reads and changes nothing: the same task, decision and facts give the same bytes,
// so that what was planned can be recorded, carried out and recognised later.
//
// The task is what the caller has just read; that its revision is the claimed one is the
// caller's to check. Missing facts count against the decision.
// Spec: "Lifecycle and result receipts".
func Effect(s *contract.Schema, t *Task, d Decision, f Facts) (Planned, []refusal.Reason) {
	e := &effect{s: s, task: t, decision: d, facts: f,
		planned: Planned{Destination: t.Queue, After: t.Bytes, Artifacts: []Artifact{}, Commands: []string{}}}
	e.keys()
	e.artifacts()
	e.evidence()
	switch d.Kind {
	case DecisionHandoff:
		e.handoff()
	case DecisionBlocked:
		e.blocked()
	case DecisionNeedsInput:
		e.planned.Question = e.text("question", true)
	case DecisionNoChange:
		e.planned.Reason = e.text("reason", false)
	}
	if len(e.faults) > 0 {
		return Planned{}, distinct(e.faults)
	}
	return e.planned, nil
}

// effect is one planning in progress.
type effect struct {
	s        *contract.Schema
	task     *Task
	decision Decision
	facts    Facts
	planned  Planned
	faults   []refusal.Reason
}

func (e *effect) fault(code refusal.Code, place, remedy, format string, args ...any) {
	e.faults = append(e.faults, refusal.Reason{Code: code, Place: place, Remedy: remedy, What: fmt.Sprintf(format, args...)})
}

// keys judges which keys the payload has.
func (e *effect) keys() {
	accepted, known := payloadFields[e.decision.Kind]
	if !known {
		e.fault(refusal.CodeDecisionForm, "decision", "use handoff, blocked, needs_input or no_change",
			"decision is %s", shown(e.decision.Kind))
		return
	}
	e.faults = append(e.faults, identityFaults(e.decision.Payload)...)
	for _, key := range sortedKeys(e.decision.Payload) {
		if !slices.Contains(accepted, key) && !slices.Contains(identityFields, key) {
			e.fault(refusal.CodePayloadField, "payload", "use "+strings.Join(accepted, ", "),
				"%s takes no payload field %s", e.decision.Kind, shown(key))
		}
	}
}

// text returns a text of the payload.
func (e *effect) text(key string, wanted bool) string {
	v, given := e.decision.Payload[key]
	text, ok := v.(string)
	switch {
	case !given && !wanted:
	case !ok || wanted && strings.TrimSpace(text) == "":
		e.fault(refusal.CodePayloadField, "payload."+key, "give it as a text", "%s must be a text, got %s", key, shownJSON(v))
	}
	return text
}

// list returns the texts of a payload list; a missing one is empty.
func (e *effect) list(key string) []string {
	v, given := e.decision.Payload[key]
	list, ok := v.([]any)
	texts := textsOf(v)
	if given && (!ok || len(texts) != len(list)) {
		e.fault(refusal.CodePayloadField, "payload."+key, "make it a list of texts", "%s must be a list of texts, got %s",
			key, shownJSON(v))
	}
	return texts
}

func shownJSON(v any) string {
	if _, ok := v.(map[string]any); ok {
		return "an object"
	}
	return shown(v)
}

// artifacts takes over the decision's files.
func (e *effect) artifacts() {
	for i, name := range e.list("artifacts") {
		place := fmt.Sprintf("payload.artifacts[%d]", i)
		fact, looked := e.facts.Artifacts[name]
		why := unsafePath(name)
		switch {
		case why != "":
		case !looked:
			why = "was not looked at"
		case fact.Problem != "":
			why = fact.Problem
		case fact.SHA256 == "":
			why = "has no hash"
		}
		if why != "" {
			e.fault(refusal.CodeArtifact, place, "name a regular file inside the workspace by its relative path",
				"the artifact %s %s", shown(name), why)
			continue
		}
		e.planned.Artifacts = append(e.planned.Artifacts, Artifact{Path: name, SHA256: fact.SHA256})
	}
}

// evidence takes over the command requests that the payload cites.
func (e *effect) evidence() {
	for i, id := range e.list("command_evidence") {
		if _, problem := e.facts.citation(id); problem != "" {
			e.fault(refusal.CodeCommandEvidence, fmt.Sprintf("payload.command_evidence[%d]", i),
				"cite a finished request of this run, with the source unchanged since", "the command request %s %s", shown(id), problem)
			continue
		}
		e.cite(id)
	}
}

func (e *effect) cite(id string) {
	if id != "" && !slices.Contains(e.planned.Commands, id) {
		e.planned.Commands = append(e.planned.Commands, id)
	}
}

// handoff plans a move with the blocks that justify it.
func (e *effect) handoff() {
	e.planned.Reason = e.text("reason", false)
	to := contract.Queue(e.text("to_queue", true))
	var blocks []Block
	items, ok := e.decision.Payload["blocks"].([]any)
	if !ok {
		e.fault(refusal.CodePayloadField, "payload.blocks", "give a list, [] for none", "blocks must be a list of objects, got %s",
			shownJSON(e.decision.Payload["blocks"]))
	}
	for i, item := range items {
		place := fmt.Sprintf("payload.blocks[%d]", i)
		object, isObject := item.(map[string]any)
		kind, isText := object["kind"].(string)
		if !isObject || !isText || kind == "" {
			e.fault(refusal.CodePayloadField, place, "begin it with its kind", "a block must be an object with a kind, got %s", shownJSON(item))
			continue
		}
		fields, faults := fieldsFromJSON(object, place, 0)
		e.faults = append(e.faults, faults...)
		blocks = append(blocks, e.block(contract.BlockKind(kind), fields.Without("kind"), place, blocks))
	}
	e.finish(to, blocks)
}

// blocked plans the move to the blocked queue with the one block that the payload makes.
func (e *effect) blocked() {
	e.planned.Reason = e.text("reason", true)
	var fields Fields
	for _, key := range []string{"reason", "dependencies", "resume_to"} {
		v, faults := fromJSON(e.decision.Payload[key], "payload."+key, 0)
		e.faults = append(e.faults, faults...)
		fields = append(fields, Field{key, v})
	}
	e.finish(queueBlocked, []Block{e.block(blockBlocked, fields, "payload", nil)})
}

// block drafts one block behind those before it.
func (e *effect) block(kind contract.BlockKind, fields Fields, place string, before []Block) Block {
	d := &draft{s: e.s, task: e.task.with(before), facts: e.facts, kind: kind, fields: inOrder(e.s, kind, fields), place: place}
	b, faults := d.build()
	e.faults = append(e.faults, faults...)
	e.cite(d.request)
	if len(faults) > 0 {
		// Later checks look at what was meant, so that one slip does not hide the next.
		b = Block{Kind: kind, By: e.facts.Role, At: stamp(e.facts.Now), Fields: d.fields}
	}
	return b
}

// inOrder puts the fields of a submission, which has no order of its own, into one: those of the
// kind's rules, the others, and free text last.
func inOrder(s *contract.Schema, kind contract.BlockKind, fields Fields) Fields {
	spec, _ := s.BlockKind(kind) // an unknown kind has no body field
	var out Fields
	for _, rule := range fieldRules[kind] {
		if v, given := fields.Lookup(rule.name); given {
			out = append(out, Field{rule.name, v})
		}
	}
	var body Fields
	for _, f := range fields {
		switch {
		case out.Has(f.Key):
		case f.Key == spec.BodyField:
			body = Fields{f}
		default:
			out = append(out, f)
		}
	}
	return append(out, body...)
}

// finish judges the whole task with its new blocks, and the move, and writes the plan.
func (e *effect) finish(to contract.Queue, blocks []Block) {
	e.faults = append(e.faults, headerFaults(e.s, e.task)...)
	e.faults = append(e.faults, blockFaults(e.s, e.task)...)
	m := &move{s: e.s, task: e.task.with(blocks), from: e.task.Queue, to: to, role: e.facts.Role, facts: e.facts}
	if to != "" {
		e.faults = append(e.faults, m.check()...)
	}
	if len(e.faults) > 0 {
		return
	}
	after, err := e.task.withBlocks(blocks)
	if err != nil {
		e.fault(refusal.CodeTaskInvalid, "payload", "file smaller or simpler blocks", "%v", err)
		return
	}
	e.planned.After, e.planned.Destination, e.planned.Moves = after, to, true
	e.planned.Pre, e.planned.Post = actions(e.facts.policy(e.s), e.task, to)
}

// actions says what happens to the worktree around a move.
// Spec: reference of the worktree hooks.
func actions(policy contract.Worktrees, t *Task, to contract.Queue) (pre, post []WorktreeAction) {
	owns := policy.Requires(t.Kind)
	switch to {
	case queueDev, queueUIDev, queueDocs:
		if owns {
			pre = []WorktreeAction{WorktreeCreate}
		}
	case queueVerified:
		if owns {
			pre = []WorktreeAction{WorktreeMerge}
			if policy.CleanupOnVerified {
				post = []WorktreeAction{WorktreeRemove}
			}
		}
	case queueArchive:
		if (owns || t.Kind == StreamReviewSession) && policy.CleanupOnArchive {
			post = []WorktreeAction{WorktreeRemove}
		}
	}
	return pre, post
}

// Handback plans the return of a task whose approved work does not merge. It files a review
// block that asks for changes and says why, in the name of the role whose decision led here and
// marked as the service's own, and moves the task to the implementer.
//
// to is the schema's conflict_handback_to. Where it names one implementer's queue and the
// task's scope belongs to another, the task goes to that one: nobody else may file its
// implementation.
// Spec: DESIGN (a merge conflict hands the task back).
func Handback(s *contract.Schema, t *Task, to contract.Queue, why string, f Facts) (Planned, []refusal.Reason) {
	if own, ok := implementers[t.Scope]; ok && slices.Contains([]contract.Queue{queueDev, queueUIDev, queueDocs}, to) {
		to = own
	}
	e := &effect{s: s, task: t, facts: f, planned: Planned{Artifacts: []Artifact{}, Commands: []string{}, Reason: why}}
	d := &draft{s: s, task: t, facts: f, kind: blockReview, place: "handback",
		fields: Fields{{"outcome", "changes_requested"}, {"notes", why}}}
	b, faults := d.build()
	e.faults = append(e.faults, faults...)
	e.finish(to, []Block{b})
	if len(e.faults) > 0 {
		return Planned{}, distinct(e.faults)
	}
	return e.planned, nil
}
