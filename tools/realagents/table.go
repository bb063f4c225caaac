package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

func jsonTable(rows []row) string {
	b, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		panic("realagents: plain rows do not encode: " + err.Error())
	}
	return string(b)
}

func markdownTable(rows []row) string {
	var b strings.Builder
	b.WriteString("| agent | package | agentInfo on the wire | permissions: options, chosen, exit status | merge | files in it | model calls | s | note |\n")
	b.WriteString("| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, r := range rows {
		var asked []string
		for _, p := range r.Permissions {
			asked = append(asked, fmt.Sprintf("%s: %s → %s, %d", p.Tool, strings.Join(p.Options, " "), p.Chosen, p.Status))
		}
		note := r.Note
		if r.Error != "" {
			note = "FAILED: " + strings.ReplaceAll(r.Error, "\n", " ")
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %.12s | %s | %d | %.1f | %s |\n", r.Agent, strings.Join(r.Packages, " "),
			strings.Join(r.AgentInfo, ", "), strings.Join(asked, "; "), r.Merge, strings.Join(r.Files, " "), r.ModelCalls, r.Seconds, note)
	}
	return b.String()
}
