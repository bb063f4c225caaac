// Package proc names processes, finds their descendants, and holds them by pidfd.
//
// A pid means a process only while a pidfd of that process shows no end: everything read about a
// pid is believed only then (PinPID), and nothing is ever signalled or awaited by bare pid. A
// zombie counts as gone. What cannot be read is unknown, which is never taken for dead.
//
// It is shared by the daemon's side of package execgate and by keepers, and is kept small for
// them: see package entry.
package proc
