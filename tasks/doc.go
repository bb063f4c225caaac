// Package tasks owns the task domain: task documents, queues, revisions, task locks, the
// journal, the transition table's checks, and the planned effect of a decision. Worktrees and
// merges of verified work are planned here too.
//
// # The invariant kept
//
// A task stands in exactly one queue, in the file <runtime>/<queue>/<id>.yaml. A file is
// replaced whole or not at all, and a move is one rename that never replaces another file.
// Checks are pure: they take a task and [Facts] as values, read no file, clock or variable, and
// return every reason at once. A refused call has changed nothing, not even the id counter.
//
// # The file
//
// A task file is one YAML document: a mapping of header fields that ends with `blocks`, a list
// of evidence blocks in the order in which they were filed. Each block begins with kind, by and
// at. We read a strict subset of YAML (see [Parse]) that contains whatever a plain YAML writer
// produces, and append blocks without touching the bytes that stand before them. The revision
// of a task is sha256("<queue>/<id>.yaml" NUL bytes): an edit and a move both change it.
//
// # The journal
//
// <runtime>/journal.ndjson holds one JSON object a line, one line for each transition. A torn
// last line is cut off by the next writer; a corrupt line before that is refused by number. A
// line with an operation id is written once, however often it is asked for.
//
// # Operators' changes
//
// A change that a command makes to a task is recorded in <runtime>/intent/ before its first
// write and until its journal line is on disk. What was cut short in between is finished, or
// forgotten where it had not begun, by the next command on the task and by
// [Tree.FinishChanges]. Changes of the daemon have records of their own, outside this package.
//
// <runtime>/.id_counter holds the last number given out, in decimal. <runtime>/.locks/ holds the
// lock files of tasks (<id>.lock), journal and counter; they are never removed.
package tasks
