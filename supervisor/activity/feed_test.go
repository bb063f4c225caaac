package activity_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"greatminds/internal/redact"
	"greatminds/supervisor/activity"
	"greatminds/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "CANARY SECRET VALUE"

func newFeed() *activity.Feed {
	return activity.New("run1", redact.New(secret), func() time.Time { return time.Unix(1_800_000_000, 0) })
}

func chunk(text string) transport.Update {
	return transport.Update{Known: true, Kind: "agent_message_chunk", ContentType: "text", Text: text}
}

func toolUpdate(id, title, kind, status string) transport.Update {
	return transport.Update{Known: true, Kind: "tool_call_update", ToolCallID: id, ToolReference: "ref-" + id[:1], Title: title, ToolKind: kind, Status: status}
}

func planOf(lines ...string) transport.Update {
	var entries []map[string]string
	for _, l := range lines {
		entries = append(entries, map[string]string{"content": l, "status": "pending", "priority": "low"})
	}
	raw, _ := json.Marshal(map[string]any{"sessionUpdate": "plan", "entries": entries})
	return transport.Update{Known: true, Kind: "plan", Raw: raw}
}

// told is the feed in short, one item a line.
func told(d *activity.Document) string {
	var lines []string
	for _, i := range d.Items {
		line := strings.Join(strings.Fields(fmt.Sprint(i.Kind, " ", i.Tool, " ", i.Title, " ", i.ToolKind, " ", i.Status, " ", i.Request, " ", i.Option, " ", i.Reason, " ",
			i.Mode, " ", i.StopReason, " ", i.Text)), " ")
		for _, e := range i.Entries {
			line += " | " + e.Content + " (" + e.Status + ")"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func TestWhatAFeedTells(t *testing.T) {
	f := newFeed()
	for _, text := range []string{"I loo", "k at the", " file.\n"} {
		f.Update(chunk(text))
	}
	f.Update(toolUpdate("a", "Read main.go", "read", "pending"))
	f.Update(toolUpdate("a", "", "", "pending")) // nothing new
	f.Update(toolUpdate("a", "", "", "completed"))
	f.Update(planOf("first", "second "+secret))
	f.Update(planOf("first", "third")) // in its place
	f.Update(planOf("first", "third"))
	thought := chunk("hm")
	thought.Kind = "agent_thought_chunk"
	f.Update(thought)
	f.Update(transport.Update{Known: true, Kind: "current_mode_update", Mode: "plan"})
	f.Update(transport.Update{Known: true, Kind: "current_mode_update", Mode: "code"})
	f.Question(activity.Item{Request: "p1", Title: "Write " + secret, ToolKind: "edit", Status: "pending"})
	f.Question(activity.Item{Request: "p1", Title: "Write " + secret, ToolKind: "edit", Status: "consumed", Option: "ok"})
	picture := chunk("")
	picture.ContentType = "image"
	f.Update(picture)
	old := chunk("history")
	old.Replayed = true
	f.Update(old)
	f.Update(transport.Update{Kind: "teleport"})
	f.Stop("end_turn")
	want := `message I look at the file.
tool ref-a Read main.go read pending
tool ref-a Read main.go read completed
plan | first (pending) | third (pending)
thought hm
mode code
permission Write [redacted] edit pending p1
permission Write [redacted] edit consumed p1 ok
message [image]
stop end_turn`
	d := f.Document()
	if got := told(d); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if d.Version != 1 || d.RunID != "run1" || d.UpdatedAt == nil || d.Dropped != 0 {
		t.Errorf("got %+v", d)
	}
}

// What an open item shows only grows, shows no start of a secret, and is masked as the whole is.
func TestAMessageOnlyGrows(t *testing.T) {
	f := newFeed()
	shown := ""
	for _, b := range "Words, then " + secret + " and Bearer abc.def and password: hunter2, done. " {
		f.Update(chunk(string(b)))
		d := f.Document()
		if now := d.Items[0].Text; !strings.HasPrefix(now, shown) || strings.Contains(now, "CANARY") || strings.Contains(now, "hunt") || strings.Contains(now, "abc") {
			t.Fatalf("%q became %q", shown, now)
		} else {
			shown = now
		}
		if !d.Items[0].Open {
			t.Fatal("an item that goes on is not open")
		}
	}
	f.Stop("end_turn")
	if got, want := f.Document().Items[0], "Words, then [redacted] and Bearer [redacted] and password: [redacted], done. "; got.Text != want || got.Open {
		t.Errorf("got %+v, want %q", got, want)
	}
}

// Whatever an agent says and however it is cut, a feed keeps its bounds, its items their order, and no
// secret stands in it.
func TestAFeedKeepsItsBounds(t *testing.T) {
	texts := []string{"word ", "\n", secret, "CANARY SECRET", " VALUE", strings.Repeat("x", 5000), strings.Repeat("<\x01\u2028é ", 1000), "\xff\xfe", strings.Repeat("long text ", 7_000),
		"password: ", "Bearer ", `"`, strings.Repeat(secret+" ", 1000)}
	rapid.Check(t, func(t *rapid.T) {
		f := newFeed()
		for range rapid.IntRange(1, 40).Draw(t, "updates") {
			text := texts[rapid.IntRange(0, len(texts)-1).Draw(t, "text")]
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				f.Update(toolUpdate(text, text, text, text))
			case 1:
				f.Update(planOf(text, text))
			case 2:
				f.Update(transport.Update{Known: true, Kind: "current_mode_update", Mode: text})
			case 3:
				f.Question(activity.Item{Request: "p", Title: text, ToolKind: text, Option: text, Status: "pending", Reason: text})
			case 4:
				checkBounds(t, f.Document())
			default:
				f.Update(chunk(text))
			}
		}
		f.Stop("")
		checkBounds(t, f.Document())
	})
}

func checkBounds(t *rapid.T, d *activity.Document) {
	whole, err := json.Marshal(d)
	if err != nil || len(whole) > activity.MaxBytes || len(d.Items) > activity.MaxItems {
		t.Fatalf("%d bytes in %d items, %v", len(whole), len(d.Items), err)
	}
	last := uint64(0)
	for _, i := range d.Items {
		one, err := json.Marshal(i)
		if err != nil || len(one) > activity.MaxItemBytes || i.Sequence <= last {
			t.Fatalf("item %d after %d has %d bytes: %.200s", i.Sequence, last, len(one), one)
		}
		last = i.Sequence
	}
	if all := string(whole); strings.Contains(all, secret) || strings.Contains(all, "CANARY SECRET V") {
		t.Fatal("it holds the secret")
	}
}

func TestTheOldestMakeRoom(t *testing.T) {
	f := newFeed()
	for i := range activity.MaxItems + 10 {
		f.Update(toolUpdate(fmt.Sprint(i), fmt.Sprint("call ", i), "read", "pending"))
	}
	d := f.Document()
	if len(d.Items) != activity.MaxItems || d.Dropped != 10 || d.Items[0].Title != "call 10" {
		t.Errorf("%d items, %d dropped, first %q", len(d.Items), d.Dropped, d.Items[0].Title)
	}
	f = newFeed()
	for range 100 {
		f.Update(chunk(strings.Repeat("a lot of text ", 1000)))
	}
	if d := f.Document(); d.Dropped == 0 || !d.Items[0].Continued || d.Items[0].Open || !d.Items[len(d.Items)-1].Open {
		t.Errorf("%d dropped, first %+v", d.Dropped, d.Items[0].Continued)
	}
}

// Whoever follows a feed from any moment on sees each text once and in order.
func TestAFollowerSeesEverythingOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, cursor, seen, said := newFeed(), activity.Cursor{}, "", ""
		look := func() {
			news := f.Document().Since(cursor)
			for i, item := range news.Items {
				if i == 0 && news.Resumed != (item.Sequence == cursor.Sequence) {
					t.Fatalf("resumed %v at item %d after %v", news.Resumed, item.Sequence, cursor)
				}
				seen += item.Text
			}
			if news.Missed > 0 {
				t.Fatalf("%d are missed", news.Missed)
			}
			cursor = news.Next
		}
		for i := range rapid.IntRange(1, 60).Draw(t, "updates") {
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				f.Update(toolUpdate(fmt.Sprint(i), "t", "read", "pending"))
			case 1:
				look()
			default:
				text := rapid.SampledFrom([]string{"word ", "é ", "x", strings.Repeat("words ", 700)}).Draw(t, "text")
				said += text
				f.Update(chunk(text))
			}
		}
		f.Stop("end_turn")
		look()
		if seen != said {
			t.Fatalf("%d bytes seen of %d", len(seen), len(said))
		}
		if news := f.Document().Since(cursor); len(news.Items) > 0 || news.Next != cursor {
			t.Fatalf("there is more: %+v", news)
		}
	})
}

