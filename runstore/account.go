package runstore

// maxAccountFailures bounds the failed runs of an account that AccountRuns returns: a streak that
// long has reached its longest delay.
const maxAccountFailures = 200

// AccountRuns returns, by account, the runs on which the verdict about the account rests, oldest
// claim first: those that have not ended, the one that was last ready for input by its time and
// the one by its claim, and the newest 200 that failed after the one or were claimed after the
// other. The two are the same but where the clock was set back, or runs of the account overlap.
// They stay in the hot state, so that the verdict is the same however much has left it.
// Spec: "Shared account startup backoff".
func (v *View) AccountRuns() map[string][]*Run { return v.h.accountRuns() }

func (h *hot) accountRuns() map[string][]*Run {
	ready, newest := map[string]*Run{}, map[string]*Run{}
	h.runOrder.each(func(_ string, r *Run) bool {
		if last := ready[r.Account]; r.StartupReadyAt != nil && (last == nil || *r.StartupReadyAt >= *last.StartupReadyAt) {
			ready[r.Account] = r
		}
		if r.StartupReadyAt != nil {
			newest[r.Account] = r
		}
		return true
	})
	all := map[string][]*Run{}
	failures := map[string]int{}
	var chosen []*Run
	runs := h.runOrder.values()
	for i := len(runs) - 1; i >= 0; i-- {
		r := runs[i]
		last := ready[r.Account]
		switch {
		case !r.State.Terminal(), r == last, r == newest[r.Account]:
		case r.State != Failed, failures[r.Account] == maxAccountFailures:
			continue
		case last != nil && endedAt(r) < int64(*last.StartupReadyAt*1e6) && r.Sequence < newest[r.Account].Sequence:
			continue
		default:
			failures[r.Account]++
		}
		chosen = append(chosen, r)
	}
	for i := len(chosen) - 1; i >= 0; i-- {
		all[chosen[i].Account] = append(all[chosen[i].Account], chosen[i])
	}
	return all
}
