package refusal

// Codes of the test fixtures: input that a person writes for the scripted agent and the case harness.
const (
	// CodeScriptInvalid is an agent script that the scripted agent does not understand word for word.
	CodeScriptInvalid Code = "script_invalid"
	// CodeCaseInvalid is a case folder that the case harness does not understand word for word.
	CodeCaseInvalid Code = "case_invalid"
)

func init() {
	register([]Entry{
		{CodeScriptInvalid, Invalid, "the scripted agent does not understand its script"},
		{CodeCaseInvalid, Invalid, "the case harness does not understand a case"},
	})
}
