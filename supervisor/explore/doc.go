// Package explore is the crash explorer. It has tests only.
//
// A scenario is a plain function over the public operations of the rooms, which goes on from
// whatever state it finds: what an operator and a daemon would do next. For each of them the
// tests
//
//   - stop it before and after every durable step, as a killed process does, start again, hold
//     the promises against what is on record, and go on to the end;
//   - do the same with every file image that a power cut can leave (package powercut);
//   - let every durable step fail, with a full disk, a read-only one, an I/O error and a short
//     write: what fails says so clearly and leaves nothing half done, and works once the fault
//     is gone.
//
// Recovery is the daemon's own (supervisor.InProcess), git and the configured command are real,
// the agent is the scenario. What is promised stands in package audit. The numbers of steps and
// images stand in docs/crash-testing.md, which `go test ./supervisor/explore -update` writes.
package explore
