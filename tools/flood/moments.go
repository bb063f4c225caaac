package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// seen are the moments of one run, in seconds of the Unix epoch.
type seen struct {
	binding  string
	began    float64            // when the run's own clock began, as close as its events tell
	stages   map[string]float64 // when each was observed
	offsets  map[string]float64 // and when by the run's own clock, in seconds since its beginning
	prompted float64            // when the prompt was decided on, by the run's own clock
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
			s = &seen{binding: e.Data.Binding, stages: map[string]float64{}, offsets: map[string]float64{}}
			byRun[e.RunID] = s
			out = append(out, s)
		}
		if s != nil {
			s.see(e)
		}
	}
	for _, s := range out {
		if offset, ok := s.offsets["first_prompt_started"]; ok {
			s.prompted = s.began + offset
		}
	}
	return out
}

func (s *seen) see(e event) {
	switch e.Kind {
	case "run_stage_observed":
		s.stages[e.Data.Stage], s.offsets[e.Data.Stage] = e.At, e.Data.Offset
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

// timings are the samples of a phase: one of each from every finished run of a good agent.
type timings struct{ prompt, send, answer, heard, whole []time.Duration }

// figures puts events and traces together. offset is what the wall clock is ahead of the traces'.
func (r *runner) figures(resident int64, offset time.Duration) (phase, error) {
	all := moments(r.events)
	var t timings
	for _, binding := range good.bindings {
		launches, err := readTrace(filepath.Join(r.state(binding), "trace.jsonl"))
		if err == nil {
			err = r.time(&t, binding, all, launches, offset.Seconds())
		}
		if err != nil {
			return phase{}, err
		}
	}
	return phase{Resident: resident, Prompt: spreadOf(t.prompt), Send: spreadOf(t.send), Answer: spreadOf(t.answer),
		Heard: spreadOf(t.heard), Whole: spreadOf(t.whole), Bad: badRuns(all)}, nil
}

// time adds the samples of one binding. Its runs come one after the other, and so do the starts of its
// agent.
func (r *runner) time(t *timings, binding string, all []*seen, launches []heard, offset float64) error {
	n := 0
	for _, s := range all {
		if s.binding != binding || s.stages["process_recorded"] == 0 {
			continue
		}
		if n >= len(launches) && s.ended == 0 {
			return nil // ended with the phase, before its agent began
		}
		if n >= len(launches) {
			return fmt.Errorf("%s: more runs than the %d starts of its agent", binding, len(launches))
		}
		h := launches[n]
		n++
		if s.ended == 0 {
			continue // under way when the phase ended
		}
		if h.prompt == 0 || h.answer == 0 || s.answered == 0 || s.prompted == 0 {
			return fmt.Errorf("%s: start %d has no prompt or no answer on record", binding, n-1)
		}
		had, got := h.prompt+offset, h.answer+offset
		t.prompt = append(t.prompt, seconds(had-s.prompted))
		t.send = append(t.send, seconds(had-s.stages["first_prompt_started"]))
		t.answer = append(t.answer, seconds(got-s.answered))
		t.heard = append(t.heard, seconds(got-epoch(r.answered[s.asked].acknowledged)))
		t.whole = append(t.whole, seconds(got-epoch(r.answered[s.asked].called)))
	}
	return nil
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
