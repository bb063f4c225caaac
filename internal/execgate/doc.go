// Package execgate starts every process of the project, and ends whole process trees.
//
// # What it keeps
//
// Nothing is exec'd before its identity can be on record, and nothing outlives its keeper:
//
//	daemon ── warden ── keeper ── gate, which becomes the agent ── whatever the agent starts
//
// Warden, keeper and gate are re-execs of our own binary through /proc/self/exe. The gate is the very
// process that becomes the agent: it waits on a pipe, and the launch request (argv, environment,
// folder) comes down that pipe only when the caller has stored [Child.Process]. End of file instead
// means that the daemon died: the gate exits and nothing was executed. The keeper (package keep)
// ends the tree when the agent ends, when it is told to, and when the daemon is gone. A keeper that
// dies leaves its tree to its warden, which does the same work, and without a warden to this process:
// each is a subreaper. Keeper and warden that were stopped go on when their parent dies, by their
// parent-death signal, and when a stop is asked for. A tool has a keeper and no warden.
//
// Everything is signalled and awaited through pidfds, never by bare pid. A zombie counts as
// gone, what cannot be read counts as unknown, and unknown is never treated as dead.
//
// # Below it
//
//   - entry: what warden, keeper and gate do first, before other packages are initialized; the form
//     of the launch request
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
// such a survivor is named. An agent that kills keeper, warden and daemon within one moment keeps
// what it has started in sessions of their own, until the next start finds the launch's mark; not even
// that start is sure to find what forks faster than /proc can be read. A delegated cgroup has no such
// hole.
package execgate
