package contract

import (
	"math/big"
	"strconv"
	"strings"

	"greatminds/internal/yamldoc"
)

// Number is a positive amount that remembers how it was written: an integer keeps all its
// digits, a float is a binary64. The fingerprint depends on which of the two it is.
type Number struct{ text string }

// IntegerNumber returns the number with exactly this integer value.
func IntegerNumber(v *big.Int) Number { return Number{v.String()} }

// FloatNumber returns the number with this value, which must be finite.
func FloatNumber(f float64) Number { return Number{yamldoc.FormatFloat(f)} }

// String is the canonical spelling: digits for an integer; for a float the shortest digits that
// read back, always with ".0" or an exponent.
func (n Number) String() string { return n.text }

// Float is the nearest binary64.
func (n Number) Float() float64 {
	f, _ := strconv.ParseFloat(n.text, 64) // made from a number; only a range error is possible
	return f
}

// IsInteger reports whether the amount was written as an integer.
func (n Number) IsInteger() bool { return !strings.ContainsAny(n.text, ".e") }
