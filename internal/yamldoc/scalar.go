package yamldoc

import (
	"regexp"
	"strings"
)

// Plain scalars are resolved by a table of our own: what all readers agree about is resolved,
// what they disagree about is refused. The readers compared are those of YAML 1.1 (which the
// original uses) and of the YAML 1.2 core schema.
//
//	decimal integers  0  7  -12  +3            integer
//	floats with a dot 1.5  .5  1.  1.0e+22     float (an exponent needs its sign)
//	true false        in three spellings       boolean
//	010 0x10 0b1 1_0 1:30 1_0.5 .inf .nan      refused: numbers to some
//	yes no on off     in three spellings       refused: booleans to some
//	~ null, nothing   in three spellings       null
//	2026-11-30        and with a time          refused: dates to some
//	= <<                                       refused: special to some
//	a text that ends with a colon, as in [a:]  refused: a key without value to some
//	the rest                                   text
var (
	integerText  = regexp.MustCompile(`^[-+]?(?:0|[1-9][0-9]*)$`)
	floatText    = regexp.MustCompile(`^(?:[-+]?[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+][0-9]+)?$`)
	booleanText  = regexp.MustCompile(`^(?:true|True|TRUE|false|False|FALSE)$`)
	nullText     = regexp.MustCompile(`^(?:~|null|Null|NULL)$`)
	disputedBool = regexp.MustCompile(`^(?:yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF)$`)
	disputedInt  = regexp.MustCompile(`^[-+]?(?:0b[01_]+|0[0-7_]+|[1-9][0-9_]*|0x[0-9a-fA-F_]+|[1-9][0-9_]*(?::[0-5]?[0-9])+)$`)
	disputedReal = regexp.MustCompile(`^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?|` +
		`[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$`)
	disputedDate = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$|^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}` +
		`(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::[0-9]{2})?))?$`)
)

// resolve says what a plain scalar is. Where readers disagree the kind is Invalid and the other
// two say what some take it for and what to do. The first character decides which patterns are
// tried, since most scalars are words.
func resolve(text string) (kind Kind, dispute, remedy string) {
	switch {
	case text == "":
		return Null, "", ""
	case text == "=", text == "<<":
		return Invalid, "a default or merge key", "quote it"
	case strings.HasSuffix(text, ":"):
		return Invalid, "a key without a value", "quote it"
	case strings.IndexByte("+-.0123456789", text[0]) >= 0:
		return resolveNumber(text)
	case strings.IndexByte("~nNyYoOtTfF", text[0]) >= 0:
		return resolveWord(text)
	}
	return String, "", ""
}

func resolveWord(text string) (kind Kind, dispute, remedy string) {
	switch {
	case booleanText.MatchString(text):
		return Boolean, "", ""
	case nullText.MatchString(text):
		return Null, "", ""
	case disputedBool.MatchString(text):
		return Invalid, "true or false", "quote it, or write " + plainBool(text)
	}
	return String, "", ""
}

func resolveNumber(text string) (kind Kind, dispute, remedy string) {
	switch {
	case integerText.MatchString(text):
		return Integer, "", ""
	case floatText.MatchString(text):
		return Float, "", ""
	case disputedInt.MatchString(text):
		return Invalid, "a number", "quote it, or write " + plainInteger(text)
	case disputedReal.MatchString(text):
		return Invalid, "a number", "quote it, or write plain decimal digits"
	case disputedDate.MatchString(text):
		return Invalid, "a date", "quote it"
	}
	return String, "", ""
}
