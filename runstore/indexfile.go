package runstore

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
)

// An index file is a row of blocks of 4096 bytes. A block's last four bytes are the CRC-32C of
// its other bytes, of the file's identity and of the block's number (eight bytes), so that a block
// of another file or place does not pass for it. All numbers are little endian.
//
//	block 0      "GMINDEX1", number of keys, number of ends (8 bytes each), the file's identity (16 bytes)
//	key blocks   204 entries of 20 bytes, in ascending order: hash, segment, offset, length
//	end blocks   146 entries of 28 bytes, newest first: end, hash, segment, offset, length
//
// What is left of a block is zeros. Hash (8 bytes) is the head of the SHA-256 of a key; segment,
// offset and length (4 bytes each) are the place of the line that holds it; end (8 bytes) is when
// a run ended, in microseconds of the Unix epoch, and its hash that of the run's key.
const (
	blockSize     = 4096
	blockRoom     = blockSize - 4
	indexMagic    = "GMINDEX1"
	keySize       = 20
	endSize       = 28
	keysPerBlock  = blockRoom / keySize
	endsPerBlock  = blockRoom / endSize
	identityAt    = 24
	identitySize  = 16
	maxIndexCount = 1 << 32
)

// place is where a line stands in the history.
type place struct{ segment, offset, length uint32 }

func (p place) compare(o place) int {
	return cmp.Or(cmp.Compare(p.segment, o.segment), cmp.Compare(p.offset, o.offset))
}

// keyEntry says which line holds a key.
type keyEntry struct {
	hash uint64
	at   place
}

// endEntry says which line holds a finished run.
type endEntry struct {
	ended int64
	hash  uint64
	at    place
}

// newestFirst is the order in which finished runs are listed.
func (e endEntry) newestFirst(o endEntry) int {
	return cmp.Or(cmp.Compare(o.ended, e.ended), cmp.Compare(o.hash, e.hash))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func blockSum(block []byte, id identity, number int64) uint32 {
	sum := crc32.Update(crc32.Checksum(block[:blockRoom], castagnoli), castagnoli, id[:])
	return crc32.Update(sum, castagnoli, binary.LittleEndian.AppendUint64(nil, uint64(number)))
}

func sealBlock(block []byte, id identity, number int64) {
	binary.LittleEndian.PutUint32(block[blockRoom:], blockSum(block, id, number))
}

// identity tells one index file from every other.
type identity [identitySize]byte

func (l indexListed) identity() (id identity) {
	_, err := hex.Decode(id[:], []byte(l.ID))
	if err != nil {
		panic("runstore: an index without an identity is listed: " + l.ID)
	}
	return id
}

func blocksFor(count int64, perBlock int64) int64 { return (count + perBlock - 1) / perBlock }

func appendPlace(dst []byte, p place) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, p.segment)
	dst = binary.LittleEndian.AppendUint32(dst, p.offset)
	return binary.LittleEndian.AppendUint32(dst, p.length)
}

func placeAt(b []byte) place {
	return place{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])}
}

// historyFault is something in the history that cannot be read. A look-up that meets one has no
// answer; it never says "never seen".
type historyFault struct {
	path string
	off  int64
	what string
	// index tells that the index is at fault, which can be made again from the segments.
	index bool
}

func (f *historyFault) Error() string { return fmt.Sprintf("%s: byte %d: %s", f.path, f.off, f.what) }

// indexFile is one open index file. Its file stays open, and so readable, for as long as a View
// refers to it, also after a later one has replaced it.
type indexFile struct {
	listed indexListed
	path   string
	f      io.ReaderAt
	err    error // why it cannot be read
}

// openIndex opens an index file that the snapshot lists. What is wrong with it is told by every
// look-up in it.
func openIndex(dir string, listed indexListed) *indexFile {
	x := &indexFile{listed: listed, path: filepath.Join(dir, listed.Name)}
	f, err := os.Open(x.path)
	if err != nil {
		x.err = x.fault(0, "%v", err)
		return x
	}
	x.f = f
	if st, err := f.Stat(); err != nil || st.Size() != listed.size() {
		x.err = x.fault(0, "its length is not that of %d keys and %d ends", listed.Keys, listed.Ends)
		return x
	}
	x.err = x.checkHeader()
	return x
}

