package contract

import "strings"

// inherited names what every agent gets of the environment that it is started from; nothing else
// gets in unless its manifest refers to it.
var inherited = []string{"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"}

// Environ returns the environment that an agent is started with, as NAME=value, and the values that
// its manifest refers to, which may be secrets. Variables that are not set are left out, and so are
// shell functions that bash has exported.
// Spec: reference 1.2, environment given to an assigned agent.
func (a Agent) Environ(getenv func(string) string) (env, secrets []string) {
	env = []string{}
	for _, name := range inherited {
		if v := getenv(name); v != "" && !strings.HasPrefix(v, "()") {
			env = append(env, name+"="+v)
		}
	}
	for _, ref := range a.Environment {
		if v := getenv(ref.Parent); v != "" {
			env = append(env, ref.Child+"="+v)
			secrets = append(secrets, v)
		}
	}
	for _, s := range a.MCPServers {
		for _, name := range s.Variables() {
			if v := getenv(name); v != "" {
				secrets = append(secrets, v)
			}
		}
	}
	return env, secrets
}
