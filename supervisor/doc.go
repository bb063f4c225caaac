// Package supervisor is the daemon: it takes the tasks of one project from queue to queue by
// running agents on them, each in a supervised run, crash-safely.
//
// Read walk.go first: it is the way of one task through a run, step by step. The
// loop (loop.go) decides when to look at the work again, and never polls: it waits for task
// files, requests, ended processes and one timer. Everything that is decided is decided in the
// rooms below, which are pure; everything durable goes through runstore.
//
// The invariants kept: one supervisor per project (the lease); nothing is exec'd before it is on
// record; a run's processes are gone before its end is recorded; a decision is applied only after
// its run has ended; what is uncertain waits for a person.
// Spec: "Delivery status", "Persistence and ownership", "Lifecycle and result receipts".
package supervisor
