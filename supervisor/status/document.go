package status

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"

	"greatminds/contract"
	"greatminds/runstore"
	"greatminds/tasks"
)

// Dispatch is how the daemon judges every task and account now.
type Dispatch struct {
	Assignments []Assignment
	// Accounts holds every account that a binding uses.
	Accounts map[string]Account
}

// Input is what a status is built from.
type Input struct {
	View     *runstore.View
	Tasks    []tasks.Found
	Contract *contract.Contract
	Schema   *contract.Schema
	Dispatch Dispatch
	// Changed says that the contract's file is not the contract in force; nil where it is.
	Changed *Changed
	// Alive tells whether a recorded process lives, nil where that is not known.
	Alive func(*runstore.Process) *bool
}

// Changed says that the contract's file is another one by now than the contract by which a daemon goes.
type Changed struct {
	What   string `json:"what"`
	Remedy string `json:"remedy"`
}

// Agent is one row of `agent status`: a binding's active run, else its latest one, else idle.
type Agent struct {
	BindingID      string   `json:"binding_id"`
	Role           string   `json:"role"`
	AgentID        string   `json:"agent_id"`
	Transport      string   `json:"transport"`
	Configured     bool     `json:"configured"`
	State          string   `json:"state"`
	Reason         string   `json:"reason"`
	RunID          *string  `json:"run_id"`
	TaskID         *string  `json:"task_id"`
	TaskRevision   *string  `json:"task_revision"`
	SessionID      *string  `json:"session_id"`
	ConversationID *string  `json:"conversation_id"`
	UpdatedAt      *float64 `json:"updated_at"`
	ConfigCurrent  bool     `json:"config_current"`
	PID            *int     `json:"pid"`
	Alive          *bool    `json:"alive"`
	Usable         bool     `json:"usable"`
	DispatchPaused bool     `json:"dispatch_paused"`
}

