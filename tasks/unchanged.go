package tasks

import (
	"io/fs"
	"syscall"
	"time"
)

// racyAge is how long a file must have been left alone before its stamp is trusted: two changes
// within one tick of the kernel's clock leave the same stamp.
const racyAge = time.Second

// maxReadings bounds how many files a tree remembers.
const maxReadings = 4096

// fileStamp tells two states of a file apart without reading it. The kernel moves ctime with every
// change of bytes, name or mode, and no program can set it back.
type fileStamp struct {
	device, inode uint64
	size          int64
	changed       syscall.Timespec
}

func stampOf(info fs.FileInfo) fileStamp {
	st := info.Sys().(*syscall.Stat_t)
	return fileStamp{device: uint64(st.Dev), inode: st.Ino, size: st.Size, changed: st.Ctim}
}

// readings remembers what task files held, so that looking at a queue costs a stat for each file
// that nobody has touched. The tree's lock guards it.
type readings map[string]reading

type reading struct {
	stamp fileStamp
	found Found
}

// get returns what an untouched file holds.
func (r readings) get(file string, now fileStamp) (Found, bool) {
	known, ok := r[file]
	return known.found, ok && known.stamp == now
}

// put remembers what a file held that bore the stamp before it was read, at begun. A file that
// could not be read is tried again each time.
func (r readings) put(f Found, s fileStamp, begun time.Time) {
	if f.Revision == "" || begun.Sub(time.Unix(s.changed.Unix())) < racyAge {
		delete(r, f.File)
		return
	}
	if _, known := r[f.File]; !known && len(r) >= maxReadings {
		clear(r) // the next sweep fills it again
	}
	r[f.File] = reading{s, f}
}
