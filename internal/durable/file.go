package durable

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Replace puts data at path as a complete file, over what was there.
//
// After an error path still holds its old content, but for ErrUncertain.
// Spec: "Persistence and ownership".
func (d *Disk) Replace(path string, data []byte, perm fs.FileMode) error {
	tmp, err := d.temporary(path, data, perm)
	if err != nil {
		return err
	}
	err = d.do(Step{Op: OpRename, Path: tmp, To: path}, func(Step) error { return os.Rename(tmp, path) })
	if err != nil {
		return fmt.Errorf("replace %s: %w", path, d.giveUp(tmp, err))
	}
	return d.settle("replace", path)
}

// Publish puts data at path as a complete file, over what was there, and syncs nothing: it is for what
// is shown while it changes and is missed by nobody after a power cut, which may leave the old file,
// the new one, or one without its data. A crash of the process leaves the old or the new one.
func (d *Disk) Publish(path string, data []byte, perm fs.FileMode) error {
	tmp := temporaryName(path)
	f, err := d.createFile(tmp, perm)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	err = d.writeAt(f, tmp, data, 0)
	if err = errors.Join(err, f.Close()); err != nil {
		d.discard(tmp)
		return fmt.Errorf("write %s: %w", path, err)
	}
	err = d.do(Step{Op: OpRename, Path: tmp, To: path}, func(Step) error { return os.Rename(tmp, path) })
	if err != nil {
		return fmt.Errorf("write %s: %w", path, d.giveUp(tmp, err))
	}
	return nil
}

// Create puts data at path as a complete file, or fails with fs.ErrExist where anything
// stands there, a dangling link included.
func (d *Disk) Create(path string, data []byte, perm fs.FileMode) error {
	tmp, err := d.temporary(path, data, perm)
	if err != nil {
		return err
	}
	err = d.do(Step{Op: OpMove, Path: tmp, To: path}, func(Step) error { return moveNoReplace(tmp, path) })
	if err != nil {
		return fmt.Errorf("create %s: %w", path, d.giveUp(tmp, err))
	}
	return d.settle("create", path)
}

// giveUp removes tmp after a failed rename. A temporary file that is gone tells that the
// rename took place although it reported an error.
func (d *Disk) giveUp(tmp string, cause error) error {
	if _, err := os.Lstat(tmp); err != nil {
		return fmt.Errorf("%w: %w", ErrUncertain, cause)
	}
	d.discard(tmp)
	return cause
}

// settle syncs the folder of path. The change itself has happened by now, so a failure
// leaves it uncertain.
func (d *Disk) settle(verb, path string) error {
	if err := d.syncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("%s %s: %w: %w", verb, path, ErrUncertain, err)
	}
	return nil
}

// temporary writes data to a synced file of a name of its own beside path.
func (d *Disk) temporary(path string, data []byte, perm fs.FileMode) (string, error) {
	tmp := temporaryName(path)
	f, err := d.createFile(tmp, perm)
	if err != nil {
		return "", fmt.Errorf("write %s: %w", path, err)
	}
	err = d.writeAt(f, tmp, data, 0)
	if err == nil {
		err = d.do(Step{Op: OpSync, Path: tmp}, func(Step) error { return f.Sync() })
	}
	if err = errors.Join(err, f.Close()); err != nil {
		d.discard(tmp)
		return "", fmt.Errorf("write %s: %w", path, err)
	}
	return tmp, nil
}

func temporaryName(path string) string {
	var b [8]byte
	rand.Read(b[:]) // never fails: the runtime ends the process instead
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+hex.EncodeToString(b[:])+".tmp")
}

// discard removes a temporary file. A failure leaves a stray file that nobody reads.
func (d *Disk) discard(tmp string) {
	_ = d.do(Step{Op: OpUnlink, Path: tmp}, func(Step) error { return os.Remove(tmp) })
}

func (d *Disk) createFile(path string, perm fs.FileMode) (f *os.File, err error) {
	err = d.do(Step{Op: OpCreate, Path: path}, func(Step) error {
		f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, perm)
		if err != nil {
			return err
		}
		return f.Chmod(perm) // the process's umask must not widen or narrow what was asked
	})
	if err != nil && f != nil {
		f.Close()
	}
	return f, err
}

