package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// picture is a project as it looks from outside: files, git, and what the command line prints.
type picture struct {
	// queues has, for each task, the queues that hold a file of it.
	queues map[string][]string
	// titles has, for each title, the tasks that carry it.
	titles map[string][]string
	// journal are the lines of the task journal; torn says that the last one has no end.
	journal []journalLine
	torn    bool
	// merges are the subjects on the first-parent line of main, newest first, with their parents.
	merges []commit
	// work are the worktrees that the work in main names.
	work []string
	// fsck and dirty are what git complained of, empty for nothing.
	fsck, dirty string
	// started and ended count the executions of the configured command, by mark (run/request).
	started, ended map[string]int
	// traces are what the agents saw.
	traces []traceLine
	// live are the marks of the agents and commands that live: run, or run/request.
	live []string
	// doctor is what the product found about itself, empty for nothing.
	doctor string
	status statusDoc
}

type journalLine struct {
	Task, From, To, Actor string
	IntentID              string `json:"intent_id"`
	OperationID           string `json:"operation_id"`
	fault                 string // why it cannot be read
}

type commit struct {
	id, parents, subject string
}

// traceLine is one line of an agent's trace, as far as it is read.
type traceLine struct {
	stage  string
	Launch int
	Kind   string
	Argv   []string
	RC     *int
	Out    string
	To     string
	Got    json.RawMessage
}

// statusDoc is what is read of `run status --json`.
type statusDoc struct {
	Paused      bool
	Runs        map[string]runRow
	Permissions map[string]permissionRow
	Results     map[string]resultRow
	Commands    map[string]commandRow
	Assignments []assignment
	// Recovery is what needs a person, also where its task is out of work already.
	Recovery []recovery
}

type recovery struct {
	TaskID   string `json:"task_id"`
	Reason   string
	Commands []string
}

type runRow struct {
	ID, State, Reason string
	TaskID            string `json:"task_id"`
	RetryAuthorized   bool   `json:"retry_authorized"`
	Sequence          uint64
}

func (r runRow) active() bool {
	switch r.State {
	case "completed", "failed", "cancelled", "interrupted":
		return false
	}
	return true
}

type permissionRow struct {
	ID, Status, Reason string
	RunID              string `json:"run_id"`
	OptionID           string `json:"option_id"`
}

type resultRow struct {
	Status   string
	Envelope struct {
		ResultID string `json:"result_id"`
		RunID    string `json:"run_id"`
		TaskID   string `json:"task_id"`
	}
}

// open tells whether the result is still on its way.
func (r resultRow) open() bool {
	return r.Status == "received" || r.Status == "applying" || r.Status == "needs_recovery"
}

type commandRow struct {
	ID, Status, Reason string
	RunID              string `json:"run_id"`
}

func (c commandRow) open() bool {
	switch c.Status {
	case "queued", "starting", "running":
		return true
	}
	return false
}

type assignment struct {
	TaskID               string `json:"task_id"`
	Reason, What, Remedy string
}

// readFiles reads what the file system holds of a project. folder is the temporary folder.
func (pic *picture) readFiles(folder, dir string) error {
	runtime := filepath.Join(dir, ".greatminds")
	if err := pic.readQueues(runtime); err != nil {
		return err
	}
	if err := pic.readJournal(filepath.Join(runtime, "journal.ndjson")); err != nil {
		return err
	}
	if err := pic.readExecutions(filepath.Join(folder, executionsFile)); err != nil {
		return err
	}
	for _, st := range stages {
		if err := pic.readTrace(st.id, filepath.Join(folder, "agents", st.id, "trace.jsonl")); err != nil {
			return err
		}
	}
	return nil
}

var titleLine = regexp.MustCompile(`(?m)^title: *(.*)$`)

func (pic *picture) readQueues(runtime string) error {
	pic.queues, pic.titles = map[string][]string{}, map[string][]string{}
	files, err := filepath.Glob(filepath.Join(runtime, "*", "[0-9][0-9][0-9][0-9]-*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue // moved meanwhile: the next look finds it
		}
		if err != nil {
			return err
		}
		id := strings.TrimSuffix(filepath.Base(file), ".yaml")
		pic.queues[id] = append(pic.queues[id], filepath.Base(filepath.Dir(file)))
		if m := titleLine.FindSubmatch(data); m != nil {
			title := strings.Trim(string(m[1]), `"' `)
			pic.titles[title] = append(pic.titles[title], id)
		}
	}
	return nil
}

// lines reads a file of lines; a missing one is empty. torn says that the last line has no end.
func lines(path string) (all []string, torn bool, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil || len(data) == 0 {
		return nil, false, err
	}
	torn = data[len(data)-1] != '\n'
	scanner := bufio.NewScanner(bytes.NewReader(data))
	scanner.Buffer(nil, len(data)+1)
	for scanner.Scan() {
		all = append(all, scanner.Text())
	}
	return all, torn, scanner.Err()
}

func (pic *picture) readJournal(path string) error {
	all, torn, err := lines(path)
	if err != nil {
		return err
	}
	pic.torn = torn
	for i, text := range all {
		var line journalLine
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			if torn && i == len(all)-1 {
				break
			}
			line.fault = fmt.Sprintf("line %d: %v", i+1, err)
		}
		pic.journal = append(pic.journal, line)
	}
	return nil
}

func (pic *picture) readExecutions(path string) error {
	pic.started, pic.ended = map[string]int{}, map[string]int{}
	all, _, err := lines(path)
	for _, text := range all {
		switch what, mark, _ := strings.Cut(text, " "); what {
		case "start":
			pic.started[mark]++
		case "end":
			pic.ended[mark]++
		}
	}
	return err
}

func (pic *picture) readTrace(stage, path string) error {
	all, _, err := lines(path)
	for _, text := range all {
		line := traceLine{stage: stage}
		if json.Unmarshal([]byte(text), &line) == nil { // a line that was cut short says nothing
			pic.traces = append(pic.traces, line)
		}
	}
	return err
}

// queue is where a task stands; "" where it is nowhere, or in several queues.
func (pic *picture) queue(task string) string {
	if q := pic.queues[task]; len(q) == 1 {
		return q[0]
	}
	return ""
}

// in lists the tasks of a queue.
func (pic *picture) in(queue string) (ids []string) {
	for _, id := range sorted(pic.queues) {
		if pic.queue(id) == queue {
			ids = append(ids, id)
		}
	}
	return ids
}
