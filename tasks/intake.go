package tasks

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"greatminds/contract"
	"greatminds/internal/refusal"
)

// NewTask is the arguments of `task new`. Empty members were not given.
type NewTask struct {
	// Stream is product or review_session.
	Stream string
	// Title has at most 200 characters; its slug becomes part of the id.
	Title string
	// Reporter is the caller's role where empty, Priority normal, Mode (review sessions) B.
	Reporter, Priority, Mode string
	// Kind and Scope are needed in the product stream.
	Kind, Scope string
	// TargetFunctionality and Scenarios are needed in the review_session stream.
	TargetFunctionality string
	Scenarios           []string
	// Hosts and EvidenceFor are stored as header lists.
	Hosts, EvidenceFor []string
	Description        string
	// InQueue is one of the stream's intake queues, the first where empty.
	InQueue contract.Queue
	// Seq is the task's number as four digits; the next free one where empty.
	Seq string
	// Reason goes into the journal, "new STREAM task" where empty.
	Reason string
}

// New files a task and returns its ref. Everything is judged before a number is taken: a
// refused call burns none. A number counts as taken when any folder of the runtime holds a name
// that begins with it, or the counter has passed it.
// Spec: reference of the header fields and the id counter.
func (t *Tree) New(ctx context.Context, op Operator, a NewTask) (Ref, error) {
	if err := t.known(op); err != nil {
		return Ref{}, err
	}
	queue, err := t.intake(a)
	if err != nil {
		return Ref{}, err
	}
	// The number is not known yet; any stands in for it while the rest is judged.
	if _, err := t.compose(op, a, queue, ID("0000-"+slugFor(a.Title))); err != nil {
		return Ref{}, err
	}
	counter, err := t.lockFile(ctx, "id_counter")
	if err != nil {
		return Ref{}, err
	}
	defer func() { _ = counter.Unlock() }() // only a closed descriptor can fail, and then the lock is gone too
	number, err := t.number(a.Seq)
	if err != nil {
		return Ref{}, err
	}
	id := ID(pad(number) + "-" + slugFor(a.Title))
	data, err := t.compose(op, a, queue, id)
	if err != nil {
		return Ref{}, err
	}
	ref, err := t.enter(ctx, op, a, queue, id, data)
	if err != nil {
		return Ref{}, err
	}
	t.touch(op.Role)
	return ref, t.count(number)
}

// enter puts the new file into its queue under its lock.
func (t *Tree) enter(ctx context.Context, op Operator, a NewTask, queue contract.Queue, id ID, data []byte) (Ref, error) {
	h, err := t.Lock(ctx, id)
	if err != nil {
		return Ref{}, err
	}
	defer h.Release()
	if err := t.finishIntents(h, id); err != nil {
		return Ref{}, err
	}
	reason := a.Reason
	if reason == "" {
		reason = "new " + a.Stream + " task"
	}
	return t.commit(h, change{before: Ref{ID: id}, after: data, to: queue, role: op.Role, reason: reason})
}

func refuseIntake(remedy, format string, args ...any) error {
	return refusal.New(refusal.CodeIntake, remedy, format, args...)
}

// intake judges what a new task must have, and returns the queue it enters.
func (t *Tree) intake(a NewTask) (contract.Queue, error) {
	stream, ok := t.schema.Stream(a.Stream)
	if !ok || len(stream.Intake) == 0 {
		return "", refusal.New(refusal.CodeUsage, "use --stream product or --stream review_session", "--stream is %s", shown(a.Stream))
	}
	queue := a.InQueue
	if queue == "" {
		queue = stream.Intake[0]
	}
	switch {
	case !slices.Contains(stream.Intake, queue):
		return "", refuseIntake("use one of "+joinQueues(stream.Intake), "stream %s takes no task into %s", a.Stream, shown(string(queue)))
	case strings.TrimSpace(a.Title) == "":
		return "", refuseIntake("give --title TEXT", "a task needs a title")
	case utf8.RuneCountInString(a.Title) > maxTitle:
		return "", refuseIntake("shorten it, and put the rest into --description", "the title has %d characters, more than %d",
			utf8.RuneCountInString(a.Title), maxTitle)
	case a.Stream == StreamProduct && (a.Kind == "" || a.Scope == ""):
		return "", refuseIntake("give --kind and --scope", "a product task needs a kind and a scope")
	case a.Stream == StreamReviewSession && (a.TargetFunctionality == "" || len(a.Scenarios) == 0):
		return "", refuseIntake("give --target-functionality and --scenarios", "a review session needs a target and scenarios")
	}
	return queue, nil
}

func joinQueues(queues []contract.Queue) string {
	var names []string
	for _, q := range queues {
		names = append(names, string(q))
	}
	return strings.Join(names, ", ")
}

// slugFor is a title's slug; one without letters and digits of ASCII gets a short hash.
func slugFor(title string) string {
	if slug := slugOf(title); slug != "" {
		return slug
	}
	return "task-" + contentSum([]byte(title))[:8]
}

