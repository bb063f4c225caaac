package permission_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"greatminds/contract"
	"greatminds/internal/redact"
	"greatminds/runstore"
	"greatminds/supervisor/permission"
	"greatminds/transport"
)

// An agent that takes its request back leaves a record that says so, and the run goes on.
func TestAWithdrawnQuestionSaysSo(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		ctx, withdraw := context.WithCancelCause(t.Context())
		out, p := l.ask(t, ctx, time.Time{})
		other, q := l.ask(t, t.Context(), time.Time{})
		withdraw(transport.ErrWithdrawn)
		if got := <-out; got.OptionID != "" || got.TimedOut || got.Unrecorded != nil {
			t.Fatalf("got %+v, want cancelled", got)
		}
		if p := l.store.View().Permission(p.ID); p.Status != "cancelled" || p.Reason != permission.Withdrawn || p.ClosedAt == nil {
			t.Fatalf("the record says %s (%s)", p.Status, p.Reason)
		}
		if l.state() != runstore.WaitingInput {
			t.Errorf("the run is %s while another question is open", l.state())
		}
		l.answer(t, q.ID, "no")
		if got := <-other; got.OptionID != "no" || l.state() != runstore.Running {
			t.Errorf("the other question got %+v, run %s", got, l.state())
		}
	})
}

// E-063: what an option says is masked too. An id that holds a secret has another name on record, and the
// agent still gets its own.
func TestOptionsAreMasked(t *testing.T) {
	const secret = "CANARY-SECRET-VALUE"
	inLab(t, func(t *testing.T, l *lab) {
		r := request()
		r.Options = []transport.Option{{ID: "yes-" + secret, Name: "Use " + secret, Kind: "allow_once", Selectable: true},
			{ID: "option-1", Name: "No", Kind: "reject_once", Selectable: true}, {ID: "x", Name: "y", Kind: "ever " + secret}}
		out := make(chan permission.Answered, 1)
		go func() {
			out <- l.broker.Ask(t.Context(), permission.Asked{Run: l.run, Policy: contract.PermissionAsk, SessionID: "s", Secrets: redact.New(secret), Request: r})
		}()
		synctest.Wait()
		open := l.store.View().PermissionsOfRun(l.run.ID)
		if len(open) != 1 || strings.Contains(fmt.Sprint(open[0].Options), secret) {
			t.Fatalf("the record is %+v", open)
		}
		id := open[0].Options[0].OptionID
		if id == "option-1" || open[0].Options[1].OptionID != "option-1" {
			t.Fatalf("the options are %+v", open[0].Options)
		}
		l.answer(t, open[0].ID, id)
		if got := <-out; got.OptionID != "yes-"+secret {
			t.Fatalf("the agent gets %q", got.OptionID)
		}
	})
}

// E-044 E-053: an answer in time that cannot be handed over in time is no answer: the agent is told
// cancelled, and the run waits for its person as after any question that timed out.
func TestAnAnswerThatIsHandedOverTooLateIsNone(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.broker.Revision = func(runstore.TaskID) (runstore.Revision, error) { // a slow disk
			<-time.NewTimer(permission.MaxWait).C
			return "rev", nil
		}
		out, p := l.ask(t, t.Context(), time.Time{})
		<-time.NewTimer(permission.MaxWait - time.Second).C
		l.answer(t, p.ID, "yes")
		if got := <-out; got.OptionID != "" || !got.TimedOut {
			t.Fatalf("got %+v, want a time-out", got)
		}
		if p := l.store.View().Permission(p.ID); p.Status != "cancelled" || p.ConsumedAt != nil {
			t.Fatalf("the record says %s", p.Status)
		}
	})
}

// A slow operator is waited for to the last second, and no longer; the time left is that of the first moment
// on, whatever the store takes.
func TestASlowOperatorIsHeard(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		out, p := l.ask(t, t.Context(), time.Now().Add(time.Hour))
		if left := p.ExpiresAt - p.CreatedAt; left != permission.MaxWait.Seconds() {
			t.Errorf("the record gives %v seconds", left)
		}
		<-time.NewTimer(permission.MaxWait - time.Millisecond).C
		l.answer(t, p.ID, "no")
		if got := <-out; got.OptionID != "no" || got.TimedOut {
			t.Fatalf("got %+v", got)
		}
	})
}

// A prompt whose time is over already asks nobody in vain: the question closes at once and holds the run.
func TestAQuestionWithoutTimeClosesAtOnce(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		out, p := l.ask(t, t.Context(), time.Now().Add(-time.Second))
		if got := <-out; !got.TimedOut || l.store.View().Permission(p.ID).Status != "cancelled" {
			t.Fatalf("got %+v", got)
		}
	})
}

// Each of many questions at once gets its own answer, in whatever order a person gives them.
func TestManyQuestionsAtOnceGetTheirOwnAnswers(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		const many = 32
		var outs [many]<-chan permission.Answered
		var asked [many]*runstore.Permission
		for i := range many {
			outs[i], asked[i] = l.ask(t, t.Context(), time.Time{})
		}
		want := func(i int) string { return []string{"yes", "no"}[i%2] }
		for i := many - 1; i >= 0; i-- {
			if l.state() != runstore.WaitingInput {
				t.Fatalf("the run is %s with %d questions open", l.state(), i+1)
			}
			l.answer(t, asked[i].ID, want(i))
			if got := <-outs[i]; got.OptionID != want(i) {
				t.Fatalf("question %d got %q", i, got.OptionID)
			}
		}
		if l.state() != runstore.Running {
			t.Errorf("the run is %s", l.state())
		}
	})
}

// An answer that the agent did not get, since its callback ended while the delivery was made durable, is told
// to whoever watches: the record alone says that it was handed over.
func TestAnAnswerThatCameTooLateIsToldAsThat(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		told, out := make(chan permission.Progress, 8), make(chan permission.Answered, 1)
		go func() {
			out <- l.broker.Ask(t.Context(), permission.Asked{Run: l.run, Policy: contract.PermissionAsk, SessionID: "s", Request: request(),
				Progress: func(p permission.Progress) { told <- p }})
		}()
		p := <-told
		l.answer(t, p.ID, "yes")
		got := <-out
		if consumed := <-told; got.OptionID != "yes" || got.Delivered == nil || consumed.Status != "consumed" {
			t.Fatalf("got %+v, told %+v", got, consumed)
		}
		got.Delivered(true)
		select {
		case late := <-told:
			t.Fatalf("told %+v of an answer that arrived", late)
		default:
		}
		got.Delivered(false)
		if late := <-told; late.ID != p.ID || late.Status != "cancelled" || late.Reason != permission.CallbackClosed {
			t.Errorf("told %+v", late)
		}
	})
}
