package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// phase is what one phase came to.
type phase struct {
	// Prompt is the time of the good agents' prompts from the moment at which the session was ready
	// to the agent; Send the part after the reservation's transaction began.
	Prompt, Send spread
	// Answer is the time of an operator's answer to the agent from the beginning of the transaction
	// that records it, Heard from the operator's call having its answer, Whole from that call.
	Answer, Heard, Whole spread
	// Timer is how late a timer of this program was, Disk how long a line took that this program
	// appended to a file and synced: what the machine's other work does to anybody.
	Timer, Disk spread
	// Resident is the peak of the daemon's memory, in bytes.
	Resident int64
	// Bad are the runs of the bad agents, in the order of their claims.
	Bad []badRun
}

// badRun is one run of a bad agent.
type badRun struct {
	Kind, Reason string
	// Limit is its configured one, Graces what the ladder gives such an agent on top, Ended when the
	// run was over; all from the beginning of what is limited.
	Limit, Graces, Ended time.Duration
}

// late is how long after limit and graces the run ended.
func (b badRun) late() time.Duration { return b.Ended - b.Limit - b.Graces }

// report is both phases.
type report struct{ Alone, Beside phase }

// missed lists the bounds that were missed.
func (r *report) missed() []string {
	var out []string
	miss := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if grown := r.Beside.Prompt.P99 - r.Alone.Prompt.P99; grown >= maxGrowth {
		miss("the good agents' p99 grew by %s, bound %s", short(grown), maxGrowth)
	}
	for name, p := range map[string]phase{"alone": r.Alone, "beside the bad": r.Beside} {
		if p.Resident >= maxResident {
			miss("the daemon %s took %d MiB, bound %d", name, p.Resident>>20, maxResident>>20)
		}
	}
	// The two medians are promised of a daemon at work, not of one under attack.
	if r.Alone.Answer.P50 > maxAnswer {
		miss("an answer took %s to the agent in the median, bound %s", short(r.Alone.Answer.P50), maxAnswer)
	}
	if r.Alone.Send.P50 > maxSend {
		miss("an admitted prompt took %s to the agent in the median, bound %s", short(r.Alone.Send.P50), maxSend)
	}
	for _, b := range r.Beside.Bad {
		if b.Reason != "timeout" {
			miss("a run of the %s agent ended for %s, not for its time limit", b.Kind, b.Reason)
		}
		if late := b.late(); late > maxLate || late < -maxLate {
			miss("a run of the %s agent ended %s past its limit of %s and the %s of grace, bound %s", b.Kind, short(late), b.Limit, b.Graces, maxLate)
		}
	}
	slices.Sort(out)
	return out
}

// busy says why the machine was too busy to judge a bound of a few milliseconds; empty where it was not.
func (r *report) busy() string {
	const quietTimer, quietDisk = 5 * time.Millisecond, 2 * time.Millisecond
	for _, p := range []phase{r.Alone, r.Beside} {
		if p.Timer.P99 > quietTimer || p.Disk.P50 > quietDisk {
			return fmt.Sprintf("timers were up to %s late (p99), and a line took %s to the disk (p50)", short(p.Timer.P99), short(p.Disk.P50))
		}
	}
	return ""
}

func short(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}

// String is the report as markdown.
func (r *report) String() string {
	var b strings.Builder
	b.WriteString("| good agents | alone, p50 | p99 | max | beside the bad, p50 | p99 | max | samples |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, line := range []struct {
		name          string
		alone, beside spread
	}{
		{"session ready → agent has the prompt", r.Alone.Prompt, r.Beside.Prompt},
		{"of it, admission → agent", r.Alone.Send, r.Beside.Send},
		{"permission answered → agent has it", r.Alone.Answer, r.Beside.Answer},
		{"operator told that it counts → agent has it", r.Alone.Heard, r.Beside.Heard},
		{"operator's call → agent has the answer", r.Alone.Whole, r.Beside.Whole},
		{"for comparison: a timer's delay", r.Alone.Timer, r.Beside.Timer},
		{"for comparison: append and sync a line", r.Alone.Disk, r.Beside.Disk},
	} {
		a, w := line.alone, line.beside
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %d, %d |\n", line.name, short(a.P50), short(a.P99), short(a.Max), short(w.P50), short(w.P99), short(w.Max), a.Count, w.Count)
	}
	fmt.Fprintf(&b, "\nPeak memory of the daemon: %d MiB alone, %d MiB beside the bad.\n\n", r.Alone.Resident>>20, r.Beside.Resident>>20)
	b.WriteString("| bad agent | ended for | limit | grace | ended after | past both |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, bad := range r.Beside.Bad {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %.3f s | %s |\n", bad.Kind, bad.Reason, bad.Limit, bad.Graces, bad.Ended.Seconds(), short(bad.late()))
	}
	return b.String()
}

// json is the report for programs; times are nanoseconds.
func (r *report) json() []byte { return asJSON(r) }

// spread describes samples.
type spread struct {
	Count         int
	P50, P99, Max time.Duration
}

func spreadOf(all []time.Duration) spread {
	if len(all) == 0 {
		return spread{}
	}
	all = slices.Sorted(slices.Values(all))
	return spread{Count: len(all), P50: percentile(all, 50), P99: percentile(all, 99), Max: all[len(all)-1]}
}

// percentile is the smallest sample that at least p of a hundred are not above; all is sorted.
func percentile(all []time.Duration, p int) time.Duration {
	return all[(len(all)*p+99)/100-1]
}
