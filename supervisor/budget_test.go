package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"greatminds/runstore"
	"greatminds/supervisor/dispatch"
	"greatminds/supervisor/policy"
	"greatminds/supervisor/usage"
)

// What a session has taken and cost follows it over runs, also when the runs between have left for
// the history.
//
// E-545 E-564 E-568
func TestASessionsBudgetsOutlastItsRuns(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: offers + usd("0.3") + endsTurn, binding: budgeted, session: "resume-if-compatible"})
	h.o.EagerHistory = true
	h.task("feature_dev", taskID)
	must(t, h.once())
	first := last(h.read())
	// Other tasks' runs come and go.
	for i := range 4 {
		h.script(fmt.Sprintf(`{"handshake":{"sessionId":"other-%d"}},{"prompt":"p"},`, i) + usd("0.1") + endsTurn)
		h.task("feature_dev", fmt.Sprintf("0002-other-%d", i))
		must(t, h.once())
	}
	v := h.read()
	for _, r := range v.Runs() {
		if r.ID == first.ID {
			t.Fatal("the session's run has not left for the history")
		}
	}
	h.script(goesOn + usd("0.6") + endsTurn)
	h.open()
	must(t, h.operator("run.retry", map[string]any{"run_id": first.ID}))
	h.shut()
	must(t, h.once())
	second := last(h.read())
	if got := costOf(used(t, second).Cost); second.TaskID != taskID || got != "0.6 USD reported, 2 done, fresh true, pending false, sure" {
		t.Fatalf("%s: the account: %s", second.TaskID, got)
	}
	if got, want := *second.Outcome.SessionInputBytesReserved, *first.Outcome.InputBytesReserved+*second.Outcome.InputBytesReserved; got != want {
		t.Errorf("%d bytes are reserved in all, want %d", got, want)
	}
	h.audited()
}

// An agent that gives one session to two tasks has one budget for both.
//
// E-545 E-564
func TestOneSessionOfTwoTasksHasOneBudget(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: offers + usd("0.9") + endsTurn, binding: budgeted})
	h.task("feature_dev", taskID)
	must(t, h.once())
	first := last(h.read())
	h.script(offers + usd("1.5") + hangs)
	h.task("feature_dev", "0002-other")
	must(t, h.once())
	r := last(h.read())
	if b := costHold(t, r); r.TaskID != "0002-other" || b["reason"] != "cost_limit_reached" || b["amount"] != 1.5 {
		t.Errorf("%s: got %s (%s), %v", r.TaskID, r.State, r.Reason, b)
	}
	if got, want := *r.Outcome.SessionInputBytesReserved, *first.Outcome.InputBytesReserved+*r.Outcome.InputBytesReserved; got != want {
		t.Errorf("%d bytes are reserved in all, want %d", got, want)
	}
	// A third task's prompt is not sent any more.
	h.task("feature_dev", "0003-third")
	must(t, h.once())
	if r := last(h.read()); r.TaskID != "0003-third" || r.Reason != usageBudget || h.received("session/prompt") != 2 {
		t.Errorf("%s: got %s (%s) after %d prompts", r.TaskID, r.State, r.Reason, h.received("session/prompt"))
	}
	h.audited()
}

// An agent that gives each new session the same id has one input budget for all of them. Who reads why
// is not told to do what is done already.
//
// E-564
func TestOneIdOfAllSessionsIsTold(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: offers + endsTurn})
	h.task("feature_dev", taskID)
	must(t, h.once())
	n := *last(h.read()).Outcome.InputBytesReserved
	h.edit("session: new", fmt.Sprintf("session: new, max_session_input_bytes: %d", 2*n-1))
	h.again()
	must(t, h.once())
	r := last(h.read())
	if said := what(t, r); r.Reason != inputBudget || !strings.Contains(said, "session sess-1 has taken") || h.received("session/prompt") != 1 {
		t.Errorf("got %s (%s): %q", r.State, r.Reason, said)
	}
	h.open()
	defer h.shut()
	if a := h.document().Assignments[0]; strings.Contains(a.Remedy, "session: new") || !strings.Contains(a.What, "sess-1") {
		t.Errorf("held with %q, %q", a.What, a.Remedy)
	}
}

