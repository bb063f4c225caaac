package setup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/internal/knownagents"
	"greatminds/internal/refusal"
	"greatminds/internal/yamldoc"
)

// PresetRequest is one call of `project preset`.
type PresetRequest struct {
	Project contract.Project
	// Schema is the workflow schema in force; nil for the embedded one.
	Schema *contract.Schema
	Disk   *durable.Disk
	// Preset and Agent name the preset and the manifest that all its bindings use.
	Preset, Agent string
	// Apply writes the contract; without it the document is only shown.
	Apply bool
}

// PresetReport is the answer of `project preset`.
type PresetReport struct {
	Version int    `json:"version"`
	Preset  string `json:"preset"`
	Applied bool   `json:"applied"`
	// Changed says that the contract's fingerprint changes with it.
	Changed         bool   `json:"changed"`
	ExecutionSHA256 string `json:"execution_sha256"`
	SchemaSHA256    string `json:"schema_sha256"`
	// Execution is the contract's document as it is, or would be, written.
	Execution json.RawMessage `json:"execution"`
}

// UsePreset puts the bindings of a preset into the project's contract. Comments and everything
// but bindings stay as they are. It changes nothing where the bindings are the preset's already,
// and refuses where there are others. Spec: reference "Presets".
func UsePreset(ctx context.Context, q PresetRequest) (PresetReport, error) {
	if q.Schema == nil {
		q.Schema = contract.EmbeddedSchema()
	}
	if !q.Apply {
		report, _, err := q.plan()
		return report, err
	}
	if info, err := os.Stat(filepath.Join(q.Project.Root, ".greatminds")); err != nil || !info.IsDir() {
		return PresetReport{}, refusal.New(refusal.CodePresetUnset, "run `greatminds setup` first",
			"%s has not been set up", q.Project.Root)
	}
	unlock, err := lock(ctx, q.Project)
	if err != nil {
		return PresetReport{}, err
	}
	defer unlock()
	report, text, err := q.plan()
	if err != nil || !report.Changed {
		return report, err
	}
	if err := replace(q.Disk, q.Project.ExecutionPath(), text); err != nil {
		return PresetReport{}, failed(err)
	}
	return report, nil
}

// plan makes the answer and the new text of the contract.
func (q PresetRequest) plan() (PresetReport, []byte, error) {
	preset, err := presetNamed(q.Preset)
	if err != nil {
		return PresetReport{}, nil, err
	}
	path := q.Project.ExecutionPath()
	data, err := contract.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return PresetReport{}, nil, refusal.New(refusal.CodePresetUnset, "run `greatminds setup` first", "there is no file %s", path)
	}
	if err != nil {
		return PresetReport{}, nil, err
	}
	before, err := contract.Parse(path, data, q.Schema)
	if err != nil {
		return PresetReport{}, nil, err
	}
	agent, ok := before.Agent(q.Agent)
	if !ok {
		return PresetReport{}, nil, refusal.New(refusal.CodePresetAgent, "add its manifest under agents, or name another",
			"%s has no agent %q", path, q.Agent)
	}
	text := data
	if len(before.Bindings) == 0 {
		if text, err = insertBindings(path, data, preset.block(q.Agent, needs(agent))); err != nil {
			return PresetReport{}, nil, err
		}
	}
	after, err := contract.Parse(path, text, q.Schema)
	if err != nil {
		return PresetReport{}, nil, unusual(path, err)
	}
	// Read back: only the bindings may differ, and they must be the preset's.
	rest := *after
	rest.Bindings = before.Bindings
	if !bytes.Equal(rest.Canonical(), before.Canonical()) {
		return PresetReport{}, nil, unusual(path, nil)
	}
	if !preset.matches(after.Bindings, agent, q.Schema) {
		return PresetReport{}, nil, refusal.New(refusal.CodePresetBindings,
			"edit the bindings in the contract, or empty them (`bindings: {}`) to start from the preset",
			"%s has %d bindings that preset %s would replace", path, len(before.Bindings), preset.ID)
	}
	root, _ := yamldoc.Read(path, text, yamldoc.Options{}) // parsed above
	return PresetReport{Version: 1, Preset: preset.ID, Applied: q.Apply, Changed: len(before.Bindings) == 0,
		ExecutionSHA256: after.SHA256(), SchemaSHA256: q.Schema.SHA256, Execution: root.AppendJSON(nil)}, text, nil
}

// bindingKey is a further key of a preset's bindings.
type bindingKey struct{ name, value string }

// needs lists what the bindings of a known agent need beside a preset's own keys: the mode in which it
// asks for permissions, and new sessions where it cannot load one. An agent that is not known needs
// nothing.
func needs(a contract.Agent) []bindingKey {
	var keys []bindingKey
	known, _, _, _ := knownagents.Match(a.Argv)
	if known.Mode != "" {
		keys = append(keys, bindingKey{"mode", known.Mode})
	}
	if known.LoadFails {
		keys = append(keys, bindingKey{"session", contract.SessionNew})
	}
	return keys
}

// matches reports whether bindings are the preset's, in its order, with what the agent needs or, as
// written by an older release, with less.
func (p Preset) matches(there []contract.Binding, agent contract.Agent, s *contract.Schema) bool {
	keys := needs(agent)
	for n := len(keys); n >= 0; n-- {
		text := "version: 1\nagents:\n  '" + agent.ID + "': {transport: acp, argv: [x], adapter_version: x, harness_version: x}\nbindings:\n" + p.block(agent.ID, keys[:n])
		want, err := contract.Parse("the preset", []byte(text), s)
		if err == nil && slices.EqualFunc(there, want.Bindings, func(a, b contract.Binding) bool { return a.SHA256() == b.SHA256() }) {
			return true
		}
	}
	return false
}

var emptyMapping = regexp.MustCompile(`^[ \t]*\{[ \t]*\}`)

// insertBindings replaces `bindings: {}` by a block. What follows it on the line stays there.
func insertBindings(path string, data []byte, block string) ([]byte, error) {
	root, _ := yamldoc.Read(path, data, yamldoc.Options{}) // the caller has parsed it
	if text, ok := fillEmpty(data, root, "bindings", block); ok {
		return text, nil
	}
	return nil, unusual(path, nil)
}

// fillEmpty replaces the `{}` of a key by a block, where it stands on the key's own line in a
// document that is a block itself.
func fillEmpty(data []byte, root *yamldoc.Node, name, block string) ([]byte, bool) {
	lines := lineStarts(data)
	if opens(data, lines, root, '{') {
		return nil, false
	}
	at := offset(data, lines, root.Get(name))
	length := len(emptyMapping.Find(data[at:]))
	key := root.Fields[slices.IndexFunc(root.Fields, func(f yamldoc.Field) bool { return f.Key.Text == name })].Key
	if length == 0 || root.Get(name).Line != key.Line {
		return nil, false
	}
	end := at + length
	line := bytes.IndexByte(data[end:], '\n')
	if line < 0 {
		data = append(slices.Clone(data), '\n')
		line = len(data) - end - 1
	}
	head := bytes.TrimRight(data[:at], " \t")
	return slices.Concat(head, data[end:end+line+1], []byte(block), data[end+line+1:]), true
}

func unusual(path string, cause error) error {
	r := refusal.New(refusal.CodeSetupEdit, "write `bindings: {}` on a line of its own, then try again",
		"cannot put bindings into %s, which is written in an unusual way", path)
	r.Err = cause
	return r
}
