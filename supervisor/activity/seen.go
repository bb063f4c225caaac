package activity

import (
	"bytes"
	"encoding/json"

	"greatminds/runstore"
	"greatminds/transport"
)

// tool takes a tool call or an update of one, where it says something new.
func (f *Feed) tool(u transport.Update) {
	was, known := f.calls[u.ToolCallID]
	is := was
	if u.Title != "" {
		is.title = f.short(u.Title, maxTitle)
	}
	if u.ToolKind != "" {
		is.kind = f.short(u.ToolKind, maxWord)
	}
	if u.Status != "" {
		is.status = f.short(u.Status, maxWord)
	}
	if known && is == was {
		return
	}
	f.remember(u.ToolCallID, known, is)
	f.add(&item{Item: Item{Kind: Tool, Tool: u.ToolReference, Title: is.title, ToolKind: is.kind, Status: is.status}})
}

func (f *Feed) remember(id string, known bool, c call) {
	if !known {
		if len(f.order) == maxCalls {
			delete(f.calls, f.order[0])
			f.order = f.order[1:]
		}
		f.order = append(f.order, id)
	}
	f.calls[id] = c
}

// plan takes the plan, in the place of the last one where nothing came in between. It is read when
// somebody looks.
func (f *Feed) plan(u transport.Update) {
	raw := []byte(nil)
	if len(u.Raw) <= MaxItemBytes {
		raw = bytes.Clone(u.Raw)
	}
	if f.planned && bytes.Equal(f.lastPlan, raw) {
		return
	}
	f.planned, f.lastPlan = true, raw
	f.replace(Plan)
	f.add(&item{Item: Item{Kind: Plan}, plan: raw})
}

// mode takes the mode, in the place of the last one where nothing came in between.
func (f *Feed) mode(mode string) {
	mode = f.short(mode, maxWord)
	if f.lastMode == mode {
		return
	}
	f.lastMode = mode
	f.replace(Mode)
	f.add(&item{Item: Item{Kind: Mode, Mode: mode}})
}

// replace takes the last item away where it is of this kind.
func (f *Feed) replace(kind string) {
	if n := len(f.items) - 1; n >= 0 && f.items[n].Kind == kind {
		f.bytes -= f.items[n].bytes
		f.items = f.items[:n]
	}
}

// readPlan reads a plan's lines, masked and bounded. One that cannot be read, or is too long, has none.
func (f *Feed) readPlan(it *item) {
	var plan struct {
		Entries []struct{ Content, Status string }
	}
	// What is no plan was counted as a plan all the same; it only shows nothing.
	_ = json.Unmarshal(it.plan, &plan)
	for i, e := range plan.Entries {
		if i == maxEntries {
			it.More = len(plan.Entries) - maxEntries
			break
		}
		it.Entries = append(it.Entries, Entry{f.short(e.Content, maxEntry/2), f.short(e.Status, maxWord/2)})
	}
}

// Document is the feed as it stands. The last item shows what is ready of it.
func (f *Feed) Document() *Document {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.document()
}

func (f *Feed) document() *Document {
	d := &Document{Version: Version, RunID: f.runID, Dropped: f.dropped, Items: []Item{}}
	if !f.updated.IsZero() {
		at := runstore.Epoch(f.updated)
		d.UpdatedAt = &at
	}
	for _, it := range f.items {
		if it.stream != nil && !it.Open {
			f.finish(it)
		}
	}
	if it := f.end(); it != nil {
		f.settle(it)
	}
	f.trim()
	for _, it := range f.items {
		if it.Kind == Plan && it.Entries == nil {
			f.readPlan(it)
		}
		it.Text = it.text.String()
		d.Items = append(d.Items, it.Item)
	}
	return d
}
