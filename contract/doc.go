// Package contract owns what a project asked for: the execution contract
// (coordination/execution.yaml), the workflow schema, and where a project's files lie.
//
// The invariant kept: a value of type [Contract] or [Schema] is complete and valid. Parsing
// either returns one with every default filled in, or one refusal that lists every fault of the
// file as "file:line:column: what; remedy". Nothing is guessed, nothing falls back to a default
// because it could not be read, and parsing starts no process, reads no clock and looks up no
// variable that the file names.
//
// A contract has one canonical form ([Contract.Canonical]): JSON with sorted keys and no
// insignificant space, every character outside ASCII escaped. Its SHA-256 is the contract's
// fingerprint, and [FromCanonical] reads a pinned document back.
package contract
