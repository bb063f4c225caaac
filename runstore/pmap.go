package runstore

import "hash/maphash"

// pmap is an immutable ordered map with string keys: set and del return a new map that shares
// all but a path of about log2(n) nodes with the old one. That is what makes a View one
// pointer, and a commit independent of how many runs there have been.
//
// It is a treap: a search tree by key that is a heap by a hash of the key, which keeps it
// balanced whatever the order of insertions. The zero value is empty.
type pmap[V any] struct{ root *pnode[V] }

type pnode[V any] struct {
	key         string
	val         V
	rank        uint64
	size        int
	left, right *pnode[V]
}

var rankSeed = maphash.MakeSeed()

func (n *pnode[V]) count() int {
	if n == nil {
		return 0
	}
	return n.size
}

func (n *pnode[V]) with(left, right *pnode[V]) *pnode[V] {
	c := *n
	c.left, c.right = left, right
	c.size = 1 + left.count() + right.count()
	return &c
}

func (m pmap[V]) len() int { return m.root.count() }

func (m pmap[V]) get(key string) (v V, ok bool) {
	for n := m.root; n != nil; {
		switch {
		case key < n.key:
			n = n.left
		case key > n.key:
			n = n.right
		default:
			return n.val, true
		}
	}
	return v, false
}

func (m pmap[V]) set(key string, val V) pmap[V] {
	rank := maphash.String(rankSeed, key)
	return pmap[V]{setNode(m.root, &pnode[V]{key: key, val: val, rank: rank, size: 1})}
}

func setNode[V any](n, add *pnode[V]) *pnode[V] {
	switch {
	case n == nil:
		return add
	case add.key == n.key:
		return add.with(n.left, n.right)
	case add.rank > n.rank:
		return add.with(splitNode(n, add.key))
	case add.key < n.key:
		return n.with(setNode(n.left, add), n.right)
	}
	return n.with(n.left, setNode(n.right, add))
}

// splitNode returns what is below key and what is above it; key itself, where it is in n,
// falls away, for set replaces it.
func splitNode[V any](n *pnode[V], key string) (low, high *pnode[V]) {
	switch {
	case n == nil:
		return nil, nil
	case key == n.key:
		return n.left, n.right
	case key < n.key:
		low, high = splitNode(n.left, key)
		return low, n.with(high, n.right)
	}
	low, high = splitNode(n.right, key)
	return n.with(n.left, low), high
}

func (m pmap[V]) del(key string) pmap[V] {
	if _, ok := m.get(key); !ok {
		return m
	}
	return pmap[V]{delNode(m.root, key)}
}

func delNode[V any](n *pnode[V], key string) *pnode[V] {
	switch {
	case key < n.key:
		return n.with(delNode(n.left, key), n.right)
	case key > n.key:
		return n.with(n.left, delNode(n.right, key))
	}
	return joinNodes(n.left, n.right)
}

func joinNodes[V any](low, high *pnode[V]) *pnode[V] {
	switch {
	case low == nil:
		return high
	case high == nil:
		return low
	case low.rank > high.rank:
		return low.with(low.left, joinNodes(low.right, high))
	}
	return high.with(joinNodes(low, high.left), high.right)
}

// each calls f for every entry in order of key, until f returns false.
func (m pmap[V]) each(f func(key string, val V) bool) { eachNode(m.root, "", f) }

// prefix calls f for every entry whose key begins with p, in order of key.
func (m pmap[V]) prefix(p string, f func(key string, val V)) {
	eachNode(m.root, p, func(key string, val V) bool {
		if len(key) < len(p) || key[:len(p)] != p {
			return false
		}
		f(key, val)
		return true
	})
}

func eachNode[V any](n *pnode[V], from string, f func(string, V) bool) bool {
	if n == nil {
		return true
	}
	if n.key < from {
		return eachNode(n.right, from, f)
	}
	return eachNode(n.left, from, f) && f(n.key, n.val) && eachNode(n.right, from, f)
}

// values returns all values in order of key.
func (m pmap[V]) values() []V {
	all := make([]V, 0, m.len())
	m.each(func(_ string, v V) bool { all = append(all, v); return true })
	return all
}