// Task is one task file of any queue.
type Task struct {
	ID    string `json:"id"`
	Queue string `json:"queue"`
	Title string `json:"title,omitempty"`
	// Error is "unreadable_task" for a file that is no valid task, and Problem says why.
	Error   string `json:"error,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// Build returns the document of `run status`: the store's own members with sorted keys, then
// those that are computed, in a fixed order. It shows what is not over and the newest of what is;
// totals counts everything, and `run list`, `run show` and `run events` have the rest. Spec: reference 6.3, E-254.
func Build(in Input) (json.RawMessage, error) {
	members, err := ordered(in.View.Recent())
	if err != nil {
		return nil, fmt.Errorf("the store's document: %w", err)
	}
	stored := map[string]bool{}
	for i, m := range members {
		stored[m.key] = true
		// Before the first commit the project has no identity yet, and unknown is null.
		if m.key == "project_id" && in.View.ProjectID() == "" {
			members[i].value = json.RawMessage("null")
		}
	}
	for _, add := range []struct {
		key   string
		value any
	}{
		{"stand_deployments", standAttempts{1, map[string]any{}}},
		{"stand_lease", standState{"no_active_lease"}},
		{"stand_dispatch", standState{"automatic_deployment_disabled"}},
		{"stand_schedule", standTickets{1, map[string]any{}}},
		{"maintenance_findings", findings{1, map[string]any{}, [][]string{}, in.Schema.SHA256}},
		{"assignments", notNil(in.Dispatch.Assignments)},
		{"accounts", accounts(in.Dispatch.Accounts)},
		{"agents", Agents(in)},
		{"tasks", taskRows(in.Tasks)},
		{"recovery", Recoveries(in.View)}, // ours alone
		{"totals", CountRuns(in.View)},    // ours alone
	} {
		if stored[add.key] {
			continue
		}
		value, err := compact(add.value)
		if err != nil {
			return nil, err
		}
		members = append(members, member{add.key, value})
	}
	if in.Changed != nil { // ours alone
		value, err := compact(in.Changed)
		if err != nil {
			return nil, err
		}
		members = append(members, member{"contract_changed", value})
	}
	return join(members), nil
}

// The parts of the document that a project without a stand has.
type (
	standAttempts struct {
		Version  int            `json:"version"`
		Attempts map[string]any `json:"attempts"`
	}
	standTickets struct {
		Version int            `json:"version"`
		Tickets map[string]any `json:"tickets"`
	}
	standState struct {
		Status string `json:"status"`
	}
	findings struct {
		Version      int            `json:"version"`
		Tasks        map[string]any `json:"tasks"`
		Cycles       [][]string     `json:"cycles"`
		SchemaSHA256 string         `json:"schema_sha256"`
	}
)

// Totals counts the runs that there have ever been.
type Totals struct {
	Runs int `json:"runs"`
	// Active runs have not ended.
	Active int                    `json:"active"`
	States map[runstore.State]int `json:"states"`
}

// CountRuns counts the runs in the view and in its history.
func CountRuns(v *runstore.View) Totals {
	t := Totals{States: v.Totals()}
	for state, n := range t.States {
		t.Runs += n
		if !state.Terminal() {
			t.Active += n
		}
	}
	return t
}

func accounts(m map[string]Account) map[string]Account {
	if m == nil {
		return map[string]Account{}
	}
	return m
}

func taskRows(found []tasks.Found) []Task {
	rows := make([]Task, 0, len(found))
	for _, f := range found {
		row := Task{ID: string(f.ID), Queue: string(f.Queue)}
		if f.Task != nil {
			row.Title = f.Task.Title
		}
		if f.Problem != nil {
			row.Title, row.Error, row.Problem = "", "unreadable_task", f.Problem.Error()
		}
		rows = append(rows, row)
	}
	return rows
}

// Agents returns a row for each binding, by id, and for each active run of a binding that is no
// longer configured.
func Agents(in Input) []Agent {
	rows := []Agent{}
	byBinding := map[string][]*runstore.Run{}
	for _, run := range in.View.Runs() {
		byBinding[run.BindingID] = append(byBinding[run.BindingID], run)
	}
	for _, b := range in.Contract.Bindings {
		rows = append(rows, bindingRows(in, b, byBinding[b.ID])...)
		delete(byBinding, b.ID)
	}
	for _, runs := range byBinding {
		for _, run := range runs {
			if !run.State.Terminal() {
				rows = append(rows, runRow(in, run, nil))
			}
		}
	}
	sort.SliceStable(rows, func(i, j int) bool { return rows[i].BindingID < rows[j].BindingID })
	return rows
}

func bindingRows(in Input, b contract.Binding, runs []*runstore.Run) []Agent {
	var rows []Agent
	for _, run := range runs {
		if !run.State.Terminal() {
			rows = append(rows, runRow(in, run, &b))
		}
	}
	if len(rows) > 0 {
		return rows
	}
	if len(runs) > 0 {
		return []Agent{runRow(in, runs[len(runs)-1], &b)}
	}
	state, dead := "idle", false
	if in.View.Paused() {
		state = "paused"
	}
	return []Agent{{BindingID: b.ID, Role: string(b.Role), AgentID: b.Agent, Transport: "acp", Configured: true,
		State: state, ConfigCurrent: true, Alive: &dead, DispatchPaused: in.View.Paused()}}
}

func runRow(in Input, run *runstore.Run, b *contract.Binding) Agent {
	row := Agent{BindingID: run.BindingID, Role: run.Role, AgentID: run.AgentID, Transport: "acp", Configured: b != nil,
		State: string(run.State), Reason: run.Reason, RunID: text(run.ID), TaskID: text(run.TaskID), TaskRevision: text(run.TaskRevision),
		SessionID: run.SessionID, ConversationID: run.ConversationID, UpdatedAt: &run.UpdatedAt,
		ConfigCurrent: current(in.Contract, run, b), DispatchPaused: in.View.Paused()}
	dead := false
	row.Alive = &dead
	if run.Process != nil && !run.State.Terminal() {
		row.PID, row.Alive = &run.Process.PID, in.Alive(run.Process)
	}
	row.Usable = row.Alive != nil && *row.Alive && row.ConfigCurrent && run.State == runstore.Running
	return row
}

func current(c *contract.Contract, run *runstore.Run, b *contract.Binding) bool {
	if b == nil {
		return false
	}
	agent, ok := c.Agent(b.Agent)
	return ok && run.BindingSHA256 == b.SHA256() && run.AgentSHA256 == agent.SHA256()
}

func text[S ~string](s S) *string {
	plain := string(s)
	return &plain
}

func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// member is one member of a JSON object whose order counts.
type member struct {
	key   string
	value json.RawMessage
}

func ordered(object json.RawMessage) ([]member, error) {
	dec := json.NewDecoder(bytes.NewReader(object))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil, fmt.Errorf("no JSON object (%v, %w)", open, err)
	}
	var members []member
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		m := member{key: key.(string)} // the decoder gives nothing else in this place
		if err := dec.Decode(&m.value); err != nil {
			return nil, err
		}
		members = append(members, m)
	}
	return members, nil
}

func join(members []member) json.RawMessage {
	var b bytes.Buffer
	for i, m := range members {
		b.WriteByte("{,"[min(i, 1)])
		b.WriteString(quote(m.key) + ":")
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

func quote(s string) string {
	q, err := json.Marshal(s)
	if err != nil {
		panic("status: a string without a JSON form: " + s)
	}
	return string(q)
}

func compact(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
