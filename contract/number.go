package contract

import (
	"math/big"
	"strconv"
	"strings"
)

// Number is a positive amount that remembers how it was written: an integer keeps all its
// digits, a float is a binary64. The fingerprint depends on which of the two it is.
type Number struct{ text string }

// String is the canonical spelling: digits for an integer; for a float the shortest digits that
// read back, always with ".0" or an exponent.
func (n Number) String() string { return n.text }

// Float is the nearest binary64.
func (n Number) Float() float64 {
	f, _ := strconv.ParseFloat(n.text, 64) // text was made from a number; only ±Inf could be reported
	return f
}

// IsInteger reports whether the amount was written as an integer.
func (n Number) IsInteger() bool { return !strings.ContainsAny(n.text, ".eE") }

// IntegerNumber returns the number with exactly this integer value.
func IntegerNumber(v *big.Int) Number { return Number{v.String()} }

// FloatNumber returns the number with this value, which must be finite.
func FloatNumber(f float64) Number { return Number{formatFloat(f)} }

// formatFloat spells a finite float so that it reads back exactly: plain digits from 1e-4 up to
// below 1e16, with ".0" when whole; outside that with a signed exponent of at least two digits.
func formatFloat(f float64) string {
	abs := f
	if abs < 0 {
		abs = -abs
	}
	if abs != 0 && (abs < 1e-4 || abs >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