// Within one daemon's life too: runs that leave for the history while it goes on are not forgotten.
//
// E-545 E-564
func TestASessionsRunsAreRememberedWhenTheyLeave(t *testing.T) {
	t.Parallel()
	const tasks = 6
	h := newHouse(t, plan{steps: offers + usd("0.2") + endsTurn, binding: ", max_no_progress_turns: 1" + budgeted})
	h.o.EagerHistory, h.o.MinJournal = true, 1
	for i := range tasks {
		h.task("feature_dev", fmt.Sprintf("000%d-sample", i+1))
	}
	must(t, h.once())
	v := h.read()
	if n := len(v.Runs()); n >= tasks {
		t.Fatalf("none of %d runs has left for the history", n)
	}
	sum := int64(0)
	for i := range tasks {
		runs := v.RunsOfTask(runstore.TaskID(fmt.Sprintf("000%d-sample", i+1)))
		if len(runs) != 1 || runs[0].State != runstore.Completed {
			t.Fatalf("task %d has %d runs", i+1, len(runs))
		}
		sum += *runs[0].Outcome.InputBytesReserved
		if got := *runs[0].Outcome.SessionInputBytesReserved; got != sum {
			t.Errorf("run %d: %d bytes in all, want %d", i+1, got, sum)
		}
		if got, want := costOf(used(t, runs[0]).Cost), fmt.Sprintf("0.2 USD reported, %d done, fresh true, pending false, sure", i+1); got != want {
			t.Errorf("run %d: %s, want %s", i+1, got, want)
		}
	}
}

// While the runs of a session are read, which may take a while, nobody waits for that: the store's
// transactions ask too. What ends meanwhile is not forgotten.
func TestNobodyWaitsWhileASessionIsRead(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: offers + usd("0.2") + endsTurn})
	h.task("feature_dev", taskID)
	must(t, h.once())
	h.task("feature_dev", "0002-other")
	early := h.read()
	must(t, h.once())
	late := h.read()
	r := last(late)
	k := sessionKey{r.AgentSHA256, r.Workspace, *r.SessionID}
	var s sessions
	reading, read := make(chan struct{}), make(chan struct{})
	var facts sessionFacts
	var err error
	go func() {
		defer close(read)
		facts, err = s.past(func() *runstore.View { reading <- struct{}{}; <-reading; return early }, k)
	}()
	<-reading
	s.note(late, r.ID)
	if now := s.now(late, k, sessionFacts{}); now.writer != r.ID {
		t.Errorf("during the reading: %+v", now)
	}
	reading <- struct{}{}
	<-read
	again, err2 := s.past(func() *runstore.View { t.Error("it is read twice"); return early }, k)
	if want := s.now(late, k, sessionFacts{}); err != nil || err2 != nil || facts != want || again != want || want.writer != r.ID || want.sent != *r.Outcome.SessionInputBytesReserved {
		t.Errorf("got %+v (%v), then %+v (%v), want %+v", facts, err, again, err2, want)
	}
}

