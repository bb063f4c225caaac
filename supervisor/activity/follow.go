package activity

// Cursor is how much of a feed somebody has seen: everything up to the item of a sequence, and that many
// bytes of its text.
type Cursor struct {
	Sequence uint64 `json:"sequence"`
	Bytes    int    `json:"bytes"`
}

// News is what came after a cursor.
type News struct {
	// Items are the new ones. The first holds only the rest of its text where Resumed says so.
	Items   []Item `json:"items"`
	Resumed bool   `json:"resumed,omitempty"`
	// Next is the cursor after them, Missed how many items were dropped before anybody saw them.
	Next   Cursor `json:"next"`
	Missed uint64 `json:"missed,omitempty"`
}

// Since returns what came after a cursor.
func (d *Document) Since(c Cursor) News {
	n := News{Items: []Item{}, Next: c}
	if len(d.Items) > 0 && d.Dropped > 0 && d.Items[0].Sequence > c.Sequence+1 {
		// Sequences have gaps where a plan took another's place, so this may count too many of the dropped.
		n.Missed = min(d.Dropped, d.Items[0].Sequence-c.Sequence-1)
	}
	for _, it := range d.Items {
		switch {
		case it.Sequence < c.Sequence:
			continue
		case it.Sequence == c.Sequence:
			if len(it.Text) <= c.Bytes {
				continue
			}
			n.Resumed = true
			n.Next.Bytes = len(it.Text)
			it.Text = it.Text[c.Bytes:]
		default:
			n.Next = Cursor{it.Sequence, len(it.Text)}
		}
		n.Items = append(n.Items, it)
	}
	return n
}
