// Package powercut builds the file images that a power cut can leave, from the durable steps of
// a scenario. It is for tests.
//
// A Recorder is the seam of the Disk that the scenario runs on. It keeps every step with a copy
// of its data, and what other programs changed meanwhile. Images then walks through the
// recording and calls back with every image that could be found on the disk at each moment:
// before the first step, after each step, and after each change from outside.
//
// # The model
//
// A file is an inode with bytes, and a folder maps names to inodes. There are two kinds of
// changes, each in effect for every reader at once, and each safe from a power cut later:
//
//   - bytes: a write or truncate is safe after a sync of that inode, under whatever name;
//   - names: a create, mkdir, link, unlink, rename or move is safe after a sync of the folder,
//     and one between two folders after the syncs of both. It is atomic: in effect wholly or
//     not at all. A name that is safe takes with it the earlier changes of the same name.
//
// A power cut keeps everything that is safe and, of the rest, any subset in the order in which
// it was made: file systems may write a change earlier than asked, and in another order.
// Syncing a file does not make its name safe, although most file systems do that too.
//
// Up to ten changes that are not safe, all their subsets are built. Beyond that: all and none,
// each one and each two lost, every prefix, and a thousand seeded samples. Besides, every write
// that is not safe is cut and, in other images, zeroed: after its first byte, in its middle, and
// at the last block boundary within it, everything else being there.
//
// What changed outside of the steps counts as safe when it is seen, which is at the next step or
// at the end of the named step (Disk.Step) it was made in: git calls ask git to sync what it
// writes. So a call that is cut short inside git is not among the images.
//
// Steps of several goroutines count in the order in which they end; what changed from outside
// meanwhile is seen when none is under way.
//
// The invariant kept: the image in which nothing is lost equals the folder as it was then.
package powercut
