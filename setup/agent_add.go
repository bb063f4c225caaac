package setup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"greatminds/contract"
	"greatminds/internal/knownagents"
	"greatminds/internal/refusal"
	"greatminds/internal/yamldoc"
)

// AgentsReport is the answer of setup with agents: setup's own, and what was written for each.
type AgentsReport struct {
	Report
	Manifests []Manifest `json:"manifests"`
}

// RunWithAgents sets the project up and adds a manifest to its contract for each of the named
// agents, from what is found on this machine. All are added or none. It refuses, before anything is
// written: an agent without a preset, one that is not installed, an id that the contract has
// already, and a contract that lines cannot be added to safely. The rest of the file stays as it is.
func RunWithAgents(ctx context.Context, q Request, names []string, look Look) (AgentsReport, error) {
	if q.Schema == nil {
		q.Schema = contract.EmbeddedSchema()
	}
	if len(names) == 0 {
		report, err := Run(ctx, q)
		return AgentsReport{Report: report, Manifests: []Manifest{}}, err
	}
	known, err := presetsNamed(names)
	if err != nil {
		return AgentsReport{}, err
	}
	project, err := place(q.ProjectDir)
	if err != nil {
		return AgentsReport{}, err
	}
	contents, err := contract.ReadFile(project.ExecutionPath())
	if errors.Is(err, fs.ErrNotExist) {
		contents, err = []byte(emptyContract), nil
	}
	if err != nil {
		return AgentsReport{}, err
	}
	edit := agentEdit{path: project.ExecutionPath(), schema: q.Schema}
	if err := edit.free(contents, known); err != nil {
		return AgentsReport{}, err
	}
	found, err := look.survey(ctx, known)
	if err != nil {
		return AgentsReport{}, err
	}
	if err := missing(found); err != nil {
		return AgentsReport{}, err
	}
	for _, f := range found {
		edit.add = append(edit.add, look.manifest(f))
	}
	if _, _, err := edit.apply(contents); err != nil {
		return AgentsReport{}, err
	}
	report, err := Run(ctx, q)
	if err != nil {
		return AgentsReport{}, err
	}
	return edit.write(ctx, q, project, report)
}

// write adds the manifests to the contract as it is now.
func (e agentEdit) write(ctx context.Context, q Request, p contract.Project, report Report) (AgentsReport, error) {
	unlock, err := lock(ctx, p)
	if err != nil {
		return AgentsReport{}, err
	}
	defer unlock()
	contents, err := contract.ReadFile(e.path)
	if err != nil {
		return AgentsReport{}, err
	}
	contents, agreed, err := e.apply(contents)
	if err != nil {
		return AgentsReport{}, err
	}
	if err := replace(q.Disk, e.path, contents); err != nil {
		return AgentsReport{}, failed(err)
	}
	report.ExecutionSHA256, report.Agents = agreed.SHA256(), len(agreed.Agents)
	report.NextStep = fmt.Sprintf("read coordination/execution.yaml through, then run `%s`", e.add[0].Next[0])
	if len(agreed.Bindings) > 0 {
		report.NextStep = fmt.Sprintf("read coordination/execution.yaml through, name %s in its bindings, then run `%s`", e.add[0].Agent, e.add[0].Next[1])
	}
	return AgentsReport{Report: report, Manifests: e.add}, nil
}

// presetsNamed are the agents of these ids, each once.
func presetsNamed(names []string) ([]knownagents.Agent, error) {
	var known []knownagents.Agent
	for i, name := range names {
		a, ok := knownagents.Find(name)
		if !ok {
			return nil, refusal.New(refusal.CodeAgentUnknown, "use one of "+strings.Join(knownagents.IDs(), ", ")+", or write the manifest yourself",
				"there is no preset for an agent %q", name)
		}
		if !slices.Contains(names[:i], name) {
			known = append(known, a)
		}
	}
	return known, nil
}

// missing refuses agents that are not there, with how to get each.
func missing(found []finding) error {
	r := &refusal.Refusal{Code: refusal.CodeAgentMissing, What: "not everything is installed; nothing was written",
		Remedy: "install what is missing, or name only agents that `greatminds agent presets` shows as installed"}
	for _, f := range found {
		if f.installed() {
			continue
		}
		what := "no " + f.Program + " on PATH"
		for _, note := range f.warnings() {
			what = note
		}
		r.Reasons = append(r.Reasons, refusal.Reason{Place: "agent " + f.ID, What: what, Remedy: f.Install})
	}
	if len(r.Reasons) == 0 {
		return nil
	}
	if len(r.Reasons) == 1 {
		r.What = fmt.Sprintf("%s: %s", r.Reasons[0].Place, r.Reasons[0].What)
		r.Remedy, r.Reasons = "install it: "+r.Reasons[0].Remedy, nil
	}
	return r
}

