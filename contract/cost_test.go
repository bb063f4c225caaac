package contract_test

import (
	"fmt"
	"strings"
	"testing"

	"greatminds/contract"
	"greatminds/internal/refusal"
)

// E-544
func TestACostBudgetIsAnAmountAndItsCurrency(t *testing.T) {
	const cost, currency = "max_reported_session_cost", "reported_cost_currency"
	for _, c := range []struct{ fields, names string }{
		{cost + ": 0, " + currency + ": USD", cost},
		{cost + ": 0.0, " + currency + ": USD", cost},
		{cost + ": -1, " + currency + ": USD", cost},
		{cost + ": .inf, " + currency + ": USD", cost},
		{cost + ": -.inf, " + currency + ": USD", cost},
		{cost + ": .nan, " + currency + ": USD", cost},
		{cost + ": 1.0e+999, " + currency + ": USD", cost},
		{cost + ": true, " + currency + ": USD", cost},
		{cost + ": '1', " + currency + ": USD", cost},
		{cost + ": [1], " + currency + ": USD", cost},
		{cost + ": 1, " + currency + ": usd", currency},
		{cost + ": 1, " + currency + ": US", currency},
		{cost + ": 1, " + currency + ": USDX", currency},
		{cost + ": 1, " + currency + ": U5D", currency},
		{cost + ": 1, " + currency + ": ''", currency},
		{cost + ": 1, " + currency + ": 123", currency},
		{cost + ": 1", cost},
		{currency + ": USD", currency},
	} {
		_, err := contract.Parse("x", []byte(withBindingField(c.fields)), contract.EmbeddedSchema())
		if r, ok := refusal.Find(err); !ok || r.Status() != refusal.Invalid || !strings.Contains(err.Error(), c.names) {
			t.Errorf("%s: got %v", c.fields, err)
		}
	}
	for text, want := range map[string]string{"1": "1", "0.25": "0.25", "1.0": "1.0", "12345678901234567890": "12345678901234567890"} {
		c, err := contract.Parse("x", []byte(withBindingField(fmt.Sprintf("%s: %s, %s: EUR", cost, text, currency))), contract.EmbeddedSchema())
		if err != nil {
			t.Fatal(err)
		}
		if b := c.Bindings[0]; b.MaxReportedSessionCost.String() != want || *b.ReportedCostCurrency != "EUR" {
			t.Errorf("%s: got %s %s", text, b.MaxReportedSessionCost, *b.ReportedCostCurrency)
		}
	}
}