func (d *Disk) writeAt(f *os.File, path string, data []byte, at int64) error {
	return d.do(Step{Op: OpWrite, Path: path, Offset: at, Data: data}, func(s Step) error {
		_, err := f.WriteAt(s.Data, at)
		return err
	})
}

func (d *Disk) syncDir(dir string) error {
	return d.do(Step{Op: OpSyncDir, Path: dir}, func(Step) error {
		f, err := os.Open(dir)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}

func moveNoReplace(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

// Rename moves from to the free name to, and syncs both folders, the new one first so that a
// power cut leaves two names rather than none. It fails with fs.ErrExist where to is taken.
func (d *Disk) Rename(from, to string) error {
	err := d.do(Step{Op: OpMove, Path: from, To: to}, func(Step) error { return moveNoReplace(from, to) })
	if err != nil {
		if _, gone := os.Lstat(from); gone != nil && !errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: %w", ErrUncertain, err)
		}
		return fmt.Errorf("move: %w", err)
	}
	if err := d.settle("move", to); err != nil {
		return err
	}
	if filepath.Dir(from) == filepath.Dir(to) {
		return nil
	}
	return d.settle("move", from)
}

// Link makes to another name of the file from, in place of what was there. The name is as safe
// as the next sync of its folder makes it. It fails where the file system has no hard links.
func (d *Disk) Link(from, to string) error {
	tmp := temporaryName(to)
	err := d.do(Step{Op: OpLink, Path: from, To: tmp}, func(Step) error { return os.Link(from, tmp) })
	if err != nil {
		return fmt.Errorf("link: %w", err)
	}
	err = d.do(Step{Op: OpRename, Path: tmp, To: to}, func(Step) error { return os.Rename(tmp, to) })
	if _, left := os.Lstat(tmp); left == nil {
		d.discard(tmp) // the rename failed; or to was this file already, and then it does nothing
	}
	if err != nil {
		return fmt.Errorf("link: %w", err)
	}
	return nil
}

// Discard removes a file that nobody needs any more. A failure leaves a stray file, and a power
// cut may bring it back.
func (d *Disk) Discard(path string) { d.discard(path) }

// Remove removes the file path and syncs its folder.
func (d *Disk) Remove(path string) error {
	err := d.do(Step{Op: OpUnlink, Path: path}, func(Step) error { return os.Remove(path) })
	if err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	return d.settle("remove", path)
}

// Settle syncs a file that is already there, and its folder: what another process wrote before
// it was killed may be in the page cache alone.
func (d *Disk) Settle(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("settle: %w", err)
	}
	err = d.do(Step{Op: OpSync, Path: path}, func(Step) error { return f.Sync() })
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("settle %s: %w", path, err)
	}
	return d.settle("settle", path)
}

// SyncDir syncs the folder dir, so that the names in it are on the disk.
func (d *Disk) SyncDir(dir string) error {
	if err := d.syncDir(dir); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}

// settleName syncs the folder of a name that was found there: an earlier process may have made it
// and been killed before its sync. Once is enough for each name.
func (d *Disk) settleName(verb, path string) error {
	d.mu.Lock()
	known := d.named[path]
	d.mu.Unlock()
	if known {
		return nil
	}
	if err := d.settle(verb, path); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.named == nil {
		d.named = map[string]bool{}
	}
	d.named[path] = true
	return nil
}

// MkdirAll makes the folder path and the missing folders above it, each synced into its parent.
func (d *Disk) MkdirAll(path string, perm fs.FileMode) error {
	if st, err := os.Stat(path); err == nil {
		if !st.IsDir() {
			return &fs.PathError{Op: "mkdir", Path: path, Err: unix.ENOTDIR}
		}
		// Of a folder that was there, one above which we may not even look is none of ours.
		if err := d.settleName("mkdir", path); !errors.Is(err, fs.ErrPermission) {
			return err
		}
		return nil
	}
	if parent := filepath.Dir(path); parent != path {
		if err := d.MkdirAll(parent, perm); err != nil {
			return err
		}
	}
	err := d.do(Step{Op: OpMkdir, Path: path}, func(Step) error {
		if err := os.Mkdir(path, perm); err != nil {
			return err
		}
		return os.Chmod(path, perm)
	})
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	d.mu.Lock()
	delete(d.named, path)
	d.mu.Unlock()
	return d.settleName("mkdir", path)
}
