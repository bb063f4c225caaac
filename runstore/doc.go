// Package runstore keeps every durable fact about runs: their life cycle, results, commands,
// permissions, operations, controls, events, queue observations and the receipts of requests.
// It decides no policy and starts no process. Whoever opens it holds the project's lease;
// reading needs none.
//
// # Invariants
//
// What Update has acknowledged is found after any crash. Nobody sees a transaction before it is
// on the disk. A transaction is there wholly or not at all. What does not parse, or does not
// fit together, is refused with the place and a way out, and not a byte of it is changed.
// A commit costs what it changes, never what there has been: every state is a value that
// shares all but the changed paths with the one before (pmap), and a View is one of them.
//
// # Files
//
// All are in one folder (0700) and have mode 0600:
//
//	state.json             the snapshot
//	journal.jsonl          what came after it; not there at rest
//	journal-tail-G-N.jsonl a tail of the journal of generation G, from byte N on, that was
//	                       never acknowledged and was set aside at a start
//	history/               finished work, see below
//	history-aside-G-NAME   a segment as it was found at a start with a snapshot of generation G
//	                       that does not know all of it
//	contracts/KIND-SHA.json pinned documents, never changed
//	state-base.json        a second name of the snapshot that the journal goes on from
//	original-state-SHA.json, operations/RESULT.json
//	                       the original's, see below
//	.NAME.RANDOM.tmp       what a killed process was writing; nobody reads it
//
// # Snapshot
//
// state.json is one JSON object with sorted keys, two blanks a level, a newline at the end. Its
// top-level members are the original's:
//
//	version (1), project_id, paused, runs, events, results         always
//	commands, permissions, maintenance, maintenance_findings,
//	queue_observations, account_holds, event_retention             from the first use on
//	operations (applications of results), requests                 ours, from the first use on
//	store                                                          ours
//
// with store = {checksum, format: "greatminds-go", generation, history, last_sequence}. The checksum
// is the SHA-256 of the whole file in which the checksum's own 64 hex digits are zeros; generation
// counts snapshots from 1; history is there from the first roll-over on; last_sequence is the last
// transaction in the file. Members that this version does not know are kept, at the top and in every
// entity. A greater version is refused.
//
// # Journal
//
// journal.jsonl is a header and then one line for each group of transactions that shared an
// fsync. A line is
//
//	{"checksum":"SHA",REST}
//
// and a newline, where SHA is the SHA-256 in hex of `REST}`, the line from its 80th byte on. The
// header has the members after, format, generation and project_id: the journal goes on from the
// snapshot of that generation, whose last transaction is after. A group has
//
//	changes    {KIND: {KEY: whole new value, or null where it was removed}}
//	discarded  the sequence up to which the group discarded events; only where it did
//	events     the group's events that it did not discard itself
//	first,last the sequences of its transactions
//
// The kinds are the snapshot's sections, and besides: top (project_id, paused, event_retention,
// maintenance_findings, history_totals), event_receipts and input_reservations. The last two are
// members of their run in the snapshot, and entities of their own, RUN/ID, in the journal: a list
// that grows does not rewrite its run.
//
// A snapshot of generation G+1 holds everything that was acknowledged in the journal of
// generation G. So a journal whose generation is below the snapshot's is void, and may hold
// groups that were refused. In one of the same generation, groups up to last_sequence are
// skipped, and a gap is refused.
//
// # Damage
//
// The documentation of internal/durable has the bytes of both formats, and a table of what each kind
// of damage does. In short: one group is on the disk before the next is written. A line that does not check, with no
// line behind it that does, is therefore a group that was never acknowledged: it and all
// behind it is set aside. With a good line behind it, it is damage, and refused.
//
// A snapshot whose checksum does not fit was written by another tool or by hand. At rest it is
// taken as it stands, and logged. Beside a journal that holds something it is refused, and the
// refusal names two commands: one goes on with the snapshot and keeps the journal aside, the other
// puts back the snapshot that the journal goes on from, and keeps the changed one aside.
//
// # The original's store
//
// A state.json without store is the original's. The first Open takes it over: it keeps the file
// byte for byte as original-state-SHA.json, SHA being the first 12 digits of its SHA-256, and then
// puts a snapshot in its place that holds all of it, with the member taken_over (at, file, sha256).
// A crash before that leaves the original's store as it was. Runs, results, commands, permissions
// and events keep every member and every sequence; what was unfinished is left to recovery.
//
// The original keeps the record of each application of a result in a file of its own,
// operations/RESULT.json. The records of results that are still open come into the snapshot's
// operations; all of these files stay, as do contracts, command output and conversations.
// Records of operations are spelled otherwise by the original: times as text, places as
// QUEUE/FILE.
//
// # Finished work
//
// Work that is over leaves the hot state, so that a commit, a start and a status cost the same
// however much was ever done. A bundle leaves together: a finished run with its lists, result,
// commands, permission requests and the application of its result, when nothing of it is open; one
// finished maintenance operation; or one receipt of a request. What stays: the newest 50 finished
// runs, the newest run of each binding and account, what the verdict about an account rests on
// (AccountRuns), the newest 50 operations and 200 receipts. It happens only with a snapshot, a
// roll-over, and when at least 50 bundles leave:
//
//	1  the bundles are appended to segments, and synced
//	2  an index file of them is created
//	3  the snapshot without them, which lists segments and indexes, replaces state.json
//	4  index files that the new one has taken in are removed
//
// Before step 3 nothing of 1 and 2 counts; with it all of it does. What a crash leaves of 1, 2 and 4
// is cut off or removed at the next start; a segment with work that the state does not know, for an
// older snapshot was put back, is copied beside the snapshot first. A failure is no more than a roll-over that comes later:
// the snapshot is written without it, or the journal goes on.
//
// Segments are history/runs-NNNNNN.jsonl, of about 8 MiB. They only grow. Each is a header and then
// one line for each bundle, sealed like a line of the journal, with the members
//
//	header  format ("greatminds-go history"), number, project_id
//	bundle  changes, as in the journal: {KIND: {KEY: whole value}}
//
// Indexes are history/index-NNNNNN.idx. They never change; a roll-over adds one, which takes in those
// before it that are not twice as large, so that their number is logarithmic. Each says for the
// keys of its bundles (run, result, command, permission, operation, task, session and request, each
// KIND NUL ID) in which line they are, and for its finished runs when they ended. An index file is a
// row of blocks of 4096 bytes, numbers in little endian:
//
//	block     bytes       content
//	each      4092..4095  CRC-32C (Castagnoli) of bytes 0..4091, of the file's identity and of the
//	                      block's number as 8 bytes
//	0         0..7        "GMINDEX1"
//	          8..15       the number of key entries, K
//	          16..23      the number of end entries, E
//	          24..39      the file's identity: random bytes
//	1 ..      20 a piece  ceil(K/204) blocks of key entries, 204 in each, ascending
//	                      0..7 hash, 8..11 segment, 12..15 offset, 16..19 length of the line
//	then      28 a piece  ceil(E/146) blocks of end entries, 146 in each, the latest end first
//	                      0..7 end, 8..15 hash, 16..27 segment, offset, length
//
// What is left of a block is zeros. A hash is the first 8 bytes of the SHA-256 of a key; equal hashes
// of different keys are told apart by the line itself, whose checksum is verified at each read. An
// end is in microseconds of the Unix epoch, and its hash that of the run's key.
//
// The snapshot's store.history lists both: segments (name, valid length), indexes (name, keys, ends,
// id, as in the header), oldest first, and totals, the number of runs that are there and not
// in the snapshot, by state.
//
// Look-ups go on there where the hot state has nothing; what is hot wins. A transaction that changes
// something of a bundle brings all of it back first, in its own line of the journal; at some later
// roll-over it leaves again, and the newest line counts. So do transactions that were built on a
// bundle while it left. A look-up that meets damage has no answer: it is never "not there". The
// transaction is refused with code history_unreadable; a reader asks HistoryFault. RebuildIndex makes
// the index again from the segments, on request and never at a start.
package runstore
