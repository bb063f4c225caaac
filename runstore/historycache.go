package runstore

import (
	ring "container/list"
	"sync"
)

// The cache is bounded: 1 MiB of bundles, by the length of their lines, and 4096 lists.
const (
	maxCachedBundles = 1 << 20
	maxCachedLists   = 4096
)

// historyCache keeps what was lately read of the history. A line never changes, so that a bundle
// is good for ever; the answer to a list is good for one version of the history.
type historyCache struct {
	bundles lru[place, *hot]
	lists   lru[uint64, placeList]
}

type placeList struct {
	version int
	places  []place
}

func newHistoryCache() *historyCache {
	return &historyCache{bundles: newLRU[place, *hot](maxCachedBundles), lists: newLRU[uint64, placeList](maxCachedLists)}
}

func (c *historyCache) bundle(p place) *hot {
	b, _ := c.bundles.get(p)
	return b
}

func (c *historyCache) keepBundle(p place, b *hot) { c.bundles.put(p, b, int(p.length)) }

func (c *historyCache) list(hash uint64, version int) ([]place, bool) {
	l, ok := c.lists.get(hash)
	return l.places, ok && l.version == version
}

func (c *historyCache) keepList(hash uint64, version int, places []place) {
	c.lists.put(hash, placeList{version, places}, 1+len(places))
}

// lru is a bounded map that forgets what was used longest ago. It is safe for concurrent use.
type lru[K comparable, V any] struct {
	mu    *sync.Mutex
	max   int
	held  *int
	order *ring.List // of *lruEntry, the latest first
	byKey map[K]*ring.Element
}

type lruEntry[K comparable, V any] struct {
	key    K
	val    V
	weight int
}

func newLRU[K comparable, V any](max int) lru[K, V] {
	return lru[K, V]{mu: new(sync.Mutex), max: max, held: new(int), order: ring.New(), byKey: map[K]*ring.Element{}}
}

func (l lru[K, V]) get(key K) (v V, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.byKey[key]
	if !ok {
		return v, false
	}
	l.order.MoveToFront(e)
	return e.Value.(*lruEntry[K, V]).val, true
}

func (l lru[K, V]) put(key K, val V, weight int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if old, there := l.byKey[key]; there {
		l.drop(old)
	}
	l.byKey[key] = l.order.PushFront(&lruEntry[K, V]{key, val, weight})
	*l.held += weight
	for *l.held > l.max && l.order.Len() > 1 {
		l.drop(l.order.Back())
	}
}

func (l lru[K, V]) drop(e *ring.Element) {
	entry := l.order.Remove(e).(*lruEntry[K, V])
	delete(l.byKey, entry.key)
	*l.held -= entry.weight
}
