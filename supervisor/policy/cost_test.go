package policy_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"greatminds/supervisor/policy"
)

var usd = policy.CostBudget{Limit: "1.0", Currency: "USD"}

func reported(amount string, currency string) policy.CostReport {
	return policy.CostReport{Reading: policy.Reported, Amount: json.Number(amount), Currency: currency}
}

// paid is the account of a session after one completed prompt that reported these amounts.
func paid(amounts ...string) policy.CostAccount {
	a := policy.NewCostAccount().Begun()
	for _, n := range amounts {
		a = a.Reported(reported(n, "USD"))
	}
	return a.Finished()
}

// E-546 E-547 E-548 E-549 E-553 E-555
func TestWhatACostAccountLetsGo(t *testing.T) {
	fresh, invalid := policy.NewCostAccount(), policy.CostReport{Reading: policy.Invalid}
	for _, c := range []struct {
		name           string
		account        policy.CostAccount
		budget         policy.CostBudget
		before, during policy.CostHold
	}{
		{"E-548 a new session may send one prompt without a known cost", fresh, usd, "", ""},
		{"E-549 a completed prompt with a report", paid("0.4"), usd, "", ""},
		{"E-549 a completed prompt without a report", fresh.Begun().Finished(), usd, policy.CostUnavailable, ""},
		{"a stale report", paid("0.4").Begun().Finished(), usd, policy.CostUnavailable, ""},
		{"a report between the prompts does not stand for one", paid().Reported(reported("0.4", "USD")), usd, policy.CostUnavailable, ""},
		{"the same amount again is a report", paid("0.4").Begun().Reported(reported("0.4", "USD")).Finished(), usd, "", ""},
		{"below by the last digit", paid("0.99999999999999999999999999"), usd, "", ""},
		{"E-547 at the threshold", paid("1"), usd, policy.CostLimitReached, policy.CostLimitReached},
		{"at the threshold, written in another way", paid("10e-1"), usd, policy.CostLimitReached, policy.CostLimitReached},
		{"above by the last digit", paid("1.00000000000000000000000001"), usd, policy.CostLimitReached, policy.CostLimitReached},
		{"what binary64 would round", paid("0.1"), policy.CostBudget{Limit: "0.10000000000000000001", Currency: "USD"}, "", ""},
		{"before any prompt", fresh.Reported(reported("2", "USD")), usd, policy.CostLimitReached, policy.CostLimitReached},
		{"E-555 another currency", fresh.Begun().Reported(reported("0.1", "EUR")).Finished(), usd, policy.CurrencyMismatch, policy.CurrencyMismatch},
		{"E-546 nor is a large amount in another one converted", fresh.Begun().Reported(reported("99", "EUR")).Finished(), usd, policy.CurrencyMismatch, policy.CurrencyMismatch},
		{"a changed currency", paid("0.1").Begun().Reported(reported("0.1", "EUR")).Finished(), usd, policy.CurrencyChanged, policy.CurrencyChanged},
		{"E-554 a cost that went down", paid("0.5", "0.4"), usd, policy.CostRegressed, policy.CostRegressed},
		{"the limit says more than a doubt", paid("1.5", "0.4"), usd, policy.CostLimitReached, policy.CostLimitReached},
		{"E-553 an invalid cost", fresh.Begun().Reported(invalid).Finished(), usd, policy.InvalidCost, policy.InvalidCost},
		{"that a valid one follows", fresh.Begun().Reported(invalid).Reported(reported("0.1", "USD")).Finished(), usd, policy.InvalidCost, policy.InvalidCost},
		{"E-553 an unknown history", policy.UnknownCostAccount(), usd, policy.CostHistoryUnknown, policy.CostHistoryUnknown},
		{"a pending prompt", paid("0.1").Begun(), usd, policy.CostHistoryUnknown, ""},
		{"E-552 a pending prompt of an earlier run", paid("0.1").Begun().Reported(reported("0.2", "USD")).Opened(), usd, policy.CostHistoryUnknown, policy.CostHistoryUnknown},
		{"E-557 no budget", paid("9", "8"), policy.CostBudget{}, "", ""},
		{"no budget, no report", fresh.Begun().Finished().Begun(), policy.CostBudget{}, "", ""},
		{"a revised budget", paid("1.5"), policy.CostBudget{Limit: "2", Currency: "USD"}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.account.Before(c.budget); got != c.before {
				t.Errorf("before a prompt: got %q, want %q", got, c.before)
			}
			if got := c.account.During(c.budget); got != c.during {
				t.Errorf("during a prompt: got %q, want %q", got, c.during)
			}
		})
	}
}

