package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
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
	// Bad are the runs of the bad agents, in the order of their ends.
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

// seen are the moments of one run, in seconds of the Unix epoch.
type seen struct {
	binding  string
	began    float64 // when the run's own clock began, as close as its events tell
	stages   map[string]float64
	prompted float64 // when the prompt was decided on, by the run's own clock
	asked    string
	answered float64
	ended    float64
	reason   string
}

// moments sorts the events by run, in the order of the claims.
func moments(events []event) []*seen {
	byRun := map[string]*seen{}
	var out []*seen
	for _, e := range events {
		s := byRun[e.RunID]
		if e.Kind == "claimed" {
			s = &seen{binding: e.Data.Binding, stages: map[string]float64{}}
			byRun[e.RunID] = s
			out = append(out, s)
		}
		if s != nil {
			s.see(e)
		}
	}
	for _, s := range out {
		if offset, ok := s.stages["first_prompt_started offset"]; ok {
			s.prompted = s.began + offset
		}
	}
	return out
}

func (s *seen) see(e event) {
	switch e.Kind {
	case "run_stage_observed":
		s.stages[e.Data.Stage], s.stages[e.Data.Stage+" offset"] = e.At, e.Data.Offset
		// An event's time is that of its transaction, which may have waited for its turn; the
		// least of the differences is the nearest to when the run's clock began.
		if began := e.At - e.Data.Offset; s.began == 0 || began < s.began {
			s.began = began
		}
	case "permission_requested":
		s.asked = e.Data.RequestID
	case "permission_answered":
		s.answered = e.At
	case "completed", "failed", "cancelled", "interrupted", "waiting_auth":
		s.ended, s.reason = e.At, e.Data.Reason
		if s.reason == "" {
			s.reason = e.Kind
		}
	}
}

// heard are the moments of one start of an agent, in seconds of its trace.
type heard struct{ prompt, answer float64 }

// readTrace reads when each start of an agent had its prompt and its answer.
func readTrace(path string) ([]heard, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var out []heard
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var l struct {
			T      float64 `json:"t"`
			Launch int     `json:"launch"`
			Kind   string  `json:"kind"`
			Method *string `json:"m"`
			ID     any     `json:"id"`
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for len(out) <= l.Launch {
			out = append(out, heard{})
		}
		switch {
		case l.Kind != "recv":
		case l.Method != nil && *l.Method == "session/prompt":
			out[l.Launch].prompt = l.T
		case l.Method == nil && l.ID == "p-q":
			out[l.Launch].answer = l.T
		}
	}
	return out, nil
}

// figures puts events and traces together. offset is what the wall clock is ahead of the traces'.
func (r *runner) figures(resident int64, offset time.Duration) (phase, error) {
	p := phase{Resident: resident}
	all := moments(r.events)
	var prompt, send, answer, told, whole []time.Duration
	for _, binding := range good.bindings {
		launches, err := readTrace(filepath.Join(r.state(binding), "trace.jsonl"))
		if err != nil {
			return p, err
		}
		n := 0 // runs of a binding come one after the other, and so do the starts of its agent
		for _, s := range all {
			if s.binding != binding || s.stages["process_recorded"] == 0 {
				continue
			}
			if n >= len(launches) && s.ended == 0 {
				break // ended with the phase, before its agent began
			}
			if n >= len(launches) {
				return p, fmt.Errorf("%s: more runs than the %d starts of its agent", binding, len(launches))
			}
			h := launches[n]
			n++
			if s.ended == 0 {
				continue // under way when the phase ended
			}
			if h.prompt == 0 || h.answer == 0 || s.answered == 0 || s.prompted == 0 {
				return p, fmt.Errorf("%s: start %d has no prompt or no answer on record", binding, n-1)
			}
			had, got := h.prompt+offset.Seconds(), h.answer+offset.Seconds()
			prompt = append(prompt, seconds(had-s.prompted))
			send = append(send, seconds(had-s.stages["first_prompt_started"]))
			answer = append(answer, seconds(got-s.answered))
			told = append(told, seconds(got-epoch(r.answered[s.asked].acknowledged)))
			whole = append(whole, seconds(got-epoch(r.answered[s.asked].called)))
		}
	}
	p.Prompt, p.Send = spreadOf(prompt), spreadOf(send)
	p.Answer, p.Heard, p.Whole = spreadOf(answer), spreadOf(told), spreadOf(whole)
	p.Bad = badRuns(all)
	return p, nil
}

func badRuns(all []*seen) []badRun {
	var out []badRun
	for _, s := range all {
		k := kindOf(s.binding)
		if k.from == "" || s.ended == 0 {
			continue
		}
		out = append(out, badRun{Kind: k.id, Reason: s.reason, Limit: k.limit, Graces: k.graces, Ended: seconds(s.ended - s.stages[k.from])})
	}
	return out
}

func epoch(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

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