// leftBehind puts an ended run of the task's session on record, as an older store or the original has it.
func (h *house) leftBehind(usage string) {
	h.t.Helper()
	h.open()
	d := h.d
	task, err := d.tree.ReadCurrent(taskID)
	must(h.t, err)
	session, begun := "sess-1", true
	must(h.t, d.store.Update(h.t.Context(), func(tx *runstore.Tx) error {
		run, err := h.running(tx, task)
		if err != nil {
			return err
		}
		if err := tx.Reserve(run.ID, "one", runstore.Reservation{RequestedBytes: 500, UsedBytes: 500, LimitBytes: 1000}); err != nil {
			return err
		}
		if err := tx.Transition(run.ID, runstore.NewID(), runstore.Completed, "turn_ended", nil); err != nil {
			return err
		}
		return tx.EditRun(run.ID, func(r *runstore.Run) {
			r.SessionID, r.RetryAuthorized, r.Outcome = &session, true, &runstore.Outcome{PromptStarted: &begun}
			r.Protocol = []byte(`{"version":1,"negotiated":{"at":1,"data":{"capabilities":{"loadSession":true}}}}`)
			if usage != "" {
				r.Usage = []byte(usage)
			}
		})
	}))
	h.shut()
}

// E-553 E-557
func TestWhatAnEarlierStoreLeftOfASessionsCost(t *testing.T) {
	t.Parallel()
	record := func(members string) string {
		return `{"version":1,"source":"acp_sdk_decoded","cost_accounting":{` + members + `}}`
	}
	for name, c := range map[string]struct{ usage, reason, account string }{
		"no record":    {"", "session_history_unknown", "0.6 USD reported, 1 done, fresh true, pending false, session_history_unknown"},
		"another form": {`{"version":7}`, "session_history_unknown", "0.6 USD reported, 1 done, fresh true, pending false, session_history_unknown"},
		"the original's": {record(`"amount":0.5,"completed_prompts":1,"currency":"USD","error":null,"fresh":true,"pending":false,"status":"reported"`), "",
			"0.6 USD reported, 2 done, fresh true, pending false, sure"},
		"the original's, pending": {record(`"amount":0.5,"completed_prompts":0,"currency":"USD","error":null,"fresh":true,"pending":true,"status":"reported"`),
			"session_history_unknown", "0.6 USD reported, 1 done, fresh true, pending false, session_history_unknown"},
		"the original's, in doubt": {record(`"amount":0.5,"completed_prompts":1,"currency":"USD","error":"something_else","fresh":true,"pending":false,"status":"reported"`),
			"something_else", "0.6 USD reported, 2 done, fresh true, pending false, something_else"},
		"the original's, at the limit": {record(`"amount":1.0,"completed_prompts":1,"currency":"USD","error":null,"fresh":true,"pending":false,"status":"reported"`),
			"cost_limit_reached", "1.0 USD reported, 2 done, fresh false, pending false, cost_regressed"},
		"the original's, without a report": {record(`"amount":null,"completed_prompts":1,"currency":null,"error":null,"fresh":false,"pending":false,"status":"missing"`),
			"cost_unavailable", "0.6 USD reported, 2 done, fresh true, pending false, sure"},
	} {
		for _, budget := range []string{budgeted, ""} {
			t.Run(name+budget, func(t *testing.T) {
				t.Parallel()
				h := newHouse(t, plan{steps: goesOn + usd("0.6") + endsTurn, binding: budget, session: "resume-if-compatible"})
				h.task("feature_dev", taskID)
				h.leftBehind(c.usage)
				must(t, h.once())
				r := last(h.read())
				if budget != "" && c.reason != "" {
					if b := costHold(t, r); r.Reason != usageBudget || r.Process != nil || b["reason"] != c.reason || h.received("session/prompt") != 0 {
						t.Errorf("got %s (%s), process %v, %v", r.State, r.Reason, r.Process, b)
					}
					return
				}
				if r.State != runstore.Completed || costOf(used(t, r).Cost) != c.account || *r.Outcome.SessionInputBytesReserved != 500+*r.Outcome.InputBytesReserved {
					t.Errorf("got %s (%s), the account: %s; %d bytes in all", r.State, r.Reason, costOf(used(t, r).Cost), *r.Outcome.SessionInputBytesReserved)
				}
				h.audited()
			})
		}
	}
}

