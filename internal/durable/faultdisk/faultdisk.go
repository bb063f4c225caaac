// Package faultdisk is a fault seam for tests: it stops, fails or shortens chosen durable
// steps, and keeps a record of all of them.
//
// A test runs its scenario on Disk(), once for each step number, until a run in which the
// fault was not reached:
//
//	for n := 1; ; n++ {
//		fd := faultdisk.New(faultdisk.CrashAt(n))
//		scenario(fd.Disk())
//		// reopen the same folder with durable.NewDisk(nil), check the invariants
//		if !fd.Reached() {
//			break
//		}
//	}
//
// Nothing is really synced: what a killed process leaves is what the page cache holds, and a
// scenario with thousands of steps stays fast. What a power cut could leave is told by the
// record, in which every sync stands.
//
// The package keeps this invariant: after a crash no step changes anything.
package faultdisk

import (
	"errors"
	"fmt"
	"sync"

	"greatminds/internal/durable"
)

// ErrCrashed is the outcome of every step from the crash on.
var ErrCrashed = errors.New("faultdisk: the process has crashed")

// Fault is one planned disturbance. It is told each step before it happens, with its number,
// and answers nil or the error that replaces the step.
type Fault struct {
	// at is the first step number disturbed, to the last one.
	at, to int
	err    error
	// keep bytes of a write go through; -1 disturbs the step whole.
	keep  int
	crash bool
	// match, when set, chooses by step instead of by number; at counts the matches.
	match func(durable.Step) bool
	seen  int
}

const forever = int(^uint(0) >> 1)

// CrashAt ends the process before step n, counted from 1: that step and all later ones fail
// with ErrCrashed and change nothing.
func CrashAt(n int) Fault { return Fault{at: n, to: n, err: ErrCrashed, keep: -1, crash: true} }

// TearAt ends the process in the middle of step n: where that is a write, its first keep bytes
// reach the file.
func TearAt(n, keep int) Fault {
	return Fault{at: n, to: n, err: ErrCrashed, keep: keep, crash: true}
}

// FailAt makes step n alone fail with err, unperformed.
func FailAt(n int, err error) Fault { return Fault{at: n, to: n, err: err, keep: -1} }

// FailFrom makes step n and every later one fail with err, unperformed, until Heal.
func FailFrom(n int, err error) Fault { return Fault{at: n, to: forever, err: err, keep: -1} }

// ShortAt makes step n, where it is a write, stop after keep bytes with err; another kind of
// step fails whole.
func ShortAt(n, keep int, err error) Fault { return Fault{at: n, to: n, err: err, keep: keep} }

// On makes f count only the steps that match accepts: On(isRename, CrashAt(2)) crashes before
// the second rename.
func On(match func(durable.Step) bool, f Fault) Fault {
	f.match = match
	return f
}

// FaultDisk is the seam and the record.
type FaultDisk struct {
	disk *durable.Disk

	mu      sync.Mutex
	faults  []Fault
	crashed bool
	reached bool
	steps   []durable.Step
}

// New returns a fault disk with the given faults planned.
func New(faults ...Fault) *FaultDisk {
	f := &FaultDisk{faults: faults}
	f.disk = durable.NewDisk(f)
	return f
}

// Disk returns the Disk to run the scenario on.
func (f *FaultDisk) Disk() *durable.Disk { return f.disk }

// Crashed tells whether a planned crash has happened.
func (f *FaultDisk) Crashed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.crashed
}

// Reached tells whether any planned fault has happened.
func (f *FaultDisk) Reached() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reached
}

// Crash ends the process now: every later step fails with ErrCrashed and changes nothing.
func (f *FaultDisk) Crash() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.crashed = true
}

// Heal forgets the planned faults that are no crash: the disk works again.
func (f *FaultDisk) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = nil
}

// Plan adds a fault; its numbers count from the steps made so far, as Steps shows them.
func (f *FaultDisk) Plan(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, fault)
}

// Steps returns what happened so far: each performed step in order, with a copy of its data
// (of a short write, the bytes that went through).
func (f *FaultDisk) Steps() []durable.Step {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]durable.Step(nil), f.steps...)
}

// Before implements durable.Seam.
func (f *FaultDisk) Before(s durable.Step) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.crashed {
		return ErrCrashed
	}
	for i := range f.faults {
		if err := f.strike(&f.faults[i], s); err != nil {
			return err
		}
	}
	f.record(s, len(s.Data))
	if s.Op == durable.OpSync || s.Op == durable.OpSyncDir {
		return durable.ErrSkip
	}
	return nil
}

func (f *FaultDisk) strike(p *Fault, s durable.Step) error {
	n := s.Seq
	if p.match != nil {
		if !p.match(s) {
			return nil
		}
		p.seen++
		n = p.seen
	}
	if n < p.at || n > p.to {
		return nil
	}
	f.reached = true
	f.crashed = f.crashed || p.crash
	err := fmt.Errorf("step %d, %s %s%s: %w", s.Seq, s.Op, s.Path, s.Name, p.err)
	if p.keep >= 0 && s.Op == durable.OpWrite {
		f.record(s, min(p.keep, len(s.Data)))
		return &durable.PartialWrite{N: p.keep, Err: err}
	}
	return err
}

func (f *FaultDisk) record(s durable.Step, n int) {
	s.Data = append([]byte(nil), s.Data[:n]...)
	f.steps = append(f.steps, s)
}

// After implements durable.Seam. The outcome of a step that was under way when another one
// crashed is lost with the process.
func (f *FaultDisk) After(_ durable.Step, err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.crashed && err == nil {
		return ErrCrashed
	}
	return err
}
