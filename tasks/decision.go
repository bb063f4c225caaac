package tasks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"greatminds/internal/refusal"
)

// The four decisions.
const (
	DecisionHandoff    = "handoff"
	DecisionBlocked    = "blocked"
	DecisionNeedsInput = "needs_input"
	DecisionNoChange   = "no_change"
)

// MaxDecisionBytes bounds a submitted decision. What is larger belongs into an artifact.
const MaxDecisionBytes = 1 << 20

// Decision is what a run decided about its task.
// Spec: "Lifecycle and result receipts" (the four decision payloads).
type Decision struct {
	// Kind is handoff, blocked, needs_input or no_change.
	Kind string
	// Payload is the decision's own object, numbers as json.Number.
	Payload map[string]any
}

// Envelope is a submitted decision with what else its author wrote around it. Empty members
// were not given; the daemon fills them from the run.
type Envelope struct {
	ResultID     string
	RunID        string
	TaskID       string
	TaskRevision string
	SchemaSHA256 string
	Decision     Decision
}

// payloadFields are the accepted keys of each decision's payload.
var payloadFields = map[string][]string{
	DecisionHandoff:    {"artifacts", "blocks", "command_evidence", "reason", "to_queue"},
	DecisionBlocked:    {"artifacts", "command_evidence", "dependencies", "reason", "resume_to"},
	DecisionNeedsInput: {"artifacts", "command_evidence", "question"},
	DecisionNoChange:   {"artifacts", "command_evidence", "reason"},
}

// identityFields are payload keys that would claim an identity; it comes from the run alone.
var identityFields = []string{"by", "role", "run_id", "schema_sha256", "task_revision"}

// DecisionFields lists, per decision, the accepted payload keys in alphabetical order. The
// result is the caller's own.
func DecisionFields() map[string][]string { return cloneLists(payloadFields) }

func cloneLists(m map[string][]string) map[string][]string {
	out := make(map[string][]string, len(m))
	for k, v := range m {
		out[k] = slices.Clone(v)
	}
	return out
}

var resultIDPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// DecodeDecision reads a submitted decision, compact ({decision, payload}) or full. It judges
// its form alone: strict JSON of at most MaxDecisionBytes in UTF-8, no key twice at any depth,
// no unknown top-level key, one of the four decision words, an object as payload, and no
// payload key that claims an identity. It fails with one refusal that lists every fault.
// Spec: "Lifecycle and result receipts".
func DecodeDecision(data []byte) (Envelope, error) {
	value, err := strictJSON(data)
	if err != nil {
		return Envelope{}, refusal.New(refusal.CodeDecisionForm, "submit one JSON object such as "+
			`{"decision":"no_change","payload":{"reason":"…"}}`, "the decision is not readable as JSON: %v", err)
	}
	object, ok := value.(map[string]any)
	if !ok {
		return Envelope{}, refusal.New(refusal.CodeDecisionForm, "submit one JSON object",
			"the decision is no JSON object")
	}
	e, faults := envelopeOf(object)
	if len(faults) > 0 {
		return Envelope{}, refuse("mend the submission", faults, "the submission is no decision")
	}
	return e, nil
}

func envelopeOf(object map[string]any) (Envelope, []refusal.Reason) {
	var e Envelope
	var faults []refusal.Reason
	fault := func(code refusal.Code, place, remedy, format string, args ...any) {
		faults = append(faults, refusal.Reason{Code: code, Place: place, Remedy: remedy, What: fmt.Sprintf(format, args...)})
	}
	members := map[string]*string{"result_id": &e.ResultID, "run_id": &e.RunID, "task_id": &e.TaskID,
		"task_revision": &e.TaskRevision, "schema_sha256": &e.SchemaSHA256}
	for _, key := range sortedKeys(object) {
		member, known := members[key]
		text, isText := object[key].(string)
		switch {
		case key == "decision" || key == "payload":
		case !known:
			fault(refusal.CodeDecisionForm, key, "leave it out", "the field %s is unknown", shown(key))
		case !isText || text == "":
			fault(refusal.CodeDecisionForm, key, "leave it out, or give it as a text", "%s must be a text", key)
		case key == "result_id" && !resultIDPattern.MatchString(text):
			fault(refusal.CodeDecisionForm, key, "use letters, digits, dot, hyphen and underscore",
				"result_id %s is no simple name", shown(text))
		default:
			*member = text
		}
	}
	kind, _ := object["decision"].(string)
	if _, ok := payloadFields[kind]; !ok {
		fault(refusal.CodeDecisionForm, "decision", "use handoff, blocked, needs_input or no_change",
			"decision is %s", shown(object["decision"]))
	}
	payload, ok := object["payload"].(map[string]any)
	if !ok {
		fault(refusal.CodeDecisionForm, "payload", "give an object, {} where there is nothing to say", "payload is no object")
	}
	faults = append(faults, identityFaults(payload)...)
	e.Decision = Decision{Kind: kind, Payload: payload}
	return e, faults
}

