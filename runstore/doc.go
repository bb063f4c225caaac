// Package runstore keeps every durable fact about runs: their life cycle, results, commands,
// permissions, operations, controls, events and the receipts of requests.
//
// It decides no policy and starts no process. The one who opens it holds the project's lease.
package runstore
