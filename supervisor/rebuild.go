package supervisor

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"greatminds/internal/durable"
	"greatminds/runstore"
)

// RebuildIndex makes the index of the project's finished work again from its records, under the
// lease: it is refused while a daemon lives. It returns how many records there are.
func RebuildIndex(ctx context.Context, o Options) (records int, err error) {
	if _, err := os.Lstat(o.Project.StoreDir()); errors.Is(err, fs.ErrNotExist) {
		return 0, nil // no daemon has begun a store yet: nothing is finished
	}
	l, err := takeLease(ctx, o.Project, holderCLI)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, l.release()) }()
	return runstore.RebuildIndex(runstore.Options{Dir: o.Project.StoreDir(), Disk: durable.NewDisk(o.Seam), Now: o.Now, Log: o.Log})
}
