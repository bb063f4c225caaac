package main

import (
	"fmt"
	"io"
	"math"
	"time"
)

// tally adds up what was done and found.
type tally struct {
	o        options
	began    time.Time
	rounds   int
	projects int
	wrong    int // projects in which something was found
	signals  map[target]map[blow]int
	merges   int
	tasks    int
	found    map[kind]int
	slowest  time.Duration
}

func newTally(o options, now time.Time) *tally {
	return &tally{o: o, began: now, signals: map[target]map[blow]int{}, found: map[kind]int{}}
}

// more tells whether a round is still to be begun; left how many there are from this one on.
func (t *tally) more(next int) bool {
	return t.left(next) > 0 && (t.o.seconds == 0 || time.Since(t.began).Seconds() < t.o.seconds)
}

func (t *tally) left(next int) int {
	if t.o.rounds == 0 {
		return math.MaxInt32
	}
	return t.o.first + t.o.rounds - next
}

// count enters a round.
func (t *tally) count(h hit) {
	t.rounds++
	if t.signals[h.target] == nil {
		t.signals[h.target] = map[blow]int{}
	}
	t.signals[h.target][h.blow]++
}

// add enters a project that is over.
func (t *tally) add(p *project) {
	t.projects++
	t.merges += p.merges
	t.tasks += p.tasks
	t.slowest = max(t.slowest, p.slowest)
	for _, f := range p.findings {
		t.found[f.kind]++
	}
}

func (t *tally) print(out io.Writer) {
	fmt.Fprintf(out, "seed %d: %d rounds in %d projects, %.1f s\n", t.o.seed, t.rounds, t.projects, time.Since(t.began).Seconds())
	for _, who := range targets {
		fmt.Fprintf(out, "  signals to %-8s", who)
		for _, b := range blows {
			if n := t.signals[who][b]; n > 0 {
				fmt.Fprintf(out, "  %s %d", b, n)
			}
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "  %d tasks, %d merges\n", t.tasks, t.merges)
	fmt.Fprintf(out, "  what a dead daemon left ended within %d ms\n", t.slowest.Milliseconds())
	fmt.Fprintf(out, "lost/twice/left = %d/%d/%d; stuck %d, unsound %d\n", t.found[lost], t.found[twice], t.found[left], t.found[stuck], t.found[unsound])
}
