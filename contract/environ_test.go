package contract_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"greatminds/contract"
)

func TestAnAgentGetsTheListedVariablesAndThoseItsManifestNames(t *testing.T) {
	there := map[string]string{"HOME": "/h", "PATH": "/bin", "TERM": "() { :; }", "SHELL": "", "KEY": "k1", "OTHER": "x", "GIT_DIR": "y"}
	a := contract.Agent{Environment: []contract.EnvRef{{Child: "API_KEY", Parent: "KEY"}, {Child: "B", Parent: "UNSET"}}}
	env, secrets := a.Environ(func(name string) string { return there[name] })
	if d := cmp.Diff([]string{"HOME=/h", "PATH=/bin", "API_KEY=k1"}, env); d != "" {
		t.Errorf("environment (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"k1"}, secrets); d != "" {
		t.Errorf("secrets (-want +got):\n%s", d)
	}
}
