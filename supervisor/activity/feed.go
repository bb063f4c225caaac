package activity

import (
	"strings"
	"sync"
	"time"

	"greatminds/internal/redact"
	"greatminds/runstore"
	"greatminds/transport"
)

const (
	// itemCost is what an item takes beside its texts.
	itemCost = 200
	// pieceBytes is how much text waits to be masked, maxChunk how much of one update is kept, and
	// reserve what an item keeps room for: what waits and what its stream holds.
	pieceBytes = 2 << 10
	maxChunk   = 64 << 10
	reserve    = 7 << 10
	// maxTitle, maxWord and maxEntry bound titles, words of the protocol, and lines of a plan; maxEntries
	// the lines. Bytes.
	maxTitle, maxWord, maxEntry, maxEntries = 512, 64, 256, 64
	// maxCalls is how many tool calls are remembered to tell what is new of them.
	maxCalls = 64
)

// Feed gathers the items of one run. Its methods are safe for concurrent use and never wait.
type Feed struct {
	runID   string
	secrets *redact.Redactor
	now     func() time.Time

	mu      sync.Mutex
	items   []*item // oldest first
	bytes   int
	last    uint64
	dropped uint64
	updated time.Time
	calls   map[string]call
	order   []string
	// planned and lastPlan are the plan as last told, lastMode the mode.
	planned  bool
	lastPlan []byte
	lastMode string
	// changed is closed at the next change; nil while nobody waits for one.
	changed chan struct{}
	// unwritten says that the file is behind.
	unwritten bool
	notice    chan struct{}
}

// item is an item in work. What is not masked yet is masked when somebody looks: most of a flood is
// gone by then.
type item struct {
	Item
	text    strings.Builder
	waiting strings.Builder // not masked yet
	stream  *redact.Stream  // nil once nothing waits any more

	textCost, waitingCost int
	bytes                 int

	messageID string
	plan      []byte // raw
}

// call is what was last told of a tool call.
type call struct{ title, kind, status string }

// New begins the feed of a run. now gives the items their times.
func New(runID string, secrets *redact.Redactor, now func() time.Time) *Feed {
	return &Feed{runID: runID, secrets: secrets, now: now, calls: map[string]call{}, notice: make(chan struct{}, 1)}
}

// Update takes what the agent said. Replayed history is another run's, and what is not understood says
// nothing to a person.
func (f *Feed) Update(u transport.Update) {
	if !u.Known || u.Replayed {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch u.Kind {
	case "agent_message_chunk":
		f.say(Message, u)
	case "agent_thought_chunk":
		f.say(Thought, u)
	case "tool_call", "tool_call_update":
		f.tool(u)
	case "plan":
		f.plan(u)
	case "current_mode_update":
		f.mode(u.Mode)
	}
}

// Question takes what became of a question.
func (f *Feed) Question(i Item) {
	i.Kind = Permission
	i.Title, i.ToolKind = f.short(i.Title, maxTitle), f.short(i.ToolKind, maxWord)
	i.Option, i.Status, i.Reason = f.short(i.Option, maxTitle), f.short(i.Status, maxWord), f.short(i.Reason, maxWord)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.add(&item{Item: i})
}

// Stop notes the end of the turn. The reason is empty where the agent gave none.
func (f *Feed) Stop(reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.add(&item{Item: Item{Kind: Stop, StopReason: f.short(reason, maxWord)}})
}

// end is the last item where it still goes on.
func (f *Feed) end() *item {
	if len(f.items) == 0 || !f.items[len(f.items)-1].Open {
		return nil
	}
	return f.items[len(f.items)-1]
}

// add ends what was said and puts a new item behind it.
func (f *Feed) add(it *item) *item {
	if last := f.end(); last != nil {
		last.Open = false // its rest is masked when somebody looks
	}
	f.last++
	it.Sequence, it.At = f.last, runstore.Epoch(f.now())
	f.items = append(f.items, it)
	f.weigh(it)
	f.touched()
	return it
}

// weigh counts an item's bytes again.
func (f *Feed) weigh(it *item) {
	n := itemCost + it.textCost + it.waitingCost + cost(it.Title) + cost(it.Option) + cost(it.Mode) + min(2*len(it.plan), MaxItemBytes-itemCost)
	if it.stream != nil {
		n += 2 * it.stream.Held()
	}
	f.bytes += n - it.bytes
	it.bytes = n
}

// touched notes a change, and tells whoever waits for one.
func (f *Feed) touched() {
	f.updated = f.now()
	f.trim()
	f.unwritten = true
	select {
	case f.notice <- struct{}{}:
	default: // a notice is already waiting
	}
	if f.changed != nil {
		close(f.changed)
		f.changed = nil
	}
}

// trim drops what there is no room for.
func (f *Feed) trim() {
	for len(f.items) > 1 && (len(f.items) > MaxItems || f.bytes > MaxBytes-itemCost) {
		f.bytes -= f.items[0].bytes
		f.items[0] = nil
		f.items = f.items[1:]
		f.dropped++
	}
}

// Changed returns a channel that is closed at the next change.
func (f *Feed) Changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.changed == nil {
		f.changed = make(chan struct{})
	}
	return f.changed
}
