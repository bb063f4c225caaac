package supervisor

import (
	"greatminds/supervisor/audit"
)

// promises holds what the runtime promises against what recovery has left, and logs what is not
// so: a start is the last moment at which nothing is moving. What costs the whole past to look at
// (the task journal, the branch) is left to `run doctor`.
func (c *core) promises() {
	f := audit.Facts{View: c.store.View(), Recovered: true}
	var err error
	if f.Changing, err = c.tree.Unfinished(); err == nil {
		f.Tasks, err = c.tree.Discover()
	}
	if err != nil {
		c.log.Warn("the promises cannot be held against the task files", "err", err)
		f.Tasks = nil
	}
	for _, found := range audit.Check(f) {
		c.log.Warn("not as it should be", "code", found.Code, "place", found.Place, "what", found.What, "remedy", found.Remedy)
	}
}
