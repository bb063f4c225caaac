// Package clock is the wall clock of a process, and the one seam by which tests move it.
//
// The invariant kept: the released program's clock is the machine's. Only a binary built with
// `-tags testclock`, which is never released, adds the seconds that stand in the file named by
// GREATMINDS_TEST_CLOCK to the wall clock, as an operator or a time server might set it. The
// monotonic reading that each time carries is left as it is, so that the differences of two times
// of one process do not jump, exactly as with the kernel's own clock.
//
// How the rest of the program uses time: what is recorded, and deadlines that outlive the process,
// are wall time and come from here; how long something took, and deadlines of a live process, are
// differences of times of one process, contexts and timers, which are monotonic.
// Spec: DESIGN "Time is injected".
package clock

import "time"

// Env names the file that holds the shift of a test clock: whole seconds, which may be negative. A
// file that is missing, empty or holds anything else shifts nothing.
const Env = "GREATMINDS_TEST_CLOCK"

// Wall returns the clock of this process. getenv reads its environment; it is asked once.
func Wall(getenv func(string) string) func() time.Time { return wall(getenv) }
