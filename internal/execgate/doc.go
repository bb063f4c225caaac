// Package execgate starts every process of the project, and ends whole process trees.
//
// # What it keeps
//
// Nothing is exec'd before its identity can be on record, and nothing outlives its keeper:
//
//	daemon ── keeper ── gate, which becomes the agent ── whatever the agent starts
//
// Keeper and gate are re-execs of our own binary through /proc/self/exe; [Main] turns them
// into what they are. The gate is the very process that becomes the agent: it waits on a
// pipe, and the launch request (argv, environment, folder) comes down that pipe only when
// the caller has stored [Child.Process]. End of file instead means that the daemon died: the
// gate exits and nothing was executed. The keeper is a child subreaper in a session of its
// own, so every descendant of the agent, in whatever session or group, is in the end a child
// of the keeper; "no children left" (ECHILD) is therefore a proof that the tree is empty.
// The keeper ends the tree when the agent ends, when it is told to, and when the daemon is
// gone, which it sees as end of file on its control channel.
//
// Everything is signalled and awaited through pidfds, never by bare pid. A zombie counts as
// gone, what cannot be read counts as unknown, and unknown is never treated as dead.
//
// # Control channel
//
// A SOCK_SEQPACKET socket pair, one JSON object (type message) in each packet. Keeper to
// daemon: "up" with the pid and, as SCM_RIGHTS, the pidfd; "failed" with an errno instead;
// "exit" with the wait status; "empty", last, with the survivors. Daemon to keeper:
// "recorded", after which the keeper may reap the gate, and "stop".
//
// # Launch request
//
// "gmg1", the payload's length, then counted byte strings: path, folder, argv, environment
// (request.go). It is binary because neither arguments nor environment need be UTF-8.
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
