package transport

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	acp "github.com/coder/acp-go-sdk"
)

const (
	// maxOptions bounds the options of one question.
	maxOptions = 32
	// maxWithdrawn is how many questions of one turn the agent may withdraw. Each stays on record, and
	// nobody could have answered them.
	maxWithdrawn = 100
)

// questions are the agent's open permission requests. One is open until its answer is queued
// for writing.
type questions struct {
	mu   sync.Mutex
	last int64
	byID map[string]*question
	// withdrawn counts those of this turn that the agent has taken back.
	withdrawn int
	// fewer is closed when one is answered.
	fewer chan struct{}
}

// question is one open permission request.
type question struct {
	number int64
	// withdrawn is closed when a second request took the same id: whatever is answered, the
	// agent could take it for the answer to the other one.
	withdrawn chan struct{}
	doubled   bool
}

func newQuestions() *questions {
	return &questions{byID: map[string]*question{}, fewer: make(chan struct{})}
}

// idKey makes one key of all spellings that an id has on the way through the SDK.
func idKey(raw []byte) string {
	if isString(raw) {
		return `"` + text(raw)
	}
	return string(raw)
}

// open registers a request; why is not empty when it must be refused, with code.
func (q *questions) open(id []byte) (number int64, code int, why string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	key := idKey(id)
	if old := q.byID[key]; old != nil {
		if !old.doubled {
			old.doubled = true
			close(old.withdrawn)
		}
		return 0, codeInvalidRequest, "a request with this id is open"
	}
	if len(q.byID) >= MaxOpenRequests {
		return 0, codeBusy, fmt.Sprintf("more than %d requests are open", MaxOpenRequests)
	}
	if q.withdrawn >= maxWithdrawn {
		return 0, codeBusy, fmt.Sprintf("%d permission requests of this turn were withdrawn already", q.withdrawn)
	}
	q.last++
	q.byID[key] = &question{number: q.last, withdrawn: make(chan struct{})}
	return q.last, 0, ""
}

// takenBack notes that the agent has withdrawn a question that was asked.
func (q *questions) takenBack() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.withdrawn++
}

// newTurn begins to count anew.
func (q *questions) newTurn() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.withdrawn = 0
}

func (q *questions) find(number int64) *question {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, open := range q.byID {
		if open.number == number {
			return open
		}
	}
	return nil
}

// answered closes the question with this id.
func (q *questions) answered(id []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	key := idKey(id)
	if q.byID[key] == nil {
		return
	}
	delete(q.byID, key)
	close(q.fewer)
	q.fewer = make(chan struct{})
}

// wait returns when no question is open, or ctx ends.
func (q *questions) wait(ctx context.Context) {
	for {
		q.mu.Lock()
		n, fewer := len(q.byID), q.fewer
		q.mu.Unlock()
		if n == 0 {
			return
		}
		select {
		case <-fewer:
		case <-ctx.Done():
			return
		}
	}
}

// cancelled is the answer to every question that was not answered, also to one that the agent has
// withdrawn: the protocol lets that be an error of code -32800 or a valid answer, and this one
// every agent understands, those that never heard of the code too.
func cancelled() acp.RequestPermissionResponse {
	return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeCancelled()}
}

// permission is the SDK's handler of session/request_permission. It always answers, and what
// it answers is cancelled or an option that was offered and may be selected.
// Spec: "Operator permission requests", "Delivery status".
func (c *conn) permission(ctx context.Context, wrapped []byte) (any, *acp.RequestError) {
	number, err := strconv.ParseInt(string(member(wrapped, "number")), 10, 64)
	open := c.questions.find(number)
	if err != nil || open == nil {
		panic(fmt.Sprintf("transport: question %d was never opened", number))
	}
	params := member(wrapped, "params")
	r, why := readPermission(params)
	if why == "" {
		why = c.describe(&r)
	}
	if why != "" {
		c.stats.add(func(s *Stats) { s.Rejected++ })
		return nil, &acp.RequestError{Code: codeInvalidParams, Message: "Invalid params: " + why}
	}
	r.ID = "p" + strconv.FormatInt(number, 10)
	t := c.openTurn()
	if t == nil || r.SessionID != c.session() {
		c.stats.add(func(s *Stats) { s.Unasked++ })
		return cancelled(), nil
	}
	if c.o.Handler == nil {
		c.stats.add(func(s *Stats) { s.InputNeeded++ })
		c.mu.Lock()
		t.sum.InputNeeded++
		c.mu.Unlock()
		return cancelled(), nil
	}
	c.stats.add(func(s *Stats) { s.Permissions++ })
	return c.ask(ctx, t, open, r), nil
}

