package main

import (
	"fmt"
	"strings"
	"time"
)

// table prints rows as Markdown.
type table struct{ b strings.Builder }

func newTable() *table {
	t := &table{}
	t.b.WriteString("| program | finished runs | ready ms | resident MB | status ms | status kB | change ms | status ms, no daemon | change ms, no daemon | bare process ms | clean stop ms |\n")
	t.b.WriteString("| --- " + strings.Repeat("| ---: ", 10) + "|\n")
	return t
}

func (t *table) add(r row) {
	ms := func(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d.Microseconds())/1000) }
	fmt.Fprintf(&t.b, "| %s | %d | %s | %.1f | %s | %.1f | %s | %s | %s | %s | %s |\n", r.program, r.runs, ms(r.ready), float64(r.rssKB)/1000,
		ms(r.status), float64(r.bytes)/1000, ms(r.change), ms(r.alone), ms(r.change0), ms(r.bare), ms(r.stop))
}

// String returns the whole table.
func (t *table) String() string { return t.b.String() }
