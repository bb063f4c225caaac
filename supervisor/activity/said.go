package activity

import (
	"strings"
	"unicode/utf8"

	"greatminds/transport"
)

// say appends to what is said, or begins anew where something else came in between.
func (f *Feed) say(kind string, u transport.Update) {
	text := u.Text
	if u.ContentType != "text" {
		text = "[" + u.ContentType + "]"
	}
	it := f.end()
	if it == nil || it.Kind != kind || it.messageID != u.MessageID {
		it = f.add(&item{Item: Item{Kind: kind, Open: true}, stream: f.secrets.Stream(), messageID: u.MessageID})
	}
	if len(text) > maxChunk {
		it = f.sayEnd(it, text)
	} else {
		it.waiting.WriteString(text)
		it.waitingCost += cost(text)
		if it.waiting.Len() > pieceBytes {
			it = f.settle(it)
		}
	}
	f.weigh(it)
	f.touched()
}

// sayEnd takes the end of a text that has no room in the feed. A secret that begins before the end does
// must not be shown by its rest, so that as much as the longest one has is left out as well.
func (f *Feed) sayEnd(it *item, text string) *item {
	it = f.settle(it)
	it = f.pour(it, it.stream.Flush())
	lead := f.secrets.Longest()
	rest := it.stream.Write(text[max(0, len(text)-maxChunk-lead):])
	return f.pour(it, "[…] "+rest[min(lead, len(rest)):])
}

// settle masks what waits in the last item. It returns the item that the text goes on in.
func (f *Feed) settle(it *item) *item {
	text := it.waiting.String()
	it.waiting.Reset()
	it.waitingCost = 0
	return f.pour(it, it.stream.Write(text))
}

// pour appends masked text to the last item, and goes on in further ones where it is full. It returns
// the last of them.
func (f *Feed) pour(it *item, text string) *item {
	text = strings.ToValidUTF8(text, "\ufffd")
	for {
		part := fitting(text, MaxItemBytes-itemCost-reserve-it.textCost)
		it.append(part)
		f.weigh(it)
		if text = text[len(part):]; text == "" {
			return it
		}
		stream := it.stream
		it.stream = nil
		f.weigh(it)
		it = f.add(&item{Item: Item{Kind: it.Kind, Open: true, Continued: true}, stream: stream, messageID: it.messageID})
	}
}

// finish masks the rest of an item that has ended, and cuts what it has no room for.
func (f *Feed) finish(it *item) {
	rest := strings.ToValidUTF8(it.stream.Write(it.waiting.String())+it.stream.Flush(), "\ufffd")
	it.waiting.Reset()
	it.stream, it.waitingCost = nil, 0
	part := fitting(rest, MaxItemBytes-itemCost-len("…")-it.textCost)
	it.append(part)
	if len(part) < len(rest) {
		it.append("…")
	}
	f.weigh(it)
}

func (it *item) append(text string) {
	it.text.WriteString(text)
	it.textCost += cost(text)
}

// fitting is the longest start of text that costs at most room and ends between two characters.
func fitting(text string, room int) string {
	if cost(text) <= room {
		return text
	}
	used := 0
	for i := 0; i < len(text); {
		_, size := utf8.DecodeRuneInString(text[i:])
		if used += cost(text[i : i+size]); used > room {
			return text[:i]
		}
		i += size
	}
	return text
}

// short is a title or a word, masked and cut to n bytes.
func (f *Feed) short(s string, n int) string {
	out := strings.ToValidUTF8(f.secrets.Head(s, n), "\ufffd")
	if part := fitting(out, n); len(part) < len(out) || len(s) > n {
		return part + "…"
	}
	return out
}
