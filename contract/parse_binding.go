package contract

import (
	"math/big"
	"strconv"

	"greatminds/internal/yamldoc"
)

func (r *contractReader) bindings(n *yamldoc.Node, path string) {
	r.entries(n, path, checkName, func(id string, n *yamldoc.Node, path string) {
		b := newBinding(id)
		var cost, currency, idle *yamldoc.Node
		var code string
		r.object(n, path,
			field{"role", true, func(n *yamldoc.Node, path string) {
				r.checked((*string)(&b.Role), r.checkRole)(n, path)
			}},
			field{"agent", true, func(n *yamldoc.Node, path string) {
				if r.text(&b.Agent)(n, path); b.Agent != "" {
					r.uses = append(r.uses, n)
				}
			}},
			field{"workspace", false, r.text(&b.Workspace)},
			field{"scheduling", false, choice(&r.reader, &b.Scheduling, SchedulingQueue, SchedulingOnDemand)},
			field{"permission", false, choice(&r.reader, &b.Permission, PermissionAsk, PermissionDeny, PermissionAllowWorkspace)},
			field{"session", false, choice(&r.reader, &b.Session, SessionNew, SessionResume)},
			field{"model", false, r.optional(&b.Model)},
			field{"mode", false, r.optional(&b.Mode)},
			field{"reasoning", false, r.optional(&b.Reasoning)},
			field{"account", false, r.checked(&b.Account, checkName)},
			field{"max_running", false, r.count(&b.MaxRunning, 1, maxCount)},
			field{"timeout_seconds", false, r.count(&b.TimeoutSeconds, 1, maxSeconds)},
			field{"idle_timeout_seconds", false, func(n *yamldoc.Node, path string) {
				idle, b.IdleTimeoutSeconds = n, new(int)
				r.count(b.IdleTimeoutSeconds, 1, maxSeconds)(n, path)
			}},
			field{"max_prompt_bytes", false, r.count(&b.MaxPromptBytes, 1, maxCount)},
			field{"max_session_input_bytes", false, r.count(&b.MaxSessionInputBytes, 1, maxCount)},
			field{"max_reported_session_cost", false, func(n *yamldoc.Node, path string) {
				cost = n
				b.MaxReportedSessionCost = r.amount(n, path)
			}},
			field{"reported_cost_currency", false, func(n *yamldoc.Node, path string) {
				currency = n
				b.ReportedCostCurrency = &code
				r.checked(&code, checkCurrency)(n, path)
			}},
			field{"max_no_progress_turns", false, r.count(&b.MaxNoProgressTurns, 1, 20)},
			field{"max_startup_retries", false, r.count(&b.MaxStartupRetries, 0, 20)},
			field{"retry_initial_seconds", false, r.count(&b.RetryInitialSeconds, 1, maxSeconds)},
			field{"retry_max_seconds", false, r.count(&b.RetryMaxSeconds, 1, maxSeconds)},
		)
		r.pair(cost, currency, path)
		r.idle(idle, b, path)
		r.c.Bindings = append(r.c.Bindings, b)
	})
}

func newBinding(id string) Binding {
	return Binding{ID: id, Workspace: ".", Scheduling: SchedulingOnDemand, Permission: PermissionAsk, Session: SessionResume,
		Account: "default", MaxRunning: 1, TimeoutSeconds: 1800, MaxPromptBytes: 262144, MaxSessionInputBytes: 1048576,
		MaxNoProgressTurns: 1, MaxStartupRetries: 2, RetryInitialSeconds: 5, RetryMaxSeconds: 60}
}

// pair refuses a cost without a currency and the other way round.
func (r *reader) pair(cost, currency *yamldoc.Node, path string) {
	switch {
	case cost != nil && currency == nil:
		r.faults.Add(cost, "add reported_cost_currency, such as USD", "%s.max_reported_session_cost has no currency", path)
	case cost == nil && currency != nil:
		r.faults.Add(currency, "add max_reported_session_cost", "%s.reported_cost_currency has no cost", path)
	}
}

// idle refuses an idle limit that can never be reached: the prompt's own time is over before, and
// whoever has set it relies on something that would not happen.
func (r *reader) idle(n *yamldoc.Node, b Binding, path string) {
	if n != nil && *b.IdleTimeoutSeconds >= b.TimeoutSeconds {
		r.faults.Add(n, "write less than that, or raise timeout_seconds",
			"%s.idle_timeout_seconds %d is not below its timeout_seconds %d, so that it would never end a turn",
			path, *b.IdleTimeoutSeconds, b.TimeoutSeconds)
	}
}

// amount reads a number above 0 and up to 1e100.
func (r *reader) amount(n *yamldoc.Node, path string) *Number {
	const remedy = "write a number above 0 and at most 1.0e+100"
	exact := new(big.Float).SetPrec(512)
	var number Number
	switch n.Kind {
	case yamldoc.Integer:
		v, _ := new(big.Int).SetString(n.Text, 10) // decimal digits by its kind
		exact.SetInt(v)
		number = IntegerNumber(v)
	case yamldoc.Float:
		f, err := strconv.ParseFloat(n.Text, 64)
		if err != nil { // out of range
			r.faults.Add(n, remedy, "%s is %s", path, n.Text)
			return nil
		}
		exact.SetFloat64(f)
		number = FloatNumber(f)
	default:
		r.is(n, path, yamldoc.Float, remedy)
		return nil
	}
	if exact.Sign() <= 0 || exact.Cmp(big.NewFloat(1e100)) > 0 {
		r.faults.Add(n, remedy, "%s is%s", path, shown(n))
		return nil
	}
	return &number
}
