package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"greatminds/fixtures/agent"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWrongCalls(t *testing.T) {
	for _, args := range [][]string{{"--no-such"}, {"word"}, {"--samples", "0"}, {"--samples", "x"}, {"--bad", "x"}, {"--bad", "dead,x"}} {
		var out, errs bytes.Buffer
		if code := run(context.Background(), args, &out, &errs); code != 2 || out.Len() > 0 || errs.Len() == 0 {
			t.Errorf("%v: exit status %d, %q, %q", args, code, &out, &errs)
		}
	}
}

func TestSpread(t *testing.T) {
	var all []time.Duration
	for i := 200; i > 0; i-- {
		all = append(all, time.Duration(i))
	}
	if got, want := spreadOf(all), (spread{Count: 200, P50: 100, P99: 198, Max: 200}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := spreadOf([]time.Duration{7}), (spread{1, 7, 7, 7}); got != want || spreadOf(nil) != (spread{}) {
		t.Errorf("one sample: got %+v; none: %+v", got, spreadOf(nil))
	}
}

func TestScriptsAreUnderstood(t *testing.T) {
	for _, k := range kinds() {
		if _, err := agent.Parse(k.id, asJSON(step{"version": 1, "launches": []step{{"steps": k.steps}}})); err != nil {
			t.Error(err)
		}
	}
}

// stage is an event of a run's own clock, which began at second 100.
func stage(run, name string, at, offset float64) event {
	e := event{At: at, Kind: "run_stage_observed", RunID: run}
	e.Data.Stage, e.Data.Offset = name, offset
	return e
}

func other(run, kind, binding, request, reason string, at float64) event {
	e := event{At: at, Kind: kind, RunID: run}
	e.Data.Binding, e.Data.RequestID, e.Data.Reason = binding, request, reason
	return e
}

// The times come from the events of the daemon and the traces of the agents, and a transaction that
// waited for its turn belongs to a prompt's time.
func TestFigures(t *testing.T) {
	p := &project{folder: t.TempDir()}
	for _, b := range good.bindings {
		if err := os.MkdirAll(p.state(b), 0o755); err != nil {
			t.Fatal(err)
		}
		text := ""
		if b == "good-1" {
			text = `{"t":50.5,"launch":0,"kind":"recv","m":"session/prompt","id":3}
{"t":51.75,"launch":0,"kind":"recv","m":null,"id":"p-q"}
{"t":52,"launch":0,"kind":"answer","to":"q"}
{"t":60,"launch":1,"kind":"start"}
`
		}
		if err := os.WriteFile(filepath.Join(p.state(b), "trace.jsonl"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := &runner{project: p, answered: map[string]answered{"r": {time.Unix(101, 0), time.Unix(101, 5e8)}}, events: []event{
		other("a", "claimed", "good-1", "", "", 100), stage("a", "process_recorded", 100.125, 0.125), stage("a", "first_prompt_started", 100.375, 0.25),
		other("a", "permission_requested", "", "r", "", 100.75), other("a", "permission_answered", "", "r", "", 101.25),
		other("a", "completed", "", "", "", 102),
		other("b", "claimed", "good-1", "", "", 103), stage("b", "process_recorded", 103.25, 0.25),
		other("c", "claimed", "flooding", "", "", 100), stage("c", "process_recorded", 100, 0), stage("c", "first_prompt_started", 101, 1),
		other("c", "failed", "", "", "timeout", 107.5),
		other("d", "claimed", "dead", "", "", 100), stage("d", "process_recorded", 100.5, 0.5), other("d", "failed", "", "", "transport_failure", 110),
	}}
	got, err := r.figures(7, 50*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ got, want time.Duration }{
		"prompt": {got.Prompt.P50, 250 * time.Millisecond}, "send": {got.Send.P50, 125 * time.Millisecond},
		"answer": {got.Answer.P50, 500 * time.Millisecond}, "heard": {got.Heard.P50, 250 * time.Millisecond}, "whole": {got.Whole.P50, 750 * time.Millisecond},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %s, want %s", name, c.got, c.want)
		}
	}
	want := []badRun{{"flooding", "timeout", turnLimit, 0, 6500 * time.Millisecond}, {"dead", "transport_failure", requestLimit, 0, 9500 * time.Millisecond}}
	if !slices.Equal(got.Bad, want) || got.Resident != 7 || got.Prompt.Count != 1 {
		t.Errorf("got %+v, want the bad runs %+v", got, want)
	}
	missed := fmt.Sprint((&report{Alone: got, Beside: got}).missed())
	for _, word := range []string{"an answer took 500.00 ms", "prompt took 125.00 ms", "dead agent ended for transport_failure", "dead agent ended -20500.00 ms past"} {
		if !strings.Contains(missed, word) {
			t.Errorf("missed %s, want %q in it", missed, word)
		}
	}
	if strings.Contains(missed, "flooding") || strings.Contains(missed, "p99") {
		t.Errorf("missed %s, want nothing of the flooding agent nor of the growth", missed)
	}
}

func TestBounds(t *testing.T) {
	fine := report{Alone: phase{Resident: maxResident - 1}, Beside: phase{Prompt: spread{P99: maxGrowth - 1}, Bad: []badRun{{"x", "timeout", 6, 5, maxLate + 11}}}}
	if got := fine.missed(); len(got) > 0 {
		t.Errorf("missed %q, want nothing", got)
	}
	for word, change := range map[string]func(*report){
		"grew":           func(r *report) { r.Beside.Prompt.P99++ },
		"took 150 MiB":   func(r *report) { r.Beside.Resident = maxResident },
		"answer took":    func(r *report) { r.Alone.Answer.P50 = maxAnswer + 1 },
		"admitted":       func(r *report) { r.Alone.Send.P50 = maxSend + 1 },
		"past its limit": func(r *report) { r.Beside.Bad = []badRun{{"x", "timeout", 6, 5, maxLate + 12}} },
	} {
		r := fine
		change(&r)
		if got := r.missed(); len(got) != 1 || !strings.Contains(got[0], word) {
			t.Errorf("missed %q, want one with %q", got, word)
		}
	}
}

func TestBusyMachine(t *testing.T) {
	quiet := phase{Timer: spread{P99: time.Millisecond}, Disk: spread{P50: time.Millisecond}}
	if why := (&report{Alone: quiet, Beside: quiet}).busy(); why != "" {
		t.Errorf("a quiet machine is busy: %s", why)
	}
	for _, p := range []phase{{Timer: spread{P99: time.Second}}, {Disk: spread{P50: time.Second}}} {
		if why := (&report{Alone: quiet, Beside: p}).busy(); !strings.Contains(why, "1000.00 ms") {
			t.Errorf("%+v: %q", p, why)
		}
	}
}

// A real daemon and its two good agents.
func TestAlone(t *testing.T) {
	built, err := build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p, err := measurePhase(t.Context(), built, filepath.Join(t.TempDir(), "alone"), 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]spread{"prompt": p.Prompt, "send": p.Send, "answer": p.Answer, "whole": p.Whole} {
		if s.Count < 3 || s.P50 <= 0 || s.Max > time.Minute {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if p.Resident < 1<<20 || len(p.Bad) != 0 || p.Timer.Count == 0 || p.Disk.Count != p.Timer.Count {
		t.Errorf("%+v", p)
	}
}
