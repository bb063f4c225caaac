package tasks

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Plain scalars are resolved by a table of our own, the part on which all YAML versions agree:
// decimal integers, floats with a dot, true and false, null. A spelling that one version reads
// as a number, boolean, date or null and another as text is refused, so that another tool on the
// same file does not see another value.
var (
	plainInt   = regexp.MustCompile(`^[-+]?(?:0|[1-9][0-9]*)$`)
	plainFloat = regexp.MustCompile(`^(?:[-+]?[0-9]+\.[0-9]*(?:[eE][-+][0-9]+)?|\.[0-9]+(?:[eE][-+][0-9]+)?)$`)

	// What YAML 1.1 alone takes for a number or a date.
	oldNumber = regexp.MustCompile(`^(?:[-+]?0b[01_]+|[-+]?0[0-7_]+|[-+]?[0-9][0-9_]*|[-+]?0x[0-9a-fA-F_]+|` +
		`[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+|` +
		`[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?|` +
		`[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$`)
	oldDate = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$|^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \t]+)[0-9]{1,2}:` +
		`[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::[0-9]{2})?))?$`)
	// What YAML 1.2 alone takes for a number; we quote it when we write it.
	newNumber = regexp.MustCompile(`^(?:0o[0-7]+|[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?)$`)
)

var plainWords = map[string]any{
	"": nil, "null": nil, "Null": nil, "NULL": nil,
	"true": true, "True": true, "TRUE": true, "false": false, "False": false, "FALSE": false,
	".inf": math.Inf(1), "-.inf": math.Inf(-1), ".nan": math.NaN(),
}

// refusedWords are plain words that only some readers take for text, with what to write instead.
var refusedWords = map[string]string{
	"~": "null", "yes": "true", "Yes": "true", "YES": "true", "on": "true", "On": "true", "ON": "true",
	"no": "false", "No": "false", "NO": "false", "off": "false", "Off": "false", "OFF": "false",
}

// resolvePlain returns the value of a plain scalar, or says how it should be written instead.
func resolvePlain(text string) (value any, remedy string) {
	if v, ok := plainWords[text]; ok {
		return v, ""
	}
	if instead, ok := refusedWords[text]; ok {
		return nil, "quote it, or write " + instead
	}
	switch {
	case text == "=" || text == "<<":
		return nil, "quote it"
	case plainInt.MatchString(text):
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, "quote it: it does not fit into 64 bits"
		}
		return n, ""
	case plainFloat.MatchString(text):
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, "quote it: it does not fit into a 64-bit float"
		}
		return f, ""
	case oldNumber.MatchString(text):
		return nil, "quote it, or write it as a plain decimal number"
	case oldDate.MatchString(text):
		return nil, "quote it: dates are text"
	}
	return text, ""
}

// ambiguous reports whether some YAML reader takes the plain text for anything but text.
func ambiguous(text string) bool {
	if _, ok := plainWords[text]; ok {
		return true
	}
	if _, ok := refusedWords[text]; ok {
		return true
	}
	lower := strings.ToLower(text)
	switch lower {
	case "y", "n", "+.inf", "-.inf", ".inf", ".nan", "true", "false", "null", "yes", "no", "on", "off":
		return true
	}
	return text == "=" || text == "<<" || oldNumber.MatchString(text) || oldDate.MatchString(text) ||
		newNumber.MatchString(text)
}

// floatText spells a float so that every YAML version reads it back as the same float: always
// with a dot, and with a signed exponent where there is one.
func floatText(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return ".inf"
	case math.IsInf(f, -1):
		return "-.inf"
	case math.IsNaN(f):
		return ".nan"
	}
	text := strconv.FormatFloat(f, 'g', -1, 64)
	mantissa, exponent, has := strings.Cut(text, "e")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	if has {
		return mantissa + "e" + exponent
	}
	return mantissa
}