// An agent that never offered to go on with a session gets a new one, whose budgets are its own.
func TestASessionThatNobodyCanLoadHoldsNothing(t *testing.T) {
	t.Parallel()
	steps := func(id, cost string) string {
		return `{"on":"session/cancel","steps":[{"end_turn":"p","reason":"cancelled"}]},{"handshake":{"sessionId":"` + id + `"}},{"prompt":"p"},` + usd(cost)
	}
	h := newHouse(t, plan{steps: steps("one", "1.0") + hangs, binding: budgeted, session: "resume-if-compatible"})
	h.task("feature_dev", taskID)
	must(t, h.once())
	h.script(steps("two", "0.1") + endsTurn)
	h.again()
	must(t, h.once())
	if r := last(h.read()); r.State != runstore.Completed || r.Outcome.SessionStrategy != "new_load_unavailable" {
		t.Errorf("got %s (%s), %v", r.State, r.Reason, costHold(t, r))
	}
}

// Two runs that share a session at the same time leave its cost in doubt, whoever ends last.
func TestRunsThatShareASessionDoubtItsCost(t *testing.T) {
	key := sessionKey{"a", "/w", "s"}
	facts := func(run string, a policy.CostAccount, at uint64) sessionFacts {
		return sessionFacts{known: true, cost: a, costAt: at, writer: runstore.RunID(run)}
	}
	var one, two usageWatch
	one.open(sessionFacts{}.account(false))
	one.begin()
	first := facts("one", one.account, 5)
	two.open(first.account(false))
	second := first.join(facts("two", two.account, 9))
	if a, _ := two.joined(second, "two"); a.Error == nil {
		t.Error("the second run took a pending prompt over without a doubt")
	}
	if a, _ := one.joined(second, "one"); a.Error == nil || *a.Error != policy.CostHistoryUnknown {
		t.Error("the first run does not see that another one came between")
	}
	if !key.holds(&runstore.Run{AgentSHA256: "a", Workspace: "/w", SessionID: &key.id}) || key.holds(&runstore.Run{AgentSHA256: "b", Workspace: "/w", SessionID: &key.id}) ||
		key.holds(&runstore.Run{AgentSHA256: "a", Workspace: "/v", SessionID: &key.id}) || key.holds(&runstore.Run{AgentSHA256: "a", Workspace: "/w"}) {
		t.Error("a session is of one agent manifest, one workspace and one id")
	}
}

// talk opens a session for a claimed task by the walk's own steps, and calls f in it.
func (h *house) talk(f func(ctx context.Context, e *execution)) {
	h.t.Helper()
	h.open()
	defer h.shut()
	d := h.d
	ctx := h.limit()
	found, err := d.catalog.Tasks()
	must(h.t, err)
	j := dispatch.Plan(d.world(), d.store.View(), found)[0]
	agent, _ := d.contract.Agent(j.Binding.Agent)
	claimed, err := d.recordClaim(ctx, j, agent)
	must(h.t, err)
	task, err := d.tree.Read(j.Task)
	must(h.t, err)
	e := &execution{run: claimed.Run, token: claimed.Token, task: task, binding: j.Binding, agent: agent,
		workspace: claimed.Workspace, activity: make(chan struct{}, 1), began: time.Now()}
	for name, step := range []func(context.Context, *execution) (ending, bool){
		d.begin, d.prepareWorkspace, d.compileContext, d.findSession, d.preflight, d.launch, d.openSession} {
		if end, ok := step(ctx, e); !ok {
			h.t.Fatalf("step %d: %s (%v)", name, end.reason, end.cause)
		}
	}
	f(ctx, e)
	d.finish(ctx, e, ending{runstore.Completed, turnEnded, nil})
}

