package status

import (
	"fmt"
	"strings"

	"greatminds/internal/termsafe"
)

// sheet is a text for a person that is built up, and knows whether it shows less than there is.
type sheet struct {
	strings.Builder
	short bool
}

// left is the line that says how much is not shown.
func (s *sheet) left(format string, n int) {
	s.short = true
	fmt.Fprintf(s, format+"\n", n)
}

// block shows a value beside its name where it has one row, else below it.
func (s *sheet) block(name, value string) {
	all := split(value)
	if len(all) > 1 || len(all) == 1 && len(rows(all[0])) > 1 {
		fmt.Fprintf(s, "%s\n", name)
		s.lines("| ", all)
		return
	}
	fmt.Fprintf(s, "%-9s %s\n", name, strings.Join(rows(value), ""))
}

// lines shows lines below each other, each behind the mark; one that is too wide goes on in further
// rows, so that no blanks before it can push what an agent does out of sight.
func (s *sheet) lines(mark string, all []string) {
	shown := 0
	for i, l := range all {
		for j, row := range rows(l) {
			if shown == maxBlock {
				if j > 0 {
					s.left("    and %d more rows of this line", len(rows(l))-j)
				}
				if rest := len(all) - i - min(j, 1); rest > 0 {
					s.left("    and %d more lines", rest)
				}
				return
			}
			if j > 0 {
				mark = mark[:1] + "…"
			}
			fmt.Fprintf(s, "    %s%s\n", mark, row)
			shown++
		}
		mark = mark[:1] + " "
	}
}

// rows are a line of an agent's, escaped, with its blanks, in pieces of at most maxWide characters.
func rows(line string) []string {
	rest := []rune(termsafe.Line(strings.ReplaceAll(strings.TrimSuffix(line, "\r"), "\t", "    ")))
	var out []string
	for len(rest) > maxWide {
		out, rest = append(out, string(rest[:maxWide])), rest[maxWide:]
	}
	return append(out, string(rest))
}