// agentEdit adds manifests to the contract at path.
type agentEdit struct {
	path   string
	schema *contract.Schema
	add    []Manifest
}

// free refuses ids that the contract has.
func (e agentEdit) free(contents []byte, known []knownagents.Agent) error {
	agreed, err := contract.Parse(e.path, contents, e.schema)
	if err != nil {
		return err
	}
	for _, a := range known {
		if _, there := agreed.Agent(a.ID); there {
			return e.taken(contents, a.ID)
		}
	}
	return nil
}

// taken names the place of a manifest that is there already.
func (e agentEdit) taken(contents []byte, id string) error {
	root, _ := yamldoc.Read(e.path, contents, yamldoc.Options{}) // it has been parsed
	line := 0
	for _, f := range root.Get("agents").Fields {
		if f.Key.Text == id {
			line = f.Key.Line
		}
	}
	return refusal.New(refusal.CodeAgentExists, "keep it, or take it out and run setup again",
		"%s:%d has a manifest %q already, which is not overwritten", e.path, line, id)
}

// apply returns the contract with the manifests in it, read back: nothing else may differ.
func (e agentEdit) apply(contents []byte) ([]byte, *contract.Contract, error) {
	before, err := contract.Parse(e.path, contents, e.schema)
	if err != nil {
		return nil, nil, err
	}
	for _, m := range e.add {
		if _, there := before.Agent(m.Agent); there {
			return nil, nil, e.taken(contents, m.Agent)
		}
	}
	text, err := e.insert(contents)
	if err != nil {
		return nil, nil, err
	}
	after, err := contract.Parse(e.path, text, e.schema)
	if err != nil {
		return nil, nil, e.odd(err)
	}
	rest := *after
	rest.Agents = slices.DeleteFunc(slices.Clone(after.Agents), func(a contract.Agent) bool {
		return slices.ContainsFunc(e.add, func(m Manifest) bool { return m.Agent == a.ID })
	})
	if !bytes.Equal(rest.Canonical(), before.Canonical()) || len(after.Agents) != len(before.Agents)+len(e.add) {
		return nil, nil, e.odd(nil)
	}
	return text, after, nil
}

// insert puts the manifests behind the last one, or in the place of `{}`.
func (e agentEdit) insert(contents []byte) ([]byte, error) {
	root, _ := yamldoc.Read(e.path, contents, yamldoc.Options{}) // it has been parsed
	lines := lineStarts(contents)
	agents := root.Get("agents")
	if opens(contents, lines, root, '{') {
		return nil, e.odd(nil)
	}
	if len(agents.Fields) == 0 {
		text, ok := fillEmpty(contents, root, "agents", e.text("  "))
		if !ok {
			return nil, e.odd(nil)
		}
		return text, nil
	}
	if opens(contents, lines, agents, '{') {
		return nil, e.odd(nil)
	}
	at := behind(contents, lines, root, "agents")
	indent := strings.Repeat(" ", agents.Fields[0].Key.Column-1)
	head := endLine(contents[:at])
	return slices.Concat(head, []byte(e.text(indent)), contents[at:]), nil
}

func (e agentEdit) text(indent string) string {
	var b strings.Builder
	for _, m := range e.add {
		b.WriteString(m.text(indent))
	}
	return b.String()
}

// behind is the offset behind the block of a key of the root: before the next key, and before blank
// lines and unindented comments that stand above that.
func behind(contents []byte, lines []int, root *yamldoc.Node, key string) int {
	i := slices.IndexFunc(root.Fields, func(f yamldoc.Field) bool { return f.Key.Text == key })
	last := len(lines) // one line more than the last, counted from 1
	if contents[len(contents)-1] != '\n' {
		last++
	}
	if i+1 < len(root.Fields) {
		last = root.Fields[i+1].Key.Line
	}
	start := func(line int) int {
		if line > len(lines) {
			return len(contents)
		}
		return lines[line-1]
	}
	for last > 1 {
		line := contents[start(last-1):start(last)]
		if text := bytes.TrimSpace(line); len(text) > 0 && line[0] != '#' {
			break
		}
		last--
	}
	return start(last)
}

func (e agentEdit) odd(cause error) error {
	r := refusal.New(refusal.CodeSetupEdit, "write `agents:` as a block, with each manifest on lines of its own, then try again",
		"cannot put agents into %s, which is written in an unusual way", e.path)
	r.Err = cause
	return r
}
