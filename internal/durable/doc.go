// Package durable is the one door through which durable bytes reach the disk.
//
// A Disk offers complete files (Replace, Create), moves, removals, folders, append logs and
// kernel locks. What holds when a call returns nil: the change is on the disk, its folder
// entry included, as far as fsync and fdatasync tell the truth. What holds when it returns an
// error: the change is not in effect, unless the error is ErrUncertain or ErrPoisoned, in
// which case it may be. What holds after a crash at any moment: each file is whole, either as
// before or as after, but for the tail of a Log and for stray temporary files.
//
// The steps of each call, in order, one Step each:
//
//	Replace   create ".BASE.RANDOM.tmp" beside the file, write, sync, rename over it, syncdir
//	Publish   the same without both syncs: nothing of it is acknowledged
//	Create    the same with a move (RENAME_NOREPLACE) in place of the rename
//	Rename    move (RENAME_NOREPLACE), syncdir of the new folder, syncdir of the old one
//	Link      link to ".BASE.RANDOM.tmp", rename over; not synced
//	Remove    unlink, syncdir
//	Discard   unlink; not synced
//	MkdirAll  mkdir, syncdir of the parent; for each missing folder from the top; for one that is
//	          there syncdir of the parent alone, once in the life of a Disk: whoever made it may have
//	          been killed before its sync
//	Settle    sync of the file, syncdir
//	SyncDir   syncdir
//	OpenLog   create where it is missing; syncdir, of a file that is there once in the life of a Disk
//	Append    write at the end, sync; after a failed write: truncate to the old length, sync
//	Truncate  truncate, sync
//	Step      the named step itself
//
// Link unlinks its temporary name where the file had the other name already.
// After a failed step before the rename or move the temporary file is unlinked, a step too.
// A temporary file of a crashed process stays; nobody reads it, its name is unique.
//
// Every step that changes what a crash could leave is shown to a Seam before and after it, so
// that a test can stop, fail or shorten any of them. Reads and locks are no steps: a lock is
// state of the kernel, gone with its process, and the text in its file is only a hint.
//
// A file is created with exactly the permission bits asked for, whatever the umask says.
//
// # Acknowledged
//
// A call that returns nil has acknowledged its change: after a kill, a crash of the kernel or a
// power cut it is found again. That rests on two promises of the system: fsync and fdatasync
// return nil only when the bytes are on stable storage, and rename is atomic. A disk that lies about
// its cache breaks the first one, and nothing here can tell. What a call that has not returned
// would have changed may be found or not; what it returned an error for is as that error says.
//
// Nothing is acknowledged before it is synced, and nobody is shown a change before that. A reader
// that finds a file through the page cache may see bytes that are not on the disk yet, when whoever
// wrote them was killed before the sync: Settle is for whoever builds on such a file.
//
// # The two formats
//
// Two formats are built on these calls; the package runstore writes and reads them, and its own
// documentation says what the members mean.
//
// A journal is a Log of sealed lines. Each line is, to the byte,
//
//	offset  length  content
//	0       13      {"checksum":"
//	13      64      the SHA-256, in lower-case hex, of everything from offset 79 to before the newline
//	77      2       ",
//	79      n       the rest of a JSON object: members, and the closing brace
//	79+n    1       the newline, 0x0a; there is no other one in the line
//
// so that a line is a whole JSON object in which the checksum is the first member. The others are sorted,
// white space stands in strings alone, strings are UTF-8 without control characters. The first line
// is the header {"checksum", "after", "format", "generation", "project_id"}; every other one is one
// Append, a group of transactions {"checksum", "changes", "discarded", "events", "first", "last"}. A
// journal is begun by Replace with its header alone, only grows, and is void once a snapshot of a
// later generation stands beside it. Segments of the history are Logs of the same lines, with the
// header {"checksum", "format", "number", "project_id"} and one finished piece of work
// {"checksum", "changes"} in each other line.
//
// A snapshot is one file put in place by Replace: one JSON object, keys sorted at every level, two
// blanks of indentation a level, one newline after the closing brace and nothing else. Its member
// store.checksum is the last place in the file where the 13 bytes "checksum": " (with one blank)
// and 64 lower-case hex digits stand; the digits are the SHA-256 of the whole file in which they
// themselves are 64 zeros (0x30).
//
// # Damage
//
// What each kind of damage does to them:
//
//	what happened                                   what is found        what is done
//	a write was cut short, the process lives        Append fails         cut back, synced; the log is as before
//	cutting back or a sync failed                   ErrPoisoned          no more line; a new snapshot takes the journal's place
//	ENOSPC, EIO, EROFS before a rename              an error             the old file stands; the temporary one is unlinked
//	a failed sync of the folder after a rename      ErrUncertain         look again, or write a further snapshot
//	killed, or the power cut, in an Append          the last line does   it was never acknowledged: it is set aside
//	                                                not check            and reported
//	the same, and the tail is zeros or garbage      the same             the same
//	a bit or page lost in an acknowledged line      a line does not      refused, with file and byte: a good line
//	                                                check, a later does  behind it says that it had been acknowledged
//	a line is missing                               a gap in first/last  refused
//	killed between snapshot and new journal         an older generation  the journal is void, all of it is in the snapshot
//	the journal is missing                          a snapshot alone     that is a store at rest: only losing the file
//	                                                                     itself could hide changes
//	the snapshot is missing beside a journal        no snapshot          refused
//	the snapshot is cut, or no JSON                 it does not parse    refused, with the byte
//	the snapshot was edited                         its checksum does    at rest taken as it stands, and logged;
//	                                                not fit              beside a journal refused, with both ways out
//	a line of a segment is damaged                  it does not check    look-ups that need it are refused, with the byte
//	a segment is cut or missing                     it cannot be read    the same
//	an index is damaged or missing                  a block's CRC does   look-ups that need it are refused; it is made
//	                                                not fit              again from the segments on request
//	an older snapshot was put back                  a segment holds work the segment is copied beside the snapshot before
//	                                                that is not known    it is cut or removed, and that is logged
//	killed while finished work was moved            bytes beyond what    they are cut, and files that are not listed
//	                                                the snapshot lists   removed, at the next start
package durable
