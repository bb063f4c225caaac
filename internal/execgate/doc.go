// Package execgate starts every process of the project, and ends whole process trees.
//
// # What it keeps
//
// Nothing is exec'd before its identity can be on record, and nothing outlives its keeper:
//
//	daemon ── keeper ── gate, which becomes the agent ── whatever the agent starts
//
// Keeper and gate are re-execs of our own binary through /proc/self/exe. The gate is the very
// process that becomes the agent: it waits on a pipe, and the launch request (argv, environment,
// folder) comes down that pipe only when the caller has stored [Child.Process]. End of file instead
// means that the daemon died: the gate exits and nothing was executed. The keeper (package keep)
// ends the tree when the agent ends, when it is told to, and when the daemon is gone. A keeper that
// dies, or does not answer, leaves its tree to this process, which is a subreaper too.
//
// Everything is signalled and awaited through pidfds, never by bare pid. A zombie counts as
// gone, what cannot be read counts as unknown, and unknown is never treated as dead.
//
// # Below it
//
//   - entry: what keeper and gate do first, before other packages are initialized; the form of
//     the launch request
//   - proc: identities, pidfds, descendants
//   - keep: the keeper, and the messages of its control channel
//
// # Status pipe
//
// The gate writes "R" when the request is complete and exec follows, and "E", errno and path
// when exec failed. End of file after "R" alone is a successful exec: the pipe closes with it.
//
// # Limits
//
// A process that asks a server outside its tree (tmux, systemd, docker) to start something
// for it is not held by this package, nor is one with another uid that we may not signal:
// such a survivor is named.
package execgate
