package cli

import (
	"context"
	"errors"
	"syscall"
	"time"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/supervisor/ops"
	"greatminds/supervisor/status"
)

// followEvents prints pages of events and goes on with new ones until the user's signal or until
// nobody reads them any more; both are its ordinary end. It never polls: it waits in the daemon
// for the next event, and where none answers for a change of the files. A daemon that ends or
// starts meanwhile is only another place to read: the cursor goes on, so nothing is missed and
// nothing is told twice. Where changes cannot be watched it looks again at the interval.
func (a *app) followEvents(ctx context.Context, p contract.Project, args ops.EventsArgs, interval time.Duration) error {
	ctx, release := a.whileRead(ctx)
	defer release()
	changed, stop := a.watchFiles(p, interval)
	defer stop()
	for {
		data, from, err := a.readFrom(ctx, p, "run.events", args, time.Duration(args.Wait)*time.Second)
		switch {
		case ctx.Err() != nil:
			return nil
		case storeBusy(err): // as without anything new: what keeps it busy changes its files
		case err != nil:
			return err
		default:
			last, err := a.sayEvents(data)
			if errors.Is(err, syscall.EPIPE) {
				return nil
			}
			if err != nil {
				return err
			}
			args.After, args.Wait = max(args.After, last), waitSlice.Seconds()
			if last > 0 || from == status.FromDaemon {
				continue
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

func storeBusy(err error) bool {
	r, is := refusal.Find(err)
	return is && r.Code == refusal.CodeStoreBusy
}

// watchFiles tells of changes of the project's files; where they cannot be watched it only says at
// the interval that there may be some.
func (a *app) watchFiles(p contract.Project, interval time.Duration) (changed <-chan struct{}, stop func()) {
	watch, err := ops.WatchFiles(p)
	if err == nil {
		return watch.Changed(), watch.Close
	}
	a.complain("note: changes cannot be watched (" + err.Error() + "); without a daemon the files are read again every " + interval.String())
	ticks, over, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		pause := time.NewTicker(interval)
		defer pause.Stop()
		for {
			select {
			case <-pause.C:
			case <-over:
				return
			}
			select {
			case ticks <- struct{}{}:
			case <-over:
				return
			}
		}
	}()
	return ticks, func() { close(over); <-ended }
}
