// Package brief compiles what an assigned agent is told: one instruction paragraph and one
// JSON document with the task, the role, the moves that are allowed, the commands that may be
// requested, and the form of a decision.
//
// The invariant kept: the document is built from the pinned contract and schema of the run
// alone, so that `run contract` gives the same answer for the whole life of the run. It orders
// no queue scanning and no heartbeat. Spec: "Scoped context and command output".
package brief

import (
	"bytes"
	"encoding/json"
	"fmt"

	"greatminds/contract"
	"greatminds/tasks"
)

// Assignment is what the brief is compiled from.
type Assignment struct {
	RunID     string
	Task      *tasks.Task
	Role      contract.Role
	Workspace string
	// CLI is the absolute argv prefix that reaches this product's command line.
	CLI []string
	// Contract and Schema are the run's pinned documents.
	Contract *contract.Contract
	Schema   *contract.Schema
}

// Document is the assigned context, in the order in which it is printed.
type Document struct {
	RunID                string              `json:"run_id"`
	TaskID               string              `json:"task_id"`
	TaskRevision         string              `json:"task_revision"`
	SchemaSHA256         string              `json:"schema_sha256"`
	Role                 string              `json:"role"`
	Workspace            string              `json:"workspace"`
	ConfiguredRoles      []string            `json:"configured_roles"`
	CLIArgv              []string            `json:"cli_argv"`
	Responsibilities     []string            `json:"responsibilities"`
	ForbiddenActions     []string            `json:"forbidden_actions"`
	Task                 map[string]any      `json:"task"`
	Queue                string              `json:"queue"`
	AllowedTransitions   []tasks.AllowedMove `json:"allowed_transitions"`
	ConfiguredCommands   []Command           `json:"configured_commands"`
	TaskContract         TaskContract        `json:"task_contract"`
	DecisionPayload      map[string][]string `json:"decision_payload_fields"`
	GeneratedBlockFields map[string][]string `json:"generated_block_fields"`
	ResultFormat         map[string]any      `json:"result_format"`
}

// Command is one configured command that the role may request.
type Command struct {
	ID             string   `json:"id"`
	Argv           []string `json:"argv"`
	Cwd            string   `json:"cwd"`
	Purpose        string   `json:"purpose"`
	TimeoutSeconds int      `json:"timeout_seconds"`
}

// TaskContract says which evidence the task's queue takes.
type TaskContract struct {
	Stream        string              `json:"stream"`
	Kind          string              `json:"kind"`
	Scope         string              `json:"scope"`
	Blocks        []string            `json:"accepted_blocks"`
	AllowedValues map[string][]string `json:"allowed_values"`
}

// Compile builds the document. It is pure and never fails: a role or a queue that the schema
// does not know only leaves its lists empty.
func Compile(a Assignment) Document {
	doc := Document{
		RunID: a.RunID, TaskID: string(a.Task.ID), TaskRevision: string(a.Task.Revision),
		SchemaSHA256: a.Schema.SHA256, Role: string(a.Role), Workspace: a.Workspace,
		ConfiguredRoles: configuredRoles(a.Contract), CLIArgv: a.CLI,
		Responsibilities: []string{}, ForbiddenActions: []string{},
		Task: plainTask(a.Task), Queue: string(a.Task.Queue),
		AllowedTransitions: tasks.AllowedTransitions(a.Schema, a.Task.Queue, a.Role),
		ConfiguredCommands: commandsOf(a.Contract, a.Role),
		TaskContract:       taskContract(a.Schema, a.Task),
		DecisionPayload:    tasks.DecisionFields(), GeneratedBlockFields: tasks.GeneratedFields(),
		ResultFormat: map[string]any{"decision": "handoff|blocked|needs_input|no_change",
			"payload": map[string]any{"to_queue": "a queue of allowed_transitions", "blocks": []any{}, "artifacts": []any{}}},
	}
	for _, r := range a.Schema.Roles {
		if r.Name == a.Role {
			doc.Responsibilities, doc.ForbiddenActions = orEmpty(r.Responsibilities), orEmpty(r.ForbiddenActions)
		}
	}
	if doc.AllowedTransitions == nil {
		doc.AllowedTransitions = []tasks.AllowedMove{}
	}
	return doc
}

// JSON renders the document with two spaces of indent and no HTML escapes.
func (d Document) JSON() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(d); err != nil {
		panic(fmt.Sprintf("brief: a document of plain values does not encode: %v", err))
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// Prompt is the whole first prompt of a run: the instruction, an empty line, the document. tools
// says by which way the agent is told to submit.
func Prompt(d Document, tools contract.SupervisorTools) string {
	return instruction(d, tools) + "\n\n" + string(d.JSON())
}

func configuredRoles(c *contract.Contract) []string {
	roles, seen := []string{}, map[contract.Role]bool{}
	for _, b := range c.Bindings {
		if !seen[b.Role] {
			seen[b.Role] = true
			roles = append(roles, string(b.Role))
		}
	}
	return roles
}

func commandsOf(c *contract.Contract, role contract.Role) []Command {
	out := []Command{}
	for _, k := range c.Commands {
		for _, r := range k.Roles {
			if r == role {
				out = append(out, Command{ID: k.ID, Argv: k.Argv, Cwd: k.Cwd, Purpose: k.Purpose, TimeoutSeconds: k.TimeoutSeconds})
				break
			}
		}
	}
	return out
}

func taskContract(s *contract.Schema, t *tasks.Task) TaskContract {
	tc := TaskContract{Stream: t.Stream, Kind: t.Kind, Scope: t.Scope, Blocks: []string{}, AllowedValues: map[string][]string{}}
	for _, kind := range s.QueueAccepts[t.Queue] {
		tc.Blocks = append(tc.Blocks, string(kind))
		for _, spec := range s.BlockKinds {
			if spec.Kind != kind {
				continue
			}
			for key, values := range spec.Allowed {
				tc.AllowedValues[string(kind)+"."+key] = values
			}
		}
	}
	return tc
}

// plainTask is the task document as JSON values: the header, then its blocks.
func plainTask(t *tasks.Task) map[string]any {
	doc := plain(t.Header).(map[string]any)
	blocks := make([]any, 0, len(t.Blocks))
	for _, b := range t.Blocks {
		m := plain(b.Fields).(map[string]any)
		m["kind"], m["by"], m["at"] = string(b.Kind), string(b.By), b.At
		blocks = append(blocks, m)
	}
	doc["blocks"] = blocks
	return doc
}

func plain(v any) any {
	switch v := v.(type) {
	case tasks.Fields:
		m := make(map[string]any, len(v))
		for _, f := range v {
			m[f.Key] = plain(f.Value)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = plain(item)
		}
		return list
	}
	return v
}

func orEmpty(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