// size is how long an index file with that many entries is.
func (l indexListed) size() int64 {
	return blockSize * (1 + blocksFor(int64(l.Keys), keysPerBlock) + blocksFor(int64(l.Ends), endsPerBlock))
}

func (x *indexFile) fault(off int64, format string, args ...any) error {
	return &historyFault{path: x.path, off: off, what: fmt.Sprintf(format, args...), index: true}
}

func (x *indexFile) checkHeader() error {
	b, err := x.block(0)
	if err != nil {
		return err
	}
	keys, ends := binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])
	id := identity(b[identityAt:])
	if string(b[:8]) != indexMagic || keys != x.listed.Keys || ends != x.listed.Ends || id != x.listed.identity() {
		return x.fault(0, "this is not the index file that the snapshot lists")
	}
	return nil
}

// block reads and checks one block.
func (x *indexFile) block(number int64) ([]byte, error) {
	if x.err != nil {
		return nil, x.err
	}
	b := make([]byte, blockSize)
	if n, err := x.f.ReadAt(b, number*blockSize); n < blockSize {
		return nil, x.fault(number*blockSize, "%d of %d bytes could be read: %v", n, blockSize, err)
	}
	if binary.LittleEndian.Uint32(b[blockRoom:]) != blockSum(b, x.listed.identity(), number) {
		return nil, x.fault(number*blockSize, "the block's checksum does not fit")
	}
	return b, nil
}

func (x *indexFile) key(block []byte, i int) keyEntry {
	b := block[i*keySize:]
	return keyEntry{binary.LittleEndian.Uint64(b), placeAt(b[8:])}
}

// keysIn is how many keys the nth key block holds.
func (x *indexFile) keysIn(n int64) int {
	return int(min(keysPerBlock, int64(x.listed.Keys)-n*keysPerBlock))
}

// find returns the places of a hash, newest first.
func (x *indexFile) find(hash uint64) ([]place, error) {
	n, block, err := x.seek(hash)
	var found []place
	for ; err == nil && block != nil; n++ {
		for i := range x.keysIn(n) {
			switch e := x.key(block, i); {
			case e.hash == hash:
				found = append(found, e.at)
			case e.hash > hash:
				slices.Reverse(found)
				return found, nil
			}
		}
		if block = nil; (n+1)*keysPerBlock < int64(x.listed.Keys) {
			block, err = x.block(2 + n)
		}
	}
	slices.Reverse(found)
	return found, err
}

// seek returns the first key block that does not end below hash, nil where there is none. Hashes
// are spread evenly, so that a guess is a block or two off at most; equal ones, which a task with
// many runs has, are what halving is for.
func (x *indexFile) seek(hash uint64) (int64, []byte, error) {
	if x.err != nil {
		return 0, nil, x.err
	}
	low, high := int64(0), blocksFor(int64(x.listed.Keys), keysPerBlock)
	perBlock := math.Exp2(64) / math.Max(1, float64(high))
	guess := int64(float64(hash) / perBlock)
	var best []byte
	at := high
	for step := 0; low < high; step++ {
		if step > 3 {
			guess = low + (high-low)/2
		}
		guess = min(max(guess, low), high-1)
		b, err := x.block(1 + guess)
		if err != nil {
			return 0, nil, err
		}
		first, last := x.key(b, 0).hash, x.key(b, x.keysIn(guess)-1).hash
		switch {
		case last < hash:
			low = guess + 1
			guess += max(1, int64(float64(hash-last)/perBlock))
		case first < hash:
			return guess, b, nil
		default:
			at, best, high = guess, b, guess
			guess -= max(1, int64(float64(first-hash)/perBlock))
		}
	}
	return at, best, nil
}

// check reads every block.
func (x *indexFile) check() error {
	for n := range x.listed.size() / blockSize {
		if _, err := x.block(n); err != nil {
			return err
		}
	}
	return x.err
}

// indexName is the name of an index file, by its number.
func indexName(number uint32) string { return fmt.Sprintf("index-%06d.idx", number) }

func indexNumber(name string) (number uint32, ok bool) {
	_, err := fmt.Sscanf(name, "index-%d.idx", &number)
	return number, err == nil && indexName(number) == name
}
