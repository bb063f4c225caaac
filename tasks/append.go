package tasks

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"greatminds/contract"
	"greatminds/internal/refusal"
)

// NewBlock is the arguments of `task append-block`.
type NewBlock struct {
	ID   string
	Kind contract.BlockKind
	// Fields are as the caller gave them, in that order. A text is typed by its key and form
	// first (see typedField); other values stand as they are.
	Fields Fields
	// Body goes into the kind's body field; nil when not given.
	Body *string
}

// AppendBlock files a block on a task and returns the task's new ref. The whole task is
// validated with the block before a byte is written, and every byte that stood in the file
// stays. Every reason against the block is given at once, and the first decides the code.
// Spec: reference of the blocks (append order).
func (t *Tree) AppendBlock(ctx context.Context, op Operator, a NewBlock) (Ref, error) {
	h, task, err := t.open(ctx, op, a.ID)
	if err != nil {
		return Ref{}, err
	}
	defer h.Release()
	fields, faults := t.argued(a)
	if len(faults) > 0 {
		return Ref{}, refuse("mend the arguments", faults, "the fields cannot be read")
	}
	var needs FactNeeds
	needs.ofBlock(&Block{Kind: a.Kind, Fields: fields})
	facts, err := t.gather(ctx, op, task, needs)
	if err != nil {
		return Ref{}, err
	}
	block, faults := t.judge(task, facts, a.Kind, fields)
	if len(faults) > 0 {
		return Ref{}, refuse("mend the block, then append it again", faults, "%s takes no such %s block", task.ID, a.Kind)
	}
	filed, err := t.file(h, op, task, block)
	if err != nil {
		return Ref{}, err
	}
	t.touch(op.Role)
	return filed.Ref, nil
}

// judge drafts a block and validates the whole task with it.
func (t *Tree) judge(task *Task, facts Facts, kind contract.BlockKind, fields Fields) (Block, []refusal.Reason) {
	d := &draft{s: t.schema, task: task, facts: facts, kind: kind, fields: fields}
	block, faults := d.build()
	return block, distinct(append(faults, blockFaults(t.schema, task)...))
}

// file writes a judged block and its journal line, and returns the task as it then stands.
func (t *Tree) file(h *Held, op Operator, task *Task, block Block) (*Task, error) {
	data, err := task.withBlocks([]Block{block})
	if err != nil {
		r := refusal.New(refusal.CodeTaskInvalid, "file a smaller or simpler block", "%v", err)
		r.Err = err
		return nil, r
	}
	ref, err := t.commit(h, change{before: task.Ref, after: data, to: task.Queue, role: op.Role,
		reason: "append-block " + string(block.Kind)})
	if err != nil {
		return nil, err
	}
	return t.parse(ref, data)
}

// argued types the arguments of a block and adds its body.
func (t *Tree) argued(a NewBlock) (Fields, []refusal.Reason) {
	var fields Fields
	var faults []refusal.Reason
	fault := func(key, what string) {
		faults = append(faults, refusal.Reason{Code: refusal.CodeBlockField, Place: key, What: what})
	}
	given := a.Fields
	if spec, ok := t.schema.BlockKind(a.Kind); ok && a.Body != nil && spec.BodyField != "" {
		given = append(given[:len(given):len(given)], Field{spec.BodyField, *a.Body})
	}
	for i, f := range given {
		text, isText := f.Value.(string)
		switch {
		case !utf8.ValidString(f.Key) || isText && !utf8.ValidString(text):
			fault(strings.ToValidUTF8(f.Key, "?"), "the argument is not UTF-8")
		case f.Key == "" || len(f.Key) > maxKeyBytes:
			fault(f.Key, "the key is empty or too long")
		case fields.Has(f.Key):
			fault(f.Key, shown(f.Key)+" is given twice")
		case !holdable(f.Value, 0):
			fault(f.Key, "a value of this kind cannot stand in a task")
		case isText && (i < len(a.Fields)):
			value, why := typedField(f.Key, text)
			if why != "" {
				fault(f.Key, why)
			}
			fields = append(fields, Field{f.Key, value})
		default:
			fields = append(fields, f)
		}
	}
	return fields, faults
}

// holdable reports whether a task file can hold a value.
func holdable(v any, depth int) bool {
	switch v := v.(type) {
	case nil, bool, int64, float64:
		return true
	case string:
		return utf8.ValidString(v)
	case []any:
		return depth < maxDepth && !slices.ContainsFunc(v, func(item any) bool { return !holdable(item, depth+1) })
	case Fields:
		return depth < maxDepth && !slices.ContainsFunc(v, func(f Field) bool {
			return f.Key == "" || len(f.Key) > maxKeyBytes || !utf8.ValidString(f.Key) || !holdable(f.Value, depth+1)
		})
	}
	return false
}

// listFields are the fields that hold lists whatever their text looks like.
var listFields = map[string]bool{"dependencies": true, "files": true, "test_files": true, "hosts": true, "scenarios": true,
	"evidence_for": true, "docs_checked": true, "bugs_filed": true, "commands": true, "functional_probes": true,
	"requires_live_roles": true}

// textFields are the fields that hold text whatever it looks like: a commit of digits alone is
// no number.
var textFields = map[string]bool{"base_commit": true, "commit": true, "gate_check_commit": true, "reason": true, "notes": true,
	"body": true, "summary": true, "stand_reason": true, "test_command": true, "assignee_role": true,
	"carveout_citation": true, "resume_to": true, "mode": true}

// typedField gives a text from the command line its type: a list for a list's key (`a,b` or
// `[a, b]`), text for a text's key, else a mapping for `{…}`, a boolean for true and false, a
// whole number for digits, and text for the rest.
func typedField(key, text string) (value any, why string) {
	switch {
	case textFields[key]:
		return text, ""
	case listFields[key]:
		return typedList(text)
	case strings.HasPrefix(text, "{"):
		return flowValue(text)
	case text == "true" || text == "false":
		return text == "true", ""
	}
	if text != "" && strings.Trim(text, "0123456789") == "" && (text == "0" || text[0] != '0') {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n, ""
		}
	}
	return text, ""
}

func typedList(text string) (any, string) {
	if strings.HasPrefix(strings.TrimSpace(text), "[") {
		v, why := flowValue(text)
		if _, ok := v.([]any); !ok && why == "" {
			why = shown(text) + " is no list"
		}
		return v, why
	}
	list := []any{}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list, ""
}

// flowValue reads a YAML value written on one line.
func flowValue(text string) (any, string) {
	r := &reader{file: "argument", places: map[string]place{}}
	data := []byte(text)
	if !r.readable(data) {
		return nil, r.faults[0].String()
	}
	root := r.parse(data)
	if root == nil || root.Kind == yaml.ScalarNode {
		return nil, shown(text) + " is no YAML list or mapping"
	}
	r.data, r.starts = data, lineStarts(data)
	v := r.value(root, "", 0)
	if len(r.faults) > 0 {
		return nil, r.faults[0].String()
	}
	return v, ""
}
