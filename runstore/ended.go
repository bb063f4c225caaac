package runstore

import "encoding/binary"

// endCursor moves over the finished runs of one index file, newest first.
type endCursor struct {
	x     *indexFile
	at    int64 // the number of the next entry
	block []byte
	have  int64 // the number of block, among those of ends
	entry endEntry
	err   error
}

// from returns a cursor before the nth finished run.
func (x *indexFile) from(n int64) *endCursor { return &endCursor{x: x, at: n, have: -1} }

// next moves to the next entry, and tells whether there is one.
func (c *endCursor) next() bool {
	if c.err == nil && c.x.err != nil {
		c.err = c.x.err
	}
	if c.err != nil || c.at >= int64(c.x.listed.Ends) {
		return false
	}
	if n := c.at / endsPerBlock; n != c.have {
		first := 1 + blocksFor(int64(c.x.listed.Keys), keysPerBlock)
		if c.block, c.err = c.x.block(first + n); c.err != nil {
			return false
		}
		c.have = n
	}
	b := c.block[c.at%endsPerBlock*endSize:]
	c.entry = endEntry{int64(binary.LittleEndian.Uint64(b)), binary.LittleEndian.Uint64(b[8:]), placeAt(b[16:])}
	c.at++
	return true
}

// seekEnd returns a cursor before the first entry that is listed after e.
func (x *indexFile) seekEnd(e endEntry) *endCursor {
	low, high := int64(0), int64(x.listed.Ends)
	for low < high {
		mid := low + (high-low)/2
		c := x.from(mid)
		if !c.next() {
			return c
		}
		if c.entry.newestFirst(e) <= 0 {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return x.from(low)
}
