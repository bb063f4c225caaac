package main

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// The same seed draws the same rounds and projects, whatever was drawn before; another seed others.
func TestASeedDrawsTheSameRounds(t *testing.T) {
	same := 0
	for n := 1; n <= 50; n++ {
		first, project := draw(7, n), drawProject(7, n)
		draw(7, n+1) // drawn in between, and of no matter
		if draw(7, n) != first || !reflect.DeepEqual(drawProject(7, n), project) {
			t.Fatalf("round %d is drawn in two ways", n)
		}
		if draw(7, n).when == draw(8, n).when {
			same++
		}
	}
	if same > 5 {
		t.Errorf("two seeds share %d of 50 moments", same)
	}
}

// The rounds of each accepted batch reach every target with every blow, and every kind of moment.
func TestABatchReachesEverything(t *testing.T) {
	for seed := uint64(1); seed <= 4; seed++ {
		seen := map[string]int{}
		for n := 1; n <= 500; n++ {
			p := draw(seed, n)
			seen[fmt.Sprintf("%s %s", p.blow, p.target)]++
			seen["at "+p.when.event]++
			if p.target == aCall && p.call == "" {
				seen["an agent's call"]++
			} else if p.target == aCall {
				seen["call "+p.call]++
			}
			if p.again > 0 {
				seen["again"]++
			}
			if p.offline {
				seen["offline "+string(p.target)]++
			}
			if p.when.nth < 1 && p.when.event != atOnce || p.when.delay < 0 || p.hold <= 0 {
				t.Fatalf("seed %d: round %d cannot be played: %+v", seed, n, p)
			}
		}
		var wanted []string
		for _, who := range targets {
			wanted = append(wanted, "KILL "+string(who), "STOP+CONT "+string(who))
		}
		wanted = append(wanted, "STOP, daemon KILL daemon", "STOP, daemon KILL keeper", "TERM, KILL daemon", "again", "an agent's call", "offline daemon", "offline cli")
		for _, event := range []string{atOnce, storeGrew, journalGrew, taskMoved, agentSpoke, commandRan, gitMoved} {
			wanted = append(wanted, "at "+event)
		}
		for _, call := range calls {
			if seen["call "+call] == 0 {
				t.Errorf("seed %d: the call %s never comes", seed, call)
			}
		}
		for _, what := range wanted {
			if seen[what] < 3 {
				t.Errorf("seed %d: %s comes %d times in 500 rounds", seed, what, seen[what])
			}
		}
	}
}

func TestTheCommandLineIsReadStrictly(t *testing.T) {
	o, err := parse([]string{"--rounds", "5", "--seconds", "1.5", "--seed", "9", "--keep", "-v"}, io.Discard)
	if err != nil || o.rounds != 5 || o.seconds != 1.5 || o.seed != 9 || !o.keep || !o.verbose || o.first != 1 {
		t.Errorf("got %+v, %v", o, err)
	}
	for _, bad := range [][]string{{}, {"--rounds", "-1"}, {"--rounds", "1", "x"}, {"--rounds", "x"}, {"--rounds", "1", "--first", "0"}} {
		if _, err := parse(bad, io.Discard); err == nil {
			t.Errorf("%v is accepted", bad)
		}
		var stderr bytes.Buffer
		if status := run(t.Context(), bad, io.Discard, &stderr); status != 2 || stderr.Len() == 0 {
			t.Errorf("%v: status %d, %q", bad, status, stderr.String())
		}
	}
}

func TestATallyKnowsItsEnd(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		o    options
		next int
		more bool
		left int
	}{
		{options{rounds: 20, first: 1}, 1, true, 20},
		{options{rounds: 20, first: 1}, 21, false, 0},
		{options{rounds: 1, first: 7}, 7, true, 1},
		{options{seconds: 1000, first: 1}, 900, true, 1<<31 - 1},
	} {
		tl := newTally(c.o, now)
		if tl.more(c.next) != c.more || tl.left(c.next) != c.left {
			t.Errorf("%+v at %d: more %v, left %d", c.o, c.next, tl.more(c.next), tl.left(c.next))
		}
	}
	if newTally(options{seconds: 1, first: 1}, now.Add(-2*time.Second)).more(1) {
		t.Error("the time is over and there is more")
	}
}

// Each form in which the project names a way out is understood; what is not is told.
func TestRemediesAreRead(t *testing.T) {
	for text, want := range map[string]string{
		"greatminds run retry abc":                                                         "run retry abc",
		"answer in the task, then greatminds run retry abc":                                "run retry abc",
		"greatminds run repair --operation x-result, or with --abandon --reason TEXT":      "run repair --operation x-result",
		"remove /a/index.lock; `greatminds run repair --operation x-result` looks at once": "run repair --operation x-result",
		"look at its effects, then greatminds run command-resolve check-1 --reason TEXT":   "run command-resolve check-1 --reason looked at it",
		"greatminds run resume": "run resume",
		"answer the question: greatminds run permission REQUEST_ID --option OPTION_ID": "",
		"plan it: greatminds plan 0001-x":                                              "",
		"commit, stash or move these files away; the merge then goes on by itself":     "",
	} {
		acts, unknown := remedies(text, 0)
		var got []string
		for _, a := range acts {
			got = append(got, strings.Join(a.args, " "))
		}
		if strings.Join(got, "; ") != want || len(unknown) > 0 {
			t.Errorf("%q\ngot  %q, unknown %q\nwant %q", text, got, unknown, want)
		}
	}
	if acts, _ := remedies("greatminds run repair --operation x-result, or with --abandon --reason TEXT", 1); !slices.Contains(acts[0].args, "--abandon") {
		t.Errorf("after a repair that did not help: %v", acts[0].args)
	}
	if _, unknown := remedies("greatminds fly away", 0); len(unknown) != 1 {
		t.Errorf("unknown remedies: %q", unknown)
	}
	if m := namedLock.FindStringSubmatch("if none runs in /a/b, remove /a/b/.git/index.lock; then go on"); m == nil || m[1] != "/a/b/.git/index.lock" {
		t.Errorf("named lock: %q", m)
	}
}
