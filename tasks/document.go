package tasks

import (
	"fmt"
	"path"
	"strings"

	"greatminds/contract"
	"greatminds/internal/refusal"
)

// Parse reads a task file that stands, or is to stand, in a queue. file is its path for
// messages; its stem must be the header's id.
//
// The text is one YAML document in UTF-8, with or without byte order mark, with any line ends.
// Duplicate keys, anchors, aliases, tags, merge keys and further documents are refused, and so
// are plain values that other readers take for something else (`yes`, `0x10`, an unquoted
// date). It fails with one refusal that lists every fault as "file:line:column".
func Parse(schema *contract.Schema, queue contract.Queue, file string, data []byte) (*Task, error) {
	t, faults := decode(queue, file, data)
	if len(faults) == 0 {
		faults = append(headerFaults(schema, t), blockFaults(schema, t)...)
	}
	if len(faults) > 0 {
		return nil, refuse("mend the file, then `greatminds task validate --file "+file+"`", faults,
			"%s is no valid task", file)
	}
	return t, nil
}

// refuse makes one refusal of some faults. Its code, and with it the exit status, is that of
// the first.
func refuse(remedy string, faults []refusal.Reason, format string, args ...any) *refusal.Refusal {
	r := refusal.New(faults[0].Code, remedy, format, args...)
	if len(faults) == 1 {
		r.What += ": " + refusal.Reason{Place: faults[0].Place, What: faults[0].What}.String()
		if faults[0].Remedy != "" {
			r.Remedy = faults[0].Remedy
		}
		return r
	}
	r.Reasons = faults
	return r
}

// decode reads the form of a task file: YAML, and blocks that are blocks. The values are not
// judged yet. The task is nil where there are faults.
func decode(queue contract.Queue, file string, data []byte) (*Task, []refusal.Reason) {
	r := &reader{file: file, places: map[string]place{}}
	root, header := r.document(data)
	if root == nil || len(r.faults) > 0 {
		return nil, r.faults
	}
	stem := strings.TrimSuffix(path.Base(file), ".yaml")
	t := &Task{Ref: Ref{ID: ID(stem), Queue: queue, File: FileOf(queue, ID(stem))},
		Header: header.Without("blocks"), Bytes: data, root: root, places: r.places, file: file}
	t.Revision = RevisionOf(t.File, data)
	t.Blocks = r.blocks(header.Get("blocks"))
	t.typed()
	if len(r.faults) > 0 {
		return nil, r.faults
	}
	return t, nil
}

// typed copies the header fields we know into their members. A value of another type leaves
// the member empty; headerFaults says so.
func (t *Task) typed() {
	text := func(key string) string {
		s, _ := t.Header.Get(key).(string)
		return s
	}
	t.Stream, t.Title, t.Reporter, t.OpenedAt = text("stream"), text("title"), text("reporter"), text("opened_at")
	t.Priority, t.Kind, t.Scope, t.Mode = text("priority"), text("kind"), text("scope"), text("mode")
	t.TargetFunctionality, t.Description = text("target_functionality"), text("description")
	t.Scenarios = textsOf(t.Header.Get("scenarios"))
}

// textsOf returns the texts of a list, leaving out what is no text.
func textsOf(v any) []string {
	list, _ := v.([]any)
	var texts []string
	for _, item := range list {
		if s, ok := item.(string); ok {
			texts = append(texts, s)
		}
	}
	return texts
}

// blocks takes the list of blocks apart. A missing or empty list is a task without blocks.
func (r *reader) blocks(v any) []Block {
	list, ok := v.([]any)
	if !ok && v != nil {
		r.fault(r.places["blocks"], refusal.CodeTaskInvalid, "make it a list", "blocks is no list")
		return nil
	}
	var blocks []Block
	for i, item := range list {
		at := r.places[fmt.Sprintf("blocks[%d]", i)]
		fields, ok := item.(Fields)
		if !ok {
			r.fault(at, refusal.CodeTaskInvalid, "begin it with `kind:`", "block %d is no mapping", i+1)
			continue
		}
		b := Block{Fields: fields.Without("kind", "by", "at"), Line: at.line}
		kind, _ := fields.Get("kind").(string) // a wrong type is reported as an unknown kind
		by, _ := fields.Get("by").(string)
		b.At, _ = fields.Get("at").(string)
		b.Kind, b.By = contract.BlockKind(kind), contract.Role(by)
		blocks = append(blocks, b)
	}
	return blocks
}

// whole is the block as it stands in a file: kind, by and at first.
func (b Block) whole() Fields {
	head := Fields{{"kind", string(b.Kind)}, {"by", string(b.By)}, {"at", b.At}}
	return append(head, b.Fields...)
}

// placeOf says where a value of the task stands: by its path, or the nearest one around it.
func (t *Task) placeOf(where string) string {
	for p := where; ; {
		if at, ok := t.places[p]; ok && p != "" {
			return (&reader{file: t.file}).spell(at)
		}
		cut := strings.LastIndexAny(p, ".[")
		if cut < 0 {
			return t.file
		}
		p = p[:cut]
	}
}
