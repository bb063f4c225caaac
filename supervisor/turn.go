package supervisor

import (
	"context"
	"errors"
	"time"

	"greatminds/transport"
)

// promptTurn sends the one prompt of a background run and waits for its stop reason.
func (d *Daemon) promptTurn(ctx context.Context, e *execution) ending {
	turn, err := d.sendPrompt(ctx, e, firstPrompt, e.prompt)
	return e.turnEnded(ctx, turn, err)
}

// sampled runs a turn, and samples it beside.
func (d *Daemon) sampled(ctx context.Context, e *execution, turn func() (transport.Turn, error)) (transport.Turn, error) {
	ctx, rest := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); d.sample(ctx, e) }()
	defer func() { rest(); <-ended }()
	return turn()
}

// sendPrompt sends one prompt of an open session and waits for its turn's end.
func (d *Daemon) sendPrompt(ctx context.Context, e *execution, id, text string) (transport.Turn, error) {
	if err := d.admitPrompt(ctx, e, id, text); err != nil {
		return transport.Turn{}, &unsent{err}
	}
	budget := time.Duration(e.binding.TimeoutSeconds) * time.Second
	prompt, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	prompt, stop := context.WithCancelCause(prompt)
	defer stop(nil)
	if deadline, ok := prompt.Deadline(); ok {
		e.setPromptEnds(deadline)
	}
	e.usage.watch(e.costBudget(), stop)
	turn, err := d.sampled(ctx, e, func() (transport.Turn, error) { return e.send(prompt, text) })
	e.usage.finish(turn, d.o.Now())
	return turn, err
}

// unsent is why a prompt was not sent.
type unsent struct{ err error }

func (u *unsent) Error() string { return u.err.Error() }
func (u *unsent) Unwrap() error { return u.err }

// notSent maps a prompt that was not sent to the run's end.
func (e *execution) notSent(err error) ending {
	var over *overrun
	if errors.As(err, &over) {
		return e.overBudget(over)
	}
	return storeFailed(err)
}

// send sends a prompt. A turn in which the agent is silent for its binding's limit is cancelled,
// in the agent's own protocol, and fails with errIdle.
func (e *execution) send(ctx context.Context, text string) (transport.Turn, error) {
	limit := e.binding.IdleTimeoutSeconds
	if limit == nil {
		return e.session.Prompt(ctx, text)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	e.silence.begin(time.Duration(*limit)*time.Second, e.session.Spoke)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if e.silence.broken(ctx) {
			cancel(errIdle)
		}
	}()
	defer func() { cancel(nil); <-watched }()
	return e.session.Prompt(ctx, text)
}
