package ops_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"greatminds/internal/refusal"
	"greatminds/supervisor/control"
)

// Whatever requests come in whatever order, under whatever ids: an id does one thing once and
// keeps giving its first answer, and the store is what the requests that were done say.
func TestAnyOrderOfRequestsHasEachEffectOnce(t *testing.T) {
	w, round := newWorld(t), 0 // one store for all rounds, each with ids of its own
	rapid.Check(t, func(rt *rapid.T) {
		type done struct{ op, answer string }
		model, paused := map[string]done{}, w.env.Store.View().Paused()
		round++
		for range rapid.IntRange(1, 25).Draw(rt, "requests") {
			id := fmt.Sprint("round-", round, "-", rapid.IntRange(0, 5).Draw(rt, "id"))
			op := rapid.SampledFrom([]string{"run.pause", "run.resume"}).Draw(rt, "op")
			data, err := w.ask(operator, control.Call{Op: op, ID: id}, nil)
			prior, known := model[id]
			switch {
			case known && prior.op != op:
				if code(err) != refusal.CodeRequestReused {
					rt.Fatalf("%s under %s, which was %s: got %s %v", op, id, prior.op, data, err)
				}
			case err != nil:
				rt.Fatal(err)
			case known && string(data) != prior.answer:
				rt.Fatalf("%s again: got %s, want %s", id, data, prior.answer)
			case !known:
				model[id], paused = done{op, string(data)}, op == "run.pause"
			}
			if got := w.env.Store.View().Paused(); got != paused {
				rt.Fatalf("after %s under %s: paused is %v, want %v", op, id, got, paused)
			}
		}
	})
}