func TestAFollowerIsToldWhatItMissed(t *testing.T) {
	f := newFeed()
	f.Update(toolUpdate("first", "t", "read", "pending"))
	cursor := f.Document().Since(activity.Cursor{}).Next
	for i := range activity.MaxItems + 4 {
		f.Update(toolUpdate(fmt.Sprint(i), "t", "read", "pending"))
	}
	if news := f.Document().Since(cursor); news.Missed != 4 || len(news.Items) != activity.MaxItems {
		t.Errorf("%d missed, %d items", news.Missed, len(news.Items))
	}
}

func TestAChangeIsToldToWhoeverWaits(t *testing.T) {
	f := newFeed()
	changed := f.Changed()
	select {
	case <-changed:
		t.Fatal("nothing has changed")
	default:
	}
	f.Update(chunk("x"))
	<-changed
	if f.Changed() == changed {
		t.Fatal("the next change is told already")
	}
}

// What a flood costs each update: text of one message, and calls that change all the time.
func BenchmarkFlood(b *testing.B) {
	for name, next := range map[string]func(i int) transport.Update{
		"chunks": func(int) transport.Update { return chunk("some twenty bytes...") },
		"tools":  func(i int) transport.Update { return toolUpdate("a", "", "", []string{"pending", "in_progress"}[i%2]) },
		"same":   func(int) transport.Update { return toolUpdate("a", "Read main.go", "read", "in_progress") },
	} {
		b.Run(name, func(b *testing.B) {
			f := newFeed()
			for i := 0; b.Loop(); i++ {
				f.Update(next(i))
			}
		})
	}
}
