package refusal

import "sort"

// Entry is one listed code.
type Entry struct {
	Code Code
	// Status is the exit status of a command refused with this code.
	Status Status
	// Meaning is one sentence for the documentation.
	Meaning string
}

// Codes that belong to no single room.
const (
	// CodeFailed is the code of an error that names none.
	CodeFailed Code = "failed"
	// CodeUsage is a wrong flag, argument or combination of them.
	CodeUsage Code = "usage"
	// CodeNotFound is a named thing that does not exist.
	CodeNotFound Code = "not_found"
	// CodeOperatorOnly is an operator's action asked for by an assigned agent.
	CodeOperatorOnly Code = "operator_only"
	// CodeCredential is a missing, wrong or ended run credential.
	CodeCredential Code = "run_credential"
)

var general = []Entry{
	{CodeFailed, Failed, "something failed that has no code of its own"},
	{CodeUsage, Invalid, "a flag or an argument is wrong"},
	{CodeNotFound, Failed, "what was named does not exist"},
	{CodeOperatorOnly, Forbidden, "only the operator may do this, and the caller is an assigned agent"},
	{CodeCredential, Forbidden, "the run credential is missing, wrong, or its run has ended"},
}

// listed holds every code once; each room adds its table in a file of its own here.
var listed = map[Code]Entry{}

func register(entries []Entry) {
	for _, e := range entries {
		if _, twice := listed[e.Code]; twice {
			panic("refusal: code listed twice: " + string(e.Code))
		}
		listed[e.Code] = e
	}
}

func init() { register(general) }

// Lookup returns the table entry of a code.
func Lookup(c Code) (Entry, bool) {
	e, ok := listed[c]
	return e, ok
}

// All returns every listed code in alphabetical order.
func All() []Entry {
	all := make([]Entry, 0, len(listed))
	for _, e := range listed {
		all = append(all, e)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Code < all[j].Code })
	return all
}
