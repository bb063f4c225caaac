package tasks

import (
	"fmt"
	"strings"

	"greatminds/internal/refusal"
)

// requestField is the tests field that cites a recorded command.
const requestField = "command_request_id"

// purposeValidation is the purpose of commands whose outcome is a test result.
const purposeValidation = "validation"

// citation returns a cited command request, or says why it does not count as evidence.
// Spec: "Configured commands and evidence".
func (f Facts) citation(id string) (CommandFact, string) {
	fact, known := f.Commands[id]
	switch {
	case !known || fact.RunID != f.RunID:
		return fact, "is no command request of this run"
	case !fact.Completed:
		return fact, fmt.Sprintf("has not completed: it is %s%s", fact.Status, behind(fact.Reason))
	case fact.Stale != "":
		return fact, "no longer counts: " + fact.Stale
	}
	return fact, ""
}

func behind(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

// fromReceipt fills a tests block from the command request that it cites. The receipt's word
// stands above the author's: what contradicts it is refused.
func (d *draft) fromReceipt() {
	v, given := d.fields.Lookup(requestField)
	switch {
	case !given && d.kind == blockTests && len(d.facts.ValidationCommands) > 0:
		d.fault(refusal.CodeCommandEvidence, requestField,
			"run `greatminds run command "+d.facts.ValidationCommands[0]+" --request-id ID`, then cite ID",
			"a tests block of %s must cite a recorded command (%s)", d.facts.Role,
			strings.Join(d.facts.ValidationCommands, ", "))
		return
	case !given:
		return
	}
	d.fields = d.fields.Without(requestField)
	if d.kind != blockTests {
		d.fault(refusal.CodeCommandEvidence, requestField, "leave it out", "a %s block cites no command", d.kind)
		return
	}
	id, _ := v.(string)
	fact, problem := d.facts.citation(id)
	switch {
	case problem != "":
		d.fault(refusal.CodeCommandEvidence, requestField, "cite a finished request of this run, with the source unchanged since",
			"the command request %s %s", shown(v), problem)
		return
	case fact.Purpose != purposeValidation:
		d.fault(refusal.CodeCommandEvidence, requestField, "cite a validation command",
			"the command %s is for %s, not for validation", fact.CommandID, fact.Purpose)
		return
	}
	d.request = id
	result := "pass"
	if fact.ExitCode != 0 {
		result = "fail"
	}
	d.fill("test_command", shellQuoted(fact.Argv))
	d.fill("test_result", result)
}

// fill sets a field to what a receipt says, and refuses another word in its place.
func (d *draft) fill(key, value string) {
	if v, given := d.fields.Lookup(key); given && v != value {
		d.fault(refusal.CodeCommandEvidence, key, "leave it out", "tests.%s is %s, but the recorded command says %s",
			key, shown(v), shown(value))
	}
	d.fields = d.fields.With(key, value)
}

// shellQuoted spells an argument list so that a POSIX shell would read it back.
func shellQuoted(argv []string) string {
	words := make([]string, 0, len(argv))
	for _, arg := range argv {
		if arg != "" && strings.Trim(arg, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./-_") == "" {
			words = append(words, arg)
			continue
		}
		words = append(words, "'"+strings.ReplaceAll(arg, "'", `'"'"'`)+"'")
	}
	return strings.Join(words, " ")
}
