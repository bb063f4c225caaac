package durable

import (
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Log is a file that only grows, each piece on the disk before Append returns. It is for one
// goroutine at a time.
//
// A failed write is cut back to the last good length at once. Where that fails, or a sync does
// (after which the kernel may have dropped the dirty pages and would report success the next
// time), the log is poisoned: every later Append and Truncate fails with ErrPoisoned, and what
// the file holds beyond Size is unknown.
type Log struct {
	d      *Disk
	path   string
	f      *os.File
	size   int64
	poison error
}

// OpenLog opens the log path for appending at its present end, and creates it where missing.
// What the file already holds is neither read nor synced: see Settle.
func (d *Disk) OpenLog(path string, perm fs.FileMode) (*Log, error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if os.IsNotExist(err) {
		if f, err = d.createFile(path, perm); err == nil {
			err = d.settle("create", path)
		}
	} else if err == nil {
		err = d.settleName("open", path)
	}
	if err != nil {
		if f != nil {
			f.Close()
		}
		return nil, fmt.Errorf("open log: %w", err)
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("open log: %w", err)
	}
	return &Log{d: d, path: path, f: f, size: st.Size()}, nil
}

// Append writes line at the end and syncs the data. After an error that is not ErrPoisoned
// the log is as before, on the disk too.
func (l *Log) Append(line []byte) error {
	if l.poison != nil {
		return fmt.Errorf("append to %s: %w: %w", l.path, ErrPoisoned, l.poison)
	}
	if err := l.d.writeAt(l.f, l.path, line, l.size); err != nil {
		return l.cutBack(err)
	}
	if err := l.sync(); err != nil {
		l.poison = err
		return fmt.Errorf("append to %s: %w: %w", l.path, ErrPoisoned, err)
	}
	l.size += int64(len(line))
	return nil
}

// cutBack removes what a failed write may have left.
func (l *Log) cutBack(cause error) error {
	if err := l.truncate(l.size); err != nil {
		l.poison = err
		return fmt.Errorf("append to %s: %w: %w, and cutting it back: %w", l.path, ErrPoisoned, cause, err)
	}
	return fmt.Errorf("append to %s: %w", l.path, cause)
}

func (l *Log) sync() error {
	return l.d.do(Step{Op: OpSync, Path: l.path}, func(Step) error { return unix.Fdatasync(int(l.f.Fd())) })
}

func (l *Log) truncate(n int64) error {
	err := l.d.do(Step{Op: OpTruncate, Path: l.path, Offset: n}, func(Step) error { return l.f.Truncate(n) })
	if err != nil {
		return err
	}
	return l.sync()
}

// Size returns the length of the log in bytes, up to the end of the last successful Append.
func (l *Log) Size() int64 { return l.size }

// Truncate cuts the log to n bytes, at most Size, durably. A failure poisons the log.
func (l *Log) Truncate(n int64) error {
	if l.poison != nil {
		return fmt.Errorf("truncate %s: %w: %w", l.path, ErrPoisoned, l.poison)
	}
	if n < 0 || n > l.size {
		return fmt.Errorf("truncate %s to %d bytes: it has %d", l.path, n, l.size)
	}
	if err := l.truncate(n); err != nil {
		l.poison = err
		return fmt.Errorf("truncate %s: %w: %w", l.path, ErrPoisoned, err)
	}
	l.size = n
	return nil
}

// Close closes the file. Nothing is written or synced.
func (l *Log) Close() error { return l.f.Close() }
