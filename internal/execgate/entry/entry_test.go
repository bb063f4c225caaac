package entry

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAnOrdinaryProcessHasNoRole(t *testing.T) {
	if Own() != nil {
		t.Fatalf("got %+v", Own())
	}
}

func TestDecimal(t *testing.T) {
	for n, want := range map[int]string{0: "0", 7: "7", 10: "10", 4194304: "4194304"} {
		if got := decimal(n); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