// describe completes the request with what updates have said about its tool call.
func (c *conn) describe(r *PermissionRequest) string {
	full, ok := c.tools.complete(r.ToolCallID, r.ToolCall)
	if !ok {
		return fmt.Sprintf("the tool call is over the limit of %d bytes", MaxPermissionBytes)
	}
	if repeats(full) { // an update may say a thing twice too
		return "a member of the tool call stands twice"
	}
	r.ToolCall = json.RawMessage(full)
	r.Title = text(member(full, "title"))
	r.ToolKind = cut(text(member(full, "kind")), maxWord)
	r.Status = cut(text(member(full, "status")), maxWord)
	return ""
}

// ask puts the question to the handler, and waits for its answer or for the end of what the
// question belongs to, whichever comes first. A handler that does not listen to its context
// holds up nobody.
func (c *conn) ask(ctx context.Context, t *turn, open *question, r PermissionRequest) acp.RequestPermissionResponse {
	// The handler's context ends when the question does, and says why.
	asked, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	answers, gone := make(chan PermissionAnswer), make(chan struct{})
	defer close(gone)
	c.pumps.Add(1)
	go func() {
		defer c.pumps.Done()
		late := c.callPermission(asked, r)
		select {
		case answers <- late:
		case <-gone:
			if late.Delivered != nil {
				late.Delivered(false)
			}
		}
	}()
	var answer PermissionAnswer
	select {
	case answer = <-answers:
	case <-ctx.Done():
		if !closed(c.dead) && !closed(t.over) {
			c.questions.takenBack()
			end(ErrWithdrawn)
		}
	case <-t.over:
	case <-open.withdrawn:
		c.questions.takenBack()
		end(ErrWithdrawn)
	}
	delivered := answer.OptionID != "" && c.accept(ctx, t, open, r.Options, answer.OptionID)
	if answer.Delivered != nil {
		answer.Delivered(delivered)
	}
	if !delivered {
		return cancelled()
	}
	return acp.RequestPermissionResponse{
		Outcome: acp.NewRequestPermissionOutcomeSelected(acp.PermissionOptionId(answer.OptionID)),
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// accept says whether the option may still be answered.
func (c *conn) accept(ctx context.Context, t *turn, open *question, options []Option, chosen string) bool {
	valid := false
	for _, o := range options {
		valid = valid || o.Selectable && o.ID == chosen
	}
	if !valid {
		c.stats.add(func(s *Stats) { s.InvalidAnswers++ })
		return false
	}
	select {
	case <-ctx.Done():
		return false
	case <-open.withdrawn:
		return false
	case <-t.over:
		return false
	default:
		return true
	}
}

// callPermission calls the handler; a panic in it is an unanswered question.
func (c *conn) callPermission(ctx context.Context, r PermissionRequest) (answer PermissionAnswer) {
	defer func() {
		if p := recover(); p != nil {
			answer = PermissionAnswer{}
			c.observationFailed(fmt.Errorf("permission handler panicked: %v", p), true)
		}
	}()
	return c.o.Handler.Permission(ctx, r)
}

// readPermission reads and checks the params of a permission request; why is not empty when
// it must be refused. Members that stand twice are refused at any depth: the operator could
// be shown one and the agent mean the other.
func readPermission(params []byte) (r PermissionRequest, why string) {
	if !isObject(params) {
		return r, "no object"
	}
	if repeats(params) {
		return r, "a member stands twice"
	}
	r.SessionID = cut(text(member(params, "sessionId")), maxID)
	r.Bytes = len(params)
	call := member(params, "toolCall")
	r.ToolCall = json.RawMessage(call)
	r.ToolCallID = text(member(call, "toolCallId"))
	switch {
	case r.SessionID == "":
		return r, "sessionId is missing"
	case !isObject(call):
		return r, "toolCall is missing"
	case r.ToolCallID == "" || len(r.ToolCallID) > maxID:
		return r, "toolCall.toolCallId is missing or too long"
	}
	r.Options, why = readOptions(member(params, "options"))
	return r, why
}

func readOptions(raw []byte) ([]Option, string) {
	var options []Option
	walk := elements{b: raw}
	for walk.next() {
		o := Option{
			ID:   text(member(walk.value, "optionId")),
			Name: text(member(walk.value, "name")),
			Kind: cut(text(member(walk.value, "kind")), maxWord),
		}
		// Only what holds for this one call may be chosen; persistent grants and kinds that
		// nobody knows are shown, no more.
		o.Selectable = o.Kind == "allow_once" || o.Kind == "reject_once"
		if o.ID == "" || len(o.ID) > maxID {
			return nil, "an option has no optionId, or one that is too long"
		}
		for _, other := range options {
			if other.ID == o.ID {
				return nil, "two options have the same optionId"
			}
		}
		if options = append(options, o); len(options) > maxOptions {
			return nil, fmt.Sprintf("more than %d options", maxOptions)
		}
	}
	if walk.end() < 0 || len(options) == 0 {
		return nil, "no options"
	}
	return options, ""
}
