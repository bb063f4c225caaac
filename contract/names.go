package contract

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	simpleName   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,199}$`)
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	currencyName = regexp.MustCompile(`^[A-Z]{3}$`)
)

// The checks return what is wrong with a text, "" when nothing is.

func checkName(s string) string {
	if !simpleName.MatchString(s) {
		return "is no simple name (a letter or digit, then letters, digits, - and _; at most 200)"
	}
	return ""
}

func checkVariable(s string) string {
	if !variableName.MatchString(s) {
		return "is no name of an environment variable (letters, digits and _, no digit first)"
	}
	return ""
}

func checkCurrency(s string) string {
	if !currencyName.MatchString(s) {
		return "is no currency (three capital letters, such as USD)"
	}
	return ""
}

// checkCapability refuses paths that can match nothing.
func checkCapability(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' }) || slices.Contains(strings.Split(s, "."), "") {
		return "is no dotted path (such as promptCapabilities.image)"
	}
	return ""
}

func checkRelative(s string) string {
	if path.IsAbs(s) || slices.Contains(strings.Split(s, "/"), "..") {
		return "must be relative to the run's workspace and stay inside it"
	}
	return ""
}