// A session takes several prompts, each checked before it is sent, and each with a debit of its own.
// The role's context goes with the first one; a later one is the text that it was given and nothing else.
//
// E-542 E-562 E-567 E-570
func TestALaterPromptIsCheckedBeforeItIsSent(t *testing.T) {
	t.Parallel()
	const text = "what about the second one, über alles?"
	turn := func(p, cost, tokens string) string {
		return `{"prompt":"` + p + `"},` + usd(cost) + `{"reply":"` + p + `","result":{"stopReason":"end_turn","usage":{"inputTokens":` + tokens + `}}}`
	}
	h := newHouse(t, plan{steps: `{"handshake":{}},` + turn("p", "0.1", "5") + "," + turn("q", "0.2", "6") + `,{"hang":true}`, binding: budgeted + ", max_prompt_bytes: 20000"})
	h.task("feature_dev", taskID)
	h.talk(func(ctx context.Context, e *execution) {
		d := h.d
		if _, err := d.sendPrompt(ctx, e, firstPrompt, e.prompt); err != nil {
			t.Fatal(err)
		}
		n := int64(len(e.prompt))
		var over *overrun
		if _, err := d.sendPrompt(ctx, e, "too-large", strings.Repeat("ü", 10001)); !errors.As(err, &over) || over.input["requested_bytes"] != int64(20002) || over.input["budget"] != "prompt" {
			t.Errorf("a prompt that is too large: got %v", err)
		}
		e.binding.MaxSessionInputBytes = int(n) + len(text) - 1
		if _, err := d.sendPrompt(ctx, e, "second", text); !errors.As(err, &over) || over.input["used_bytes"] != n || over.input["budget"] != "session" {
			t.Errorf("a prompt that the session does not take: got %v", err)
		}
		if sent := d.store.View().Reservations(e.run.ID); len(sent) != 1 || h.received("session/prompt") != 1 {
			t.Errorf("%d reservations, %d prompts sent", len(sent), h.received("session/prompt"))
		}
		e.binding.MaxSessionInputBytes++
		if _, err := d.sendPrompt(ctx, e, "second", text); err != nil {
			t.Fatal(err)
		}
		r := d.store.View().Reservations(e.run.ID)["second"]
		if r.RequestedBytes != int64(len(text)) || r.UsedBytes != n+int64(len(text)) {
			t.Errorf("got %+v", r)
		}
		before, account := e.outcome, e.usage.account
		must(t, d.admitPrompt(ctx, e, "second", text)) // the same again debits nothing
		if again := d.store.View().Reservations(e.run.ID); len(again) != 2 || e.outcome.reserved != before.reserved || e.outcome.sessionReserved != r.UsedBytes || account.CompletedPrompts != 2 || e.usage.account != account {
			t.Errorf("got %+v, reserved %d, then %d; %d prompts", again, before.reserved, e.outcome.reserved, account.CompletedPrompts)
		}
		must(t, d.update(ctx, func(tx *runstore.Tx) error { _, err := d.saveUsage(tx, e); return err }))
		if u := usage.Read(d.store.View().Run(e.run.ID).Usage); u.Tokens.Data.Values["inputTokens"] != 6 {
			t.Errorf("the tokens of the latest prompt: %+v", u.Tokens)
		}
		// A doubt about the cost, and the agent gets nothing more either.
		e.usage.account = e.usage.account.Doubt(policy.CostRegressed)
		e.binding.MaxSessionInputBytes *= 2
		if _, err := d.sendPrompt(ctx, e, "third", "more"); !errors.As(err, &over) || over.usage["reason"] != "cost_regressed" {
			t.Errorf("a prompt that the cost budget does not let go: got %v", err)
		}
	})
	if got := h.received("session/prompt"); got != 2 {
		t.Errorf("the agent was sent %d prompts", got)
	}
	first, err := os.ReadFile(h.file("agent/prompt-0-p.txt"))
	must(t, err)
	second, err := os.ReadFile(h.file("agent/prompt-0-q.txt"))
	must(t, err)
	if string(second) != text || !strings.Contains(string(first), "DEVELOPER") {
		t.Errorf("the prompts arrived as %q and %q", first, second)
	}
}