// identityFaults refuses payload keys that claim an identity.
func identityFaults(payload map[string]any) []refusal.Reason {
	var faults []refusal.Reason
	for _, key := range identityFields {
		if _, given := payload[key]; given {
			faults = append(faults, refusal.Reason{Code: refusal.CodeDecisionIdentity, Place: "payload." + key,
				What: "payload." + key + " claims an identity, which comes from the run alone", Remedy: "leave it out"})
		}
	}
	return faults
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

var (
	errJSONDeep     = fmt.Errorf("values are nested more than %d deep", maxDepth)
	errJSONTrailing = errors.New("something follows the object")
)

// strictJSON reads one JSON value: objects as map[string]any, numbers as json.Number.
func strictJSON(data []byte) (any, error) {
	switch {
	case len(data) > MaxDecisionBytes:
		return nil, fmt.Errorf("it has %d bytes, more than %d", len(data), MaxDecisionBytes)
	case !utf8.Valid(data):
		return nil, errors.New("it is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := jsonValue(d, 0)
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errJSONTrailing
	}
	return v, nil
}

func jsonValue(d *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, errJSONDeep
	}
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		return jsonObject(d, depth)
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := jsonValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.Token()
		return list, err
	}
	return token, nil
}

func jsonObject(d *json.Decoder, depth int) (any, error) {
	object := map[string]any{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		key, ok := token.(string)
		if !ok {
			return nil, fmt.Errorf("a key is %v, no text", token)
		}
		if _, twice := object[key]; twice {
			return nil, fmt.Errorf("the key %s stands there twice", shown(key))
		}
		if object[key], err = jsonValue(d, depth+1); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return object, err
}

// fromJSON turns a payload value into what a task file holds. Objects get their keys sorted,
// as JSON has no order of its own.
func fromJSON(v any, path string, depth int) (any, []refusal.Reason) {
	fault := func(remedy, format string, args ...any) []refusal.Reason {
		return []refusal.Reason{{Code: refusal.CodePayloadField, Place: path, Remedy: remedy, What: fmt.Sprintf(format, args...)}}
	}
	if depth > maxDepth {
		return nil, fault("nest less deeply", "values are nested more than %d deep", maxDepth)
	}
	switch v := v.(type) {
	case nil, bool, int64:
		return v, nil
	case string:
		if !utf8.ValidString(v) {
			return nil, fault("send UTF-8", "the text is not UTF-8")
		}
		return v, nil
	case json.Number:
		return number(v, fault)
	case []any:
		var faults []refusal.Reason
		list := make([]any, 0, len(v))
		for i, item := range v {
			value, found := fromJSON(item, fmt.Sprintf("%s[%d]", path, i), depth+1)
			list, faults = append(list, value), append(faults, found...)
		}
		return list, faults
	case map[string]any:
		return fieldsFromJSON(v, path, depth)
	}
	return nil, fault("send JSON", "a value of type %T is no JSON", v)
}

func fieldsFromJSON(object map[string]any, path string, depth int) (Fields, []refusal.Reason) {
	var faults []refusal.Reason
	fields := make(Fields, 0, len(object))
	for _, key := range sortedKeys(object) {
		if key == "" || len(key) > maxKeyBytes || !utf8.ValidString(key) {
			faults = append(faults, refusal.Reason{Code: refusal.CodePayloadField, Place: path, Remedy: "use a short word",
				What: "the key " + shown(strings.ToValidUTF8(key, "?")) + " cannot name a field"})
			continue
		}
		value, found := fromJSON(object[key], join(path, key), depth+1)
		fields, faults = append(fields, Field{key, value}), append(faults, found...)
	}
	return fields, faults
}

func number(v json.Number, fault func(remedy, format string, args ...any) []refusal.Reason) (any, []refusal.Reason) {
	text := v.String()
	if plainInt.MatchString(text) {
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
		return nil, fault("send it as text", "the number %s does not fit into 64 bits", shown(text))
	}
	f, err := v.Float64()
	if err != nil {
		return nil, fault("send it as text", "the number %s does not fit into a 64-bit float", shown(text))
	}
	return f, nil
}
