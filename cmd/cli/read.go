package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/supervisor/control"
	"greatminds/supervisor/ops"
	"greatminds/supervisor/status"
)

// answerTime is how long a read waits for a daemon before it turns to the files.
const answerTime = 2 * time.Second

// read performs an operation that changes nothing: in the daemon, which also knows what stands in
// no file, else from the project's files. Beside a daemon that does not answer it says so on
// standard error.
func (a *app) read(ctx context.Context, p contract.Project, op string, args any) (json.RawMessage, error) {
	answer, _, err := a.readFrom(ctx, p, op, args, 0)
	return answer, err
}

// readFrom is read, told also where it was read. waits is how long the operation may wait in the
// daemon.
func (a *app) readFrom(ctx context.Context, p contract.Project, op string, args any, waits time.Duration) (answer json.RawMessage, from status.Source, err error) {
	c, err := a.newCall(p, op, args)
	if err != nil {
		return nil, from, err
	}
	answer, err = askDaemon(ctx, p, c, waits)
	if err == nil {
		return answer, status.FromDaemon, nil
	}
	if !unanswered(err) {
		return nil, status.FromDaemon, err
	}
	if ctx.Err() != nil {
		return nil, from, ctx.Err()
	}
	from = status.NoDaemon
	if !errors.Is(err, control.ErrNoDaemon) {
		from = status.BesideDaemon
		a.note(fmt.Sprintf("note: the daemon of %s does not answer; this is read from its files", p.Root))
	}
	value, err := ops.Files{Project: p, Getenv: a.Getenv, Now: a.Now, Dispatch: judge(a.World, p)}.Serve(ctx, c)
	if err != nil {
		return nil, from, err
	}
	answer, err = control.Encode(value)
	return answer, from, err
}

func askDaemon(ctx context.Context, p contract.Project, c control.Call, waits time.Duration) (json.RawMessage, error) {
	greeting, stop := context.WithTimeout(ctx, answerTime)
	defer stop()
	client, err := control.Dial(greeting, p)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	bounded, cancel := context.WithTimeout(ctx, waits+10*answerTime)
	defer cancel()
	return client.Do(bounded, c)
}

// unanswered reports whether no daemon took the call.
func unanswered(err error) bool {
	for _, known := range []error{control.ErrNoDaemon, control.ErrSilent, control.ErrLost} {
		if errors.Is(err, known) {
			return true
		}
	}
	r, is := refusal.Find(err)
	return is && (r.Code == refusal.CodeDaemonBusy || r.Code == refusal.CodeDaemonStopping)
}

// note complains once, also where a command reads again and again.
func (a *app) note(text string) {
	if a.noted {
		return
	}
	a.noted = true
	a.complain(text)
}
