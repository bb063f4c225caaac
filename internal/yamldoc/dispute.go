package yamldoc

import (
	"math/big"
	"strings"
)

// plainBool is the undisputed spelling of yes, no, on and off.
func plainBool(text string) string {
	switch strings.ToLower(text) {
	case "yes", "on":
		return "true"
	}
	return "false"
}

// plainInteger is the decimal value that YAML 1.1 gives a disputed integer: octal, hexadecimal,
// binary, sexagesimal or with underscores.
func plainInteger(text string) string {
	digits := strings.ReplaceAll(text, "_", "")
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign = "-"
	}
	digits = strings.TrimLeft(digits, "+-")
	value, ok := new(big.Int), false
	switch {
	case strings.Contains(digits, ":"):
		value, ok = sexagesimal(digits)
	case strings.HasPrefix(digits, "0x"), strings.HasPrefix(digits, "0b"):
		_, ok = value.SetString(digits, 0)
	case strings.HasPrefix(digits, "0") && len(digits) > 1:
		_, ok = value.SetString(digits, 8)
	default:
		_, ok = value.SetString(digits, 10)
	}
	if !ok || len(digits) > 40 {
		return "plain decimal digits"
	}
	return sign + value.String()
}

func sexagesimal(digits string) (*big.Int, bool) {
	value, sixty := new(big.Int), big.NewInt(60)
	for part := range strings.SplitSeq(digits, ":") {
		n, ok := new(big.Int).SetString(part, 10)
		if !ok {
			return nil, false
		}
		value.Mul(value, sixty).Add(value, n)
	}
	return value, true
}
