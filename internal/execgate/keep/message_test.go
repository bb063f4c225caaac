package keep

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func FuzzParseMessage(f *testing.F) {
	f.Add([]byte(`{"kind":"up","pid":5,"grouped":true}`))
	f.Add([]byte(`{"kind":"stop","term":1000,"kill":5}`))
	f.Add([]byte(`{"kind":"empty","survivors":[{"pid":1}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if m, err := ParseMessage(data); err != nil && m.Kind != "" {
			t.Errorf("%q: error %v and a message %+v", data, err, m)
		}
	})
}
