// Package knownagents is what is known of ACP agents that people use: how each is started and asked
// for its version, the mode in which it asks for permissions, and how it is logged in.
//
// It owns one table. A line of it was measured on the named version, from the agent's own programs
// and its traffic, unless its comment says otherwise; what was not measured is left out, and "not
// known" never counts as "does not ask". The package is pure: it looks at no file and starts
// nothing. setup asks the programs, `run doctor` judges bindings by it.
package knownagents

// Agent is one agent that people use.
type Agent struct {
	// ID is the name of the preset, and of the manifest that setup writes.
	ID string
	// Title is what its maker calls it.
	Title string
	// Program is the executable to look for, Args what makes it speak ACP.
	Program string
	Args    []string
	// Harness is a second program that Program starts and that must be there too, HarnessVariable
	// the variable that can name another; empty for none.
	Harness, HarnessVariable string
	// Bundled says that Program brings a harness of its own, with a version of its own.
	Bundled bool
	// Speechless is the maker's program that people have instead of Program, and that does not
	// speak ACP itself; empty for none.
	Speechless string
	// Install is the command line that installs what was measured last.
	Install string
	// Editions are the packages that it comes in, the current one first.
	Editions []Edition
	// Asking says when it asks for permissions.
	Asking Asking
	// Mode is the mode in which it asks, for AsksInMode; empty otherwise.
	Mode string
	// Silent are modes in which it uses tools without asking.
	Silent []string
	// LoadFails says that it offers to load an earlier session and then always fails to.
	LoadFails bool
	// Login says what authentication it needs.
	Login Login
	// Notes are facts that a person should know before relying on it.
	Notes []string
	// Preset says that setup can write a manifest for it.
	Preset bool
}

// Edition is one package of an agent.
type Edition struct {
	// Package is its name in its registry, Name what it calls itself at initialize, Measured the
	// version that the facts are from.
	Package, Name, Measured string
	// Default is the mode of a new session, empty where its modes are about something else.
	// DefaultAsks says that it asks in it.
	Default     string
	DefaultAsks bool
}

// Asking says when an agent asks for permissions.
type Asking string

// When an agent asks.
const (
	// AsksInMode: in its mode Mode, which a binding must set or at least should.
	AsksInMode Asking = "in_mode"
	// AsksByDefault: without anything being set.
	AsksByDefault Asking = "by_default"
	// AsksByOwnConfig: where its own configuration file says so.
	AsksByOwnConfig Asking = "by_own_config"
	// NeverAsks: it uses its tools unasked, whatever is set.
	NeverAsks Asking = "never"
)

// Login says how an agent is authenticated.
type Login struct {
	// Credentials are variables of which one is enough; Settings are others that it reads.
	Credentials, Settings []string
	// Method is the ACP method to call when the first credential is set; empty where none is needed.
	Method string
	// NoMethod says why none is called although a credential is set; empty where there is nothing to say.
	NoMethod string
	// Hint says how to log in without a variable.
	Hint string
}

// All returns every agent, in alphabetical order.
func All() []Agent { return table }

// Find returns the agent with this id that setup can write a manifest for.
func Find(id string) (Agent, bool) {
	for _, a := range table {
		if a.ID == id && a.Preset {
			return a, true
		}
	}
	return Agent{}, false
}

// IDs returns the ids that [Find] knows.
func IDs() []string {
	var ids []string
	for _, a := range table {
		if a.Preset {
			ids = append(ids, a.ID)
		}
	}
	return ids
}
