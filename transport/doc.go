// Package transport owns one ACP conversation with one child process: the client's half of
// the protocol over the child's standard streams.
//
// The pinned ACP SDK frames and correlates; the guard in this package makes it safe against
// an agent that writes too much, too little, garbage, or nothing. The package starts no
// process, keeps nothing on disk, retries nothing and never picks a permission option.
//
// The invariant kept: whatever the agent does, every call returns within its limit, memory
// stays bounded, no goroutine outlives [Session.Close], and nothing that the agent said
// before an answer is handled after it. One agent process, one connection, one session; a
// prompt turn is never ended by dropping its request, only by asking the agent to cancel and
// waiting for its stop reason.
//
// On the wire: newline-delimited JSON-RPC 2.0, ACP protocol version 1, UTF-8.
package transport
