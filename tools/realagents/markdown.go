package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// markdownTable is the whole result as a document: what was run, what came of it, and every
// expectation that is not the common one.
func markdownTable(rows []row) string {
	var b strings.Builder
	b.WriteString("# Real agents\n\nWritten by `go run ./tools/realagents --markdown FILE`, which installs the agents by version and runs them " +
		"against a stand-in for their models on loopback. Do not edit.\n")
	writeAgents(&b, rows)
	writePipeline(&b, rows)
	shown := shownScenarios(rows)
	if len(shown) > 0 {
		writeMatrix(&b, rows, shown)
		writeScenarios(&b, shown)
		writeDeviations(&b, rows)
		writeCells(&b, rows)
	}
	return b.String()
}

func writeAgents(b *strings.Builder, rows []row) {
	t := newTable(b, "Agents", "agent", "package", "agentInfo on the wire", "mode", "install s", "result", "note")
	for _, r := range rows {
		mode, result, note := r.Mode, "ok", r.Note
		if mode == "" {
			mode = "its own"
		}
		if r.Error != "" {
			result = "FAILED: " + r.Error
		}
		if r.Lacks != "" {
			note += "; lacks " + r.Lacks
		}
		t.row(r.Agent, strings.Join(r.Packages, " "), strings.Join(r.AgentInfo, ", "), mode, fmt.Sprintf("%.1f", r.InstallSeconds), result, note)
	}
}

func writePipeline(b *strings.Builder, rows []row) {
	if !slices.ContainsFunc(rows, func(r row) bool { return r.Pipeline != notRun }) {
		return
	}
	t := newTable(b, "Pipeline", "agent", "permission: role, tool kind: option id (kind) …, answer, exit status of `run permission`",
		"merge commit", "agent's file in it", "model requests (with the assignment)", "began", "seconds", "result")
	for _, r := range rows {
		asked := make([]string, 0, len(r.Permissions))
		for _, p := range r.Permissions {
			asked = append(asked, p.String())
		}
		result := r.Pipeline
		if r.PipelineError != "" {
			result += ": " + r.PipelineError
		}
		if r.Kept != "" {
			result += "; kept in " + r.Kept
		}
		t.row(r.Agent, strings.Join(asked, "\n"), fmt.Sprintf("%.12s", r.Merge), r.File,
			fmt.Sprintf("%d (%d)", r.ModelRequests, r.AssignedRequests), moment(r.PipelineAt), fmt.Sprintf("%.1f", r.Seconds), result)
	}
}

func moment(at *time.Time) string {
	if at == nil {
		return ""
	}
	return at.UTC().Format("2006-01-02 15:04")
}

// shownScenarios are those that at least one row has a cell of, in their own order.
func shownScenarios(rows []row) []scenario {
	var out []scenario
	for _, sc := range scenarios {
		if slices.ContainsFunc(rows, func(r row) bool { return r.cell(sc.name) != nil }) {
			out = append(out, sc)
		}
	}
	return out
}

// cell finds the row's cell of a scenario, nil where it has none.
func (r row) cell(scenario string) *cell {
	i := slices.IndexFunc(r.Cells, func(c cell) bool { return c.Scenario == scenario })
	if i < 0 {
		return nil
	}
	return &r.Cells[i]
}

func writeMatrix(b *strings.Builder, rows []row, shown []scenario) {
	heads := []string{"agent"}
	for _, sc := range shown {
		heads = append(heads, sc.name)
	}
	t := newTable(b, "Scenarios: result, seconds", heads...)
	for _, r := range rows {
		cells := []string{r.Agent}
		for _, sc := range shown {
			cells = append(cells, r.cell(sc.name).result())
		}
		t.row(cells...)
	}
}

// result is short: ok, ok* for one that is expected to differ from the rest, or FAILED.
func (c *cell) result() string {
	switch {
	case c == nil:
		return notRun
	case c.Error != "":
		return fmt.Sprintf("FAILED %.1f", c.Seconds)
	case c.Why != "":
		return fmt.Sprintf("ok* %.1f", c.Seconds)
	}
	return fmt.Sprintf("ok %.1f", c.Seconds)
}

func writeScenarios(b *strings.Builder, shown []scenario) {
	t := newTable(b, "What is done, and what every agent is expected to come to", "scenario", "what", "expected")
	for _, sc := range shown {
		t.row(sc.name, sc.about, sc.want.String())
	}
}

func writeDeviations(b *strings.Builder, rows []row) {
	t := newTable(b, "Expected to differ (ok*)", "agent", "scenario", "expected instead", "why")
	for _, r := range rows {
		for _, c := range r.Cells {
			if c.Why != "" {
				t.row(r.Agent, c.Scenario, c.instead().String(), c.Why)
			}
		}
	}
}

// instead are the expected facts that the scenario's common expectation has otherwise.
func (c cell) instead() facts {
	out := facts{}
	for _, sc := range scenarios {
		for name, want := range c.Expected {
			if sc.name == c.Scenario && sc.want[name] != want {
				out[name] = want
			}
		}
	}
	return out
}

func writeCells(b *strings.Builder, rows []row) {
	t := newTable(b, "What was seen", "agent", "scenario", "seen", "permissions", "began", "seconds", "result")
	for _, r := range rows {
		for _, c := range r.Cells {
			asked := make([]string, 0, len(c.Permissions))
			for _, p := range c.Permissions {
				asked = append(asked, p.Tool+" → "+p.Chosen)
			}
			result := "ok"
			if c.Error != "" {
				result = "FAILED: " + c.Error
			}
			if c.Kept != "" {
				result += "; kept in " + c.Kept
			}
			t.row(r.Agent, c.Scenario, c.Seen.String(), strings.Join(asked, "\n"), moment(&c.At), fmt.Sprintf("%.1f", c.Seconds), result)
		}
	}
}

// table is one Markdown table below its heading.
type table struct{ b *strings.Builder }

func newTable(b *strings.Builder, title string, heads ...string) table {
	fmt.Fprintf(b, "\n## %s\n\n", title)
	t := table{b}
	t.row(heads...)
	b.WriteString("|" + strings.Repeat(" --- |", len(heads)) + "\n")
	return t
}

// row writes one line, whatever stands in the cells.
func (t table) row(cells ...string) {
	safe := strings.NewReplacer("\n", "<br>", "|", "\\|", "<", "&lt;")
	out := make([]string, len(cells))
	for i, cell := range cells {
		out[i] = safe.Replace(cell)
	}
	t.b.WriteString("| " + strings.Join(out, " | ") + " |\n")
}