// compose spells the new task's file and validates it as it will stand.
func (t *Tree) compose(op Operator, a NewTask, queue contract.Queue, id ID) ([]byte, error) {
	header := Fields{{"id", string(id)}, {"stream", a.Stream}, {"title", a.Title}, {"reporter", orElse(a.Reporter, string(op.Role))},
		{"opened_at", stamp(t.now())}, {"priority", orElse(a.Priority, "normal")}}
	if a.Stream == StreamReviewSession {
		header = append(header, Field{"kind", StreamReviewSession}, Field{"mode", orElse(a.Mode, "B")},
			Field{"target_functionality", a.TargetFunctionality}, Field{"scenarios", anyList(a.Scenarios)})
	} else {
		header = append(header, Field{"kind", a.Kind}, Field{"scope", a.Scope})
	}
	if a.Description != "" {
		header = append(header, Field{"description", a.Description})
	}
	for _, extra := range []struct {
		key  string
		list []string
	}{{"hosts", a.Hosts}, {"evidence_for", a.EvidenceFor}} {
		if len(extra.list) > 0 {
			header = append(header, Field{extra.key, anyList(extra.list)})
		}
	}
	for _, f := range header {
		if !validText(f.Value) {
			return nil, refuseIntake("send UTF-8", "%s is not UTF-8", f.Key)
		}
	}
	data := render(header, nil)
	file := FileOf(queue, id)
	task, faults := decode(queue, file, data)
	if len(faults) == 0 {
		faults = headerFaults(t.schema, task)
	}
	if len(faults) > 0 {
		for i := range faults {
			faults[i].Place = "" // the file does not exist: its lines would tell nobody anything
		}
		return nil, refuse("mend the arguments", faults, "the task would not be valid")
	}
	return data, nil
}

func validText(v any) bool {
	switch v := v.(type) {
	case string:
		return utf8.ValidString(v)
	case []any:
		for _, item := range v {
			if !validText(item) {
				return false
			}
		}
	}
	return true
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func anyList(texts []string) []any {
	list := make([]any, 0, len(texts))
	for _, s := range texts {
		list = append(list, s)
	}
	return list
}

func pad(n int) string {
	s := strconv.Itoa(n)
	return strings.Repeat("0", max(0, 4-len(s))) + s
}

var (
	seqPattern  = regexp.MustCompile(`^[0-9]{4}$`)
	namedByTask = regexp.MustCompile(`^([0-9]{4})-`)
)

// maxNumber is the last number that four digits can spell.
const maxNumber = 9999

// number is the number that was asked for, or the next free one. The caller holds the counter's
// lock.
func (t *Tree) number(seq string) (int, error) {
	taken, err := t.numbers()
	if err != nil {
		return 0, err
	}
	last, err := t.counter()
	if err != nil {
		return 0, err
	}
	if seq != "" {
		n, _ := strconv.Atoi(seq) // a wrong form is refused below
		switch {
		case !seqPattern.MatchString(seq):
			return 0, refuseIntake("give four digits, such as 0042", "--seq is %s", shown(seq))
		case taken[n]:
			return 0, refusal.New(refusal.CodeTaskExists, "take another number, or leave --seq out", "the number %s is taken", seq)
		}
		return n, nil
	}
	for n := range taken {
		last = max(last, n)
	}
	if last >= maxNumber {
		return 0, refuseIntake("give a free number with --seq", "the numbers up to %d are used up", maxNumber)
	}
	return last + 1, nil
}

// numbers are the numbers that any name in any folder of the runtime begins with. Intents count
// only through their tasks.
func (t *Tree) numbers() (map[int]bool, error) {
	dirs, err := os.ReadDir(t.project.Runtime)
	if err != nil {
		return nil, storage(err, "the runtime folder %s cannot be read", t.project.Runtime)
	}
	taken := map[int]bool{}
	for _, d := range dirs {
		dir := filepath.Join(t.project.Runtime, d.Name())
		if !d.IsDir() || strings.HasPrefix(d.Name(), ".") || dir == t.intentDir() {
			continue
		}
		names, err := os.ReadDir(dir)
		if err != nil {
			return nil, storage(err, "the folder %s cannot be read", d.Name())
		}
		for _, name := range names {
			if m := namedByTask.FindStringSubmatch(name.Name()); m != nil {
				n, _ := strconv.Atoi(m[1]) // four digits are a number
				taken[n] = true
			}
		}
	}
	return taken, nil
}

func (t *Tree) counterPath() string { return filepath.Join(t.project.Runtime, ".id_counter") }

// counter is the last number that was given out. A missing counter is 0; an unreadable one is
// refused, since a guess could give a number of a deleted task again.
func (t *Tree) counter() (int, error) {
	data, err := readRegular(t.counterPath(), ".id_counter")
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || n < 0 {
		return 0, refusal.New(refusal.CodeTaskStorage, "write the last used number into it, or remove it",
			"the counter %s holds %s, no number", t.counterPath(), shown(string(data)))
	}
	return n, nil
}

// count notes a number as given out. The caller holds the counter's lock.
func (t *Tree) count(n int) error {
	last, err := t.counter()
	if err != nil || last >= n {
		return err
	}
	if err := t.disk.Replace(t.counterPath(), []byte(strconv.Itoa(n)), taskPerm); err != nil {
		return storage(err, "the counter %s cannot be written", t.counterPath())
	}
	return nil
}
