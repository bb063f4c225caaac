package control

import (
	"cmp"
	"net"
	"slices"
	"sync"

	"greatminds/internal/execgate"
)

// maxConns bounds the open connections of one server; further callers wait in the kernel's queue.
// Beyond maxAgentConns each new one ends the connection of an agent that has been without a call for
// longest: who opens silent connections loses them, and an operator is heard at once.
const (
	maxConns      = 256
	maxAgentConns = 192
)

// places are the open connections of a listener.
type places struct {
	free chan struct{} // one token per open connection

	mu   sync.Mutex
	open map[*countedConn]bool
	// clock counts what connections do, so that they can be told by age.
	clock uint64
}

func newPlaces() *places {
	return &places{free: make(chan struct{}, maxConns), open: map[*countedConn]bool{}}
}

// enter gives a connection the place that a token was taken for.
func (p *places) enter(conn *net.UnixConn, peerOf func(*net.UnixConn) (execgate.Peer, error)) *countedConn {
	c := &countedConn{UnixConn: conn, places: p}
	// Reading the peer walks /proc, which would hold up the next caller. The first request of the
	// connection does it, once, unless places run short before.
	c.peer = sync.OnceValues(func() (execgate.Peer, error) { return peerOf(conn) })
	p.mu.Lock()
	p.clock++
	c.used, p.open[c] = p.clock, true
	crowded := len(p.open) > maxAgentConns
	p.mu.Unlock()
	if crowded {
		p.makeRoom(c)
	}
	return c
}

// makeRoom closes the connection of an agent, or of a caller that may be one, that has been without a
// call for longest. Operators keep theirs, and so does the one that has just come.
func (p *places) makeRoom(newest *countedConn) {
	for _, c := range p.silent() {
		if c == newest {
			continue
		}
		peer, err := c.peer()
		if err == nil && peer.Known && !peer.Descends {
			continue
		}
		p.mu.Lock()
		taken := p.open[c] && !c.busy
		if taken {
			delete(p.open, c)
		}
		p.mu.Unlock()
		if taken {
			_ = c.Close() // the server's own read of it ends, which is all that is wanted
			return
		}
	}
}

// silent lists the connections without a call in work, the one that was used longest ago first.
func (p *places) silent() []*countedConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []*countedConn
	for c := range p.open {
		if !c.busy {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b *countedConn) int { return cmp.Compare(a.used, b.used) })
	return list
}

// countedConn is an open connection. It gives its place back when it is closed.
type countedConn struct {
	*net.UnixConn
	places *places
	// peer is the process at the other end, read once.
	peer    func() (execgate.Peer, error)
	closing sync.Once

	// busy says that a call is in work, used when that changed last; the lock is that of places.
	busy bool
	used uint64
}

// work notes whether a call is in work on the connection.
func (c *countedConn) work(busy bool) {
	c.places.mu.Lock()
	defer c.places.mu.Unlock()
	c.places.clock++
	c.busy, c.used = busy, c.places.clock
}

// Close closes the connection and frees its place.
func (c *countedConn) Close() error {
	err := c.UnixConn.Close()
	c.closing.Do(func() {
		c.places.mu.Lock()
		delete(c.places.open, c)
		c.places.mu.Unlock()
		<-c.places.free
	})
	return err
}
