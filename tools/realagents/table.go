package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// row is what was seen of one agent.
type row struct {
	Agent    string   `json:"agent"`
	Packages []string `json:"packages"`
	// AgentInfo is what the agent called itself on the wire, with its version.
	AgentInfo   []string     `json:"agent_info"`
	Permissions []permission `json:"permissions"`
	// Merge is the merge commit, File the file in it that the agent wrote with its own tool, and
	// Changed all that the merge changed.
	Merge   string   `json:"merge"`
	File    string   `json:"file"`
	Changed []string `json:"changed"`
	// ModelRequests are all that the stand-in saw, AssignedRequests those with the assignment.
	ModelRequests    int64   `json:"model_requests"`
	AssignedRequests int64   `json:"assigned_requests"`
	InstallSeconds   float64 `json:"install_seconds"`
	Seconds          float64 `json:"seconds"`
	// Silent agents never ask for a permission.
	Silent bool   `json:"silent,omitempty"`
	Note   string `json:"note,omitempty"`
	// Lacks names a program that the agent would make use of and that is not here.
	Lacks string `json:"lacks,omitempty"`
	Error string `json:"error,omitempty"`
	// Kept is the folder of an agent that failed.
	Kept string `json:"kept,omitempty"`
}

// permission is one question of the agent and how the operator's command answered it.
type permission struct {
	Role    string   `json:"role"`
	Tool    string   `json:"tool_kind"`
	Options []option `json:"options"`
	Chosen  string   `json:"chosen"`
	// Status is the exit status of `run permission ID --option CHOSEN`; null when it never ran.
	Status *int `json:"exit_status"`
}

func newRow(r recipe) row {
	return row{Agent: r.name, Packages: r.packages, Note: r.note, Silent: r.silent, AgentInfo: []string{}, Permissions: []permission{}, Changed: []string{}}
}

// missing says all that an agent still owes, as one error; nil when it did its part.
func (r row) missing() error {
	var owes []error
	owe := func(is bool, what string) {
		if is {
			owes = append(owes, errors.New(what))
		}
	}
	owe(r.ModelRequests == 0, "the model stand-in saw no request")
	owe(r.ModelRequests > 0 && r.AssignedRequests == 0, "the model stand-in saw no request with the assignment")
	owe(len(r.AgentInfo) == 0, "the agent did not say its name on the wire")
	owe(len(r.Permissions) == 0 && !r.Silent, "the agent asked for no permission")
	owe(len(r.Permissions) > 0 && r.Silent, "the agent asked for a permission, which it was not known to do")
	for _, p := range r.Permissions {
		owe(p.Status == nil || *p.Status != 0, "a permission was not answered")
	}
	owe(r.Merge == "" || r.File == "", "there is no merge with the agent's file")
	return errors.Join(owes...)
}

func jsonTable(rows []row) string {
	b, err := json.MarshalIndent(struct {
		Version int   `json:"version"`
		Agents  []row `json:"agents"`
	}{1, rows}, "", "  ")
	if err != nil {
		panic("realagents: plain rows do not encode: " + err.Error())
	}
	return string(b) + "\n"
}

func markdownTable(rows []row) string {
	var b strings.Builder
	b.WriteString("| agent | package | agentInfo on the wire | permission: role, tool kind: option id (kind) …, answer, exit status of `run permission` | " +
		"merge commit | agent's file in it | model requests (with the assignment) | install s | run s | result |\n" +
		"| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, r := range rows {
		asked := make([]string, 0, len(r.Permissions))
		for _, p := range r.Permissions {
			asked = append(asked, p.String())
		}
		result := "merged"
		if r.Error != "" {
			result = "FAILED: " + r.Error
		}
		if r.Kept != "" {
			result += "; kept in " + r.Kept
		}
		if r.Lacks != "" {
			result += "; lacks " + r.Lacks
		}
		if r.Note != "" {
			result += "; " + r.Note
		}
		cells := []string{r.Agent, strings.Join(r.Packages, " "), strings.Join(r.AgentInfo, ", "), strings.Join(asked, "<br>"),
			fmt.Sprintf("%.12s", r.Merge), r.File, fmt.Sprintf("%d (%d)", r.ModelRequests, r.AssignedRequests),
			fmt.Sprintf("%.1f", r.InstallSeconds), fmt.Sprintf("%.1f", r.Seconds), result}
		for i, cell := range cells {
			cells[i] = strings.NewReplacer("\n", "; ", "|", "\\|").Replace(cell)
		}
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	return b.String()
}

// String is the question and its answer on one line.
func (p permission) String() string {
	offered := make([]string, 0, len(p.Options))
	for _, o := range p.Options {
		offered = append(offered, fmt.Sprintf("%s (%s)", o.ID, o.Kind))
	}
	status := "none"
	if p.Status != nil {
		status = fmt.Sprint(*p.Status)
	}
	return fmt.Sprintf("%s, %s: %s → %s, %s", p.Role, p.Tool, strings.Join(offered, ", "), p.Chosen, status)
}