// E-539 E-553
func TestWhatIsNoAmountIsNoCost(t *testing.T) {
	for _, amount := range []string{"", "-1", "-0.01", "x", `"1"`, "1/2", "0x10", "1_0", "NaN", "Infinity", "1e401", "1e-401", "1e999999999999", "1." + strings.Repeat("0", 500), "01", "+1", " 1"} {
		a := policy.NewCostAccount().Begun().Reported(reported(amount, "USD"))
		if a.Status != policy.Invalid || a.Error == nil || *a.Error != policy.InvalidCost || a.Amount != nil || a.Fresh {
			t.Errorf("%q: got %+v", amount, a)
		}
	}
	if a := policy.NewCostAccount().Begun().Reported(reported("1", "")); a.Status != policy.Invalid {
		t.Errorf("without a currency: got %+v", a)
	}
	if a := paid("0"); a.Status != policy.Reported || a.Amount == nil || a.Error != nil {
		t.Errorf("nothing is an amount too: got %+v", a)
	}
}

// A session's account over prompts, reports, crashes and further runs, whose record comes back from
// the store each time, beside a model that remembers everything.
//
// E-541 E-552 E-553 E-554 E-557
func TestNothingSetsACostBudgetBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, previous := policy.NewCostAccount(), policy.NewCostAccount()
		highest, currency, doubted, unknown, completed := 0, "", false, false, int64(0)
		t.Repeat(map[string]func(*rapid.T){
			"prompt": func(t *rapid.T) {
				if a.Pending {
					t.Skip("one at a time")
				}
				a = a.Begun()
			},
			"answer": func(t *rapid.T) {
				if a.Pending {
					completed++
				}
				a = a.Finished()
			},
			"report": func(t *rapid.T) {
				n, c := rapid.IntRange(0, 200).Draw(t, "cents"), rapid.SampledFrom([]string{"USD", "USD", "USD", "EUR"}).Draw(t, "currency")
				a = a.Reported(reported(fmt.Sprintf("%d.%02d", n/100, n%100), c))
				switch {
				case currency == "":
					highest, currency = n, c
				case currency != c, n < highest:
					doubted = true
				default:
					highest = n
				}
			},
			"invalid": func(t *rapid.T) { a, doubted = a.Reported(policy.CostReport{Reading: policy.Invalid}), true },
			"missing": func(t *rapid.T) { a = a.Reported(policy.CostReport{Reading: policy.Missing}) },
			"another run": func(t *rapid.T) {
				// What the run before left pending, by a crash or a cancel, is not known any more.
				unknown = unknown || a.Pending
				a = a.Opened()
			},
			"": func(t *rapid.T) {
				var back policy.CostAccount
				raw, err := json.Marshal(a)
				if err == nil {
					err = json.Unmarshal(raw, &back)
				}
				if err != nil {
					t.Fatal(err)
				}
				if !policy.Follows(previous, back) && !previous.Pending {
					t.Fatalf("%s does not follow", raw)
				}
				a, previous = back, back
				over := currency == "USD" && highest >= 100
				hold := a.Before(usd)
				switch {
				case (a.Error != nil) != (doubted || unknown):
					t.Fatalf("doubted %v, unknown %v: %s", doubted, unknown, raw)
				case a.CompletedPrompts != completed:
					t.Fatalf("%d prompts were completed: %s", completed, raw)
				case over && hold != policy.CostLimitReached:
					t.Fatalf("%d cents were reported, and the hold is %q: %s", highest, hold, raw)
				case (doubted || unknown || a.Pending || currency == "EUR") && hold == policy.NoCostHold:
					t.Fatalf("let go in spite of its doubts: %s", raw)
				case a.Before(policy.CostBudget{}) != policy.NoCostHold || a.During(policy.CostBudget{}) != policy.NoCostHold:
					t.Fatalf("held without a budget: %s", raw)
				}
			},
		})
	})
}
