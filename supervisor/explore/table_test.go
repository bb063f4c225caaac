package explore

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
)

// results gathers what was tried, by the names of scenarios.
var results struct {
	sync.Mutex
	tried  map[string]explored
	faults map[string]int
	kills  map[string][2]int
}

// E-153 E-165 E-168 E-201 E-202 E-203 E-214 E-240
func TestStopsAndPowerCuts(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			note(&results.tried, s.name, s.explore(t))
		})
	}
}

// E-165 E-167 E-646
func TestFaults(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) { note(&results.faults, s.name, s.sweeps(t)) })
	}
}

// E-153 E-165
func TestAPowerCutAfterAKill(t *testing.T) {
	for _, s := range killedTwice {
		t.Run(s.name, func(t *testing.T) {
			kills, images := s.twice(t)
			note(&results.kills, s.name, [2]int{kills, images})
		})
	}
}

var killedTwice = []scenario{blocked, planned}

func note[V any](m *map[string]V, name string, v V) {
	results.Lock()
	defer results.Unlock()
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[name] = v
}

const (
	docs  = "../../docs/crash-testing.md"
	begin = "<!-- table -->\n"
	end   = "<!-- end -->\n"
)

// rows are the table's rows, a name and its numbers each.
func rows() (all [][]any) {
	for _, s := range scenarios {
		r := results.tried[s.name]
		all = append(all, []any{s.name, r.steps, r.stops, r.images, r.ends, results.faults[s.name]})
	}
	for _, s := range killedTwice {
		k := results.kills[s.name]
		all = append(all, []any{s.name + ", killed and cut", "", k[0], k[1], "", ""})
	}
	return all
}

func table() string {
	var b strings.Builder
	b.WriteString("| story | steps | stops | images | ends | faults |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, r := range rows() {
		fmt.Fprintf(&b, "| %v | %v | %v | %v | %v | %v |\n", r...)
	}
	return b.String()
}

// The documentation says what was tried. It needs the tests above to have been run.
func TestTheTable(t *testing.T) {
	if stride > 1 || len(results.tried) < len(scenarios) || len(results.faults) < len(scenarios) || len(results.kills) < len(killedTwice) {
		t.Skip("the table is of a whole run")
	}
	t.Logf("\n%s", table())
	data, err := os.ReadFile(docs)
	must(t, err)
	before, rest, ok1 := strings.Cut(string(data), begin)
	old, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no place for the table", docs)
	}
	if *update {
		must(t, os.WriteFile(docs, []byte(before+begin+table()+end+after), 0o644))
		return
	}
	have, want := strings.Split(old, "\n"), strings.Split(table(), "\n")
	if len(have) != len(want) {
		t.Fatalf("%s has %d lines, the run %d: write it anew with -update", docs, len(have), len(want))
	}
	for i := range want {
		if !alike(strings.Split(have[i], "|"), strings.Split(want[i], "|")) {
			t.Errorf("%s says\n%s\nand the run\n%s\nwrite it anew with -update", docs, have[i], want[i])
		}
	}
}

// alike compares two rows: words as they are, numbers within a tenth. How steps of several
// goroutines and of git fall together differs a little from run to run.
func alike(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		var m, n int
		_, errA := fmt.Sscan(a[i], &m)
		_, errB := fmt.Sscan(b[i], &n)
		if errA != nil || errB != nil {
			if strings.TrimSpace(a[i]) != strings.TrimSpace(b[i]) {
				return false
			}
		} else if d := m - n; d*d*100 > m*m+100 {
			return false
		}
	}
	return true
}
