package commands

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"greatminds/internal/durable"
	"greatminds/internal/execgate"
	"greatminds/runstore"
)

// pipeGrace is what the pipes get once the command's whole tree is gone: what it wrote is still in
// them. Only a process outside the tree, that was handed a descriptor, holds them longer.
const pipeGrace = 250 * time.Millisecond

// outputFolder is where the streams of a request are kept.
func (s *Service) outputFolder(id runstore.CommandID) string {
	return filepath.Join(s.o.Dir, "command-output", string(id))
}

// capture keeps both output streams of one command, each up to a bound, and reads on beyond it, so
// that the command is never held up.
type capture struct {
	disk    *durable.Disk
	dir     string
	streams [2]*stream
	pumps   sync.WaitGroup
}

// stream is one pipe and the file that its beginning goes to.
type stream struct {
	name         string
	ours, theirs *os.File
	file         *os.File
	limit        int64
	all, kept    hash.Hash
	total        int64
	stored       int64
	err          error
}

// openCapture makes files and pipes. Nothing runs until begin.
func openCapture(disk *durable.Disk, dir string, limit int64) (*capture, error) {
	if err := disk.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("command output: %w", err)
	}
	c := &capture{disk: disk, dir: dir}
	for i, name := range []string{"stdout", "stderr"} {
		s, err := openStream(filepath.Join(dir, name), limit)
		if err != nil {
			c.discard()
			return nil, fmt.Errorf("command output: %w", err)
		}
		s.name = name
		c.streams[i] = s
	}
	return c, nil
}

func openStream(path string, limit int64) (*stream, error) {
	// O_NOFOLLOW and O_EXCL: the file is new, whatever somebody put in its place.
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	ours, theirs, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &stream{ours: ours, theirs: theirs, file: file, limit: limit, all: sha256.New(), kept: sha256.New()}, nil
}

// begin starts to read. The child's ends are the launch's by then.
func (c *capture) begin() {
	for _, s := range c.streams {
		c.pumps.Go(s.pump)
	}
}

func (s *stream) pump() {
	buffer := make([]byte, 64<<10)
	for {
		n, err := s.ours.Read(buffer)
		s.take(buffer[:n])
		if err != nil {
			return // the end of the pipe, or the deadline of finish
		}
	}
}

func (s *stream) take(p []byte) {
	s.total += int64(len(p))
	_, _ = s.all.Write(p) // a hash never fails
	p = p[:min(int64(len(p)), s.limit-s.stored)]
	if len(p) == 0 || s.err != nil {
		return
	}
	n, err := s.file.Write(p)
	_, _ = s.kept.Write(p[:n])
	s.stored += int64(n)
	s.err = err
}

// finish reads what is left, makes the files durable and describes them. The command's tree is
// gone. The description is complete even where an error says that it is not all stored.
func (c *capture) finish() (*runstore.Output, error) {
	deadline := time.Now().Add(pipeGrace)
	for _, s := range c.streams {
		_ = s.ours.SetReadDeadline(deadline) // fails only on a closed file
	}
	c.pumps.Wait()
	var faults []error
	for _, s := range c.streams {
		execgate.Drain(s.ours, s.take)
		faults = append(faults, s.err, c.disk.Step("command-output.sync", s.file.Sync), s.file.Close(), s.ours.Close())
	}
	faults = append(faults, c.disk.SyncDir(c.dir))
	out := &runstore.Output{Stdout: c.streams[0].describe(c.dir), Stderr: c.streams[1].describe(c.dir)}
	if err := errors.Join(faults...); err != nil {
		return out, fmt.Errorf("command output: %w", err)
	}
	return out, nil
}

func (s *stream) describe(dir string) runstore.Stream {
	d := runstore.Stream{
		Path: filepath.Join(dir, s.name), SHA256: hex.EncodeToString(s.kept.Sum(nil)),
		Bytes: s.total, StoredBytes: s.stored, Truncated: s.stored < s.total,
	}
	if d.Truncated {
		d.Extra = runstore.Members{"stream_sha256": json.RawMessage(`"` + hex.EncodeToString(s.all.Sum(nil)) + `"`)}
	}
	return d
}

// discard gives up a capture of which nothing was read.
func (c *capture) discard() {
	for _, s := range c.streams {
		if s != nil {
			// Nothing was written.
			_, _, _ = s.ours.Close(), s.theirs.Close(), s.file.Close()
		}
	}
}
