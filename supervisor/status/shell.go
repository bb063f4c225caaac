package status

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"greatminds/runstore"
)

// AnswerCommand is the command line that answers a question, as a person may paste it into a shell: an
// option's id is the agent's text, and must stay one word. Where it cannot be written so that a
// terminal shows what it is, the command is the one that asks for a number instead.
func AnswerCommand(id runstore.PermissionID, option string) string {
	show := "greatminds run permission " + string(id)
	word, ok := shellWord(option)
	if !ok {
		return show
	}
	if strings.HasPrefix(option, "-") {
		return show + " --option=" + word
	}
	return show + " --option " + word
}

// shellWord is s as one word of a shell. It is not ok for what has no safe form on one line.
func shellWord(s string) (string, bool) {
	if s == "" || len(s) > 200 || !utf8.ValidString(s) {
		return "", false
	}
	plain := true
	for _, r := range s {
		if !unicode.IsPrint(r) { // spaces other than the plain one, controls, what reorders
			return "", false
		}
		plain = plain && (r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) || strings.ContainsRune("_-.:/@+,%", r))
	}
	if plain {
		return s, true
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'", true
}
