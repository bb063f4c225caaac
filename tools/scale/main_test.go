package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"
)

func TestWrongCommandLines(t *testing.T) {
	for _, args := range [][]string{{"--runs", "many"}, {"--runs", "-1"}, {"--times", "0"}, {"more"}, {"--original-runs", ""}, {"--nonsense"}} {
		var said bytes.Buffer
		if _, err := parse(args, &said); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
	o, err := parse([]string{"--runs", "0, 5", "--idle", "2s"}, &bytes.Buffer{})
	if err != nil || len(o.runs) != 2 || o.runs[1] != 5 || o.idle != 2*time.Second {
		t.Errorf("got %+v, %v", o, err)
	}
}

// The same history in the original's format: as many runs, each with its result and command, and
// nothing that only we know.
func TestTheHistoryOfTheOriginal(t *testing.T) {
	sample := project{dir: t.TempDir()}
	ctx := context.Background()
	if err := fillOurs(ctx, sample, 1); err != nil {
		t.Fatal(err)
	}
	theirs := project{dir: t.TempDir() + "/theirs"}
	if err := fillOriginal(ctx, theirs, 3); err != nil {
		t.Fatal(err)
	}
	var state struct {
		Version int
		Store   any
		Runs    map[string]struct{ ID, State string }
		Results map[string]struct {
			Envelope struct{ Result_id, Run_id string }
		}
		Commands map[string]struct{ ID, Run_id, Status string }
	}
	read(t, theirs.store()+"/state.json", &state)
	if state.Version != 1 || state.Store != nil || len(state.Runs) != 3 || len(state.Results) != 3 || len(state.Commands) != 3 {
		t.Fatalf("got %+v", state)
	}
	for id, run := range state.Runs {
		if run.ID != id || run.State != "completed" || state.Results[id].Envelope.Run_id != id || state.Commands[id].Run_id != id {
			t.Errorf("run %s: %+v", id, state)
		}
	}
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestOneRunMeasured(t *testing.T) {
	var out, said bytes.Buffer
	if err := run(context.Background(), []string{"--runs", "1", "--times", "2", "--idle", "1ms"}, &out, &said); err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	if !strings.Contains(out.String(), "| ours | 1 |") || !strings.Contains(out.String(), "voluntary context switches") {
		t.Errorf("got %s", out.String())
	}
}
