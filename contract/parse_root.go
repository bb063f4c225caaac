package contract

import (
	"slices"
	"strings"

	"greatminds/internal/yamldoc"
)

// contractReader reads the tables of fields of an execution contract. A field of ours that the
// original does not have enters these tables and canonical.go, there only when it is set to
// something other than its default, so that older fingerprints stay.
type contractReader struct {
	reader
	c         *Contract
	checkRole func(string) string
	// version is read before it is known to be right.
	version int
	// uses remembers where each binding names its agent, for the check at the end.
	uses []*yamldoc.Node
	// agentsRead holds the names of the manifests; nil when agents was no mapping at all.
	agentsRead map[string]bool
}

// newContract is the contract that no field has been set in.
func newContract() *Contract {
	return &Contract{Version: 1, MaxRunning: 4, AccountLimits: []AccountLimit{}, AccountRetryInitialSeconds: 5,
		AccountRetryMaxSeconds: 60, MaxRuntimeEvents: 10000, Agents: []Agent{}, Bindings: []Binding{}, Commands: []Command{}}
}

func (r *contractReader) root(n *yamldoc.Node) {
	r.object(n, "",
		field{"version", true, r.versionField},
		field{"agents", true, r.agents},
		field{"bindings", true, r.bindings},
		field{"max_running", false, r.count(&r.c.MaxRunning, 1, maxCount)},
		field{"account_limits", false, r.accountLimits},
		field{"commands", false, r.commands},
		field{"stand", false, r.stand},
		field{"account_retry_initial_seconds", false, r.count(&r.c.AccountRetryInitialSeconds, 1, maxSeconds)},
		field{"account_retry_max_seconds", false, r.count(&r.c.AccountRetryMaxSeconds, 1, maxSeconds)},
		field{"max_runtime_events", false, r.count(&r.c.MaxRuntimeEvents, 100, 1_000_000)},
	)
	for _, use := range r.uses {
		// The key counts, not the manifest: one that has faults of its own is still there.
		if r.agentsRead != nil && !r.agentsRead[use.Text] {
			r.faults.Add(use, "name one of the agents, or add it", "there is no agent %s", yamldoc.Show(use.Text))
		}
	}
}

func (r *contractReader) versionField(n *yamldoc.Node, path string) {
	r.count(&r.version, 1, 1)(n, path)
}

func (r *contractReader) accountLimits(n *yamldoc.Node, path string) {
	r.entries(n, path, checkName, func(id string, n *yamldoc.Node, path string) {
		limit := AccountLimit{Account: id}
		r.count(&limit.MaxRunning, 1, maxCount)(n, path)
		r.c.AccountLimits = append(r.c.AccountLimits, limit)
	})
	slices.SortFunc(r.c.AccountLimits, func(a, b AccountLimit) int { return strings.Compare(a.Account, b.Account) })
}
