package runstore

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func depth[V any](n *pnode[V]) int {
	if n == nil {
		return 0
	}
	return 1 + max(depth(n.left), depth(n.right))
}

func asMap(m pmap[int]) (map[string]int, []string) {
	got, keys := map[string]int{}, []string{}
	m.each(func(k string, v int) bool { got[k] = v; keys = append(keys, k); return true })
	return got, keys
}

// Every version of a map goes on holding what it held, whatever becomes of later ones.
func TestPersistentMapAgainstAModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type version struct {
			m     pmap[int]
			model map[string]int
		}
		versions := []version{{model: map[string]int{}}}
		key := rapid.StringMatching(`[a-c]{1,3}`)
		rt.Repeat(map[string]func(*rapid.T){
			"set": func(rt *rapid.T) {
				old := rapid.SampledFrom(versions).Draw(rt, "version")
				k, v := key.Draw(rt, "key"), rapid.Int().Draw(rt, "value")
				model := maps.Clone(old.model)
				model[k] = v
				versions = append(versions, version{old.m.set(k, v), model})
			},
			"del": func(rt *rapid.T) {
				old := rapid.SampledFrom(versions).Draw(rt, "version")
				k := key.Draw(rt, "key")
				model := maps.Clone(old.model)
				delete(model, k)
				versions = append(versions, version{old.m.del(k), model})
			},
			"prefix": func(rt *rapid.T) {
				v := rapid.SampledFrom(versions).Draw(rt, "version")
				p := rapid.StringMatching(`[a-c]{0,2}`).Draw(rt, "prefix")
				var got, want []string
				v.m.prefix(p, func(k string, _ int) { got = append(got, k) })
				for _, k := range slices.Sorted(maps.Keys(v.model)) {
					if strings.HasPrefix(k, p) {
						want = append(want, k)
					}
				}
				if !slices.Equal(got, want) {
					rt.Fatalf("below %q: got %v, want %v", p, got, want)
				}
			},
			"": func(rt *rapid.T) {
				for i, v := range versions {
					got, keys := asMap(v.m)
					if !maps.Equal(got, v.model) || !slices.IsSorted(keys) || v.m.len() != len(v.model) {
						rt.Fatalf("version %d: got %v in order %v with length %d, want %v", i, got, keys, v.m.len(), v.model)
					}
				}
			},
		})
	})
}

func TestPersistentMapStaysShallow(t *testing.T) {
	const n = 20_000
	var up, down pmap[int]
	for i := range n {
		up = up.set(fmt.Sprintf("%06d", i), i)
		down = down.set(fmt.Sprintf("%06d", n-i), i)
	}
	for _, m := range []pmap[int]{up, down} {
		if got, bound := depth(m.root), int(4*math.Log2(n)); got > bound || m.len() != n {
			t.Errorf("%d keys in order: depth %d beyond %d, length %d", n, got, bound, m.len())
		}
	}
}
