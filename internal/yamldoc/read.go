package yamldoc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"gopkg.in/yaml.v3"
)

// Read reads one document. The tree is nil when the file is not YAML at all; else it is whole,
// with Invalid nodes where the faults stand, so that the caller can go on and report its own
// faults together with these.
func Read(file string, data []byte, o Options) (*Node, *Faults) {
	o = o.withDefaults()
	f := NewFaults(file, o.MaxFaults)
	if len(data) > o.MaxBytes {
		f.AddAt(0, 0, "make it shorter", "the file has %d bytes, but %d are the limit", len(data), o.MaxBytes)
		return nil, f
	}
	s := newSource(data)
	if !s.checkEncoding(f) {
		return nil, f
	}
	dec := yaml.NewDecoder(bytes.NewReader(s.data))
	var doc yaml.Node
	err := decode(dec, &doc)
	if errors.Is(err, io.EOF) && o.Null {
		return &Node{Kind: Null, Line: 1, Column: 1}, f
	}
	if errors.Is(err, io.EOF) {
		f.AddAt(1, 1, "write it, or remove the file", "the file is empty")
		return nil, f
	}
	if err != nil {
		s.reportSyntax(f, err)
		return nil, f
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		f.AddAt(1, 1, "write a mapping", "the file holds no document")
		return nil, f
	}
	b := builder{source: s, faults: f, o: o}
	b.directives(doc.Content[0].Line)
	root := b.node(doc.Content[0], 1)
	b.further(dec)
	return root, f
}

// decode is Decode without panics. The parser is not ours and its input is: a bug in it must
// cost a refusal, not the daemon.
func decode(dec *yaml.Decoder, into *yaml.Node) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("yaml: the parser failed: %v", p)
		}
	}()
	return dec.Decode(into)
}

var syntaxLine = regexp.MustCompile(`^yaml: (?:line ([0-9]+): )?`)

// reportSyntax says where the file stops being YAML. Lines indented with a tab are the usual
// cause and are all named; else the parser's own line is bettered, since for some faults it is
// where the broken block begins.
func (s *source) reportSyntax(f *Faults, err error) {
	for n := range s.starts {
		line := s.line(n + 1)
		lead := line[:indent(line)-1]
		if at := bytes.IndexByte(lead, '\t'); at >= 0 && len(lead) < len(line) {
			f.AddAt(n+1, at+1, "indent with spaces", "the line is indented with a tab")
		}
	}
	if f.Len() > 0 {
		return
	}
	message, line := err.Error(), 1
	if m := syntaxLine.FindStringSubmatch(message); m != nil {
		message = message[len(m[0]):]
		if m[1] != "" {
			line, _ = strconv.Atoi(m[1]) // digits by the expression; too many leave the largest int
		}
	}
	line = s.firstBrokenLine(line)
	f.AddAt(line, indent(s.line(line)), "correct the indentation, quotes or brackets around it",
		"not valid YAML from here on: %s", message)
}

// Bounds of the search for the first broken line: lines of the file, bytes parsed in all, and
// how many lines a construct may stay open (a quoted text, a bracket) before it counts as broken
// for good.
const (
	searchLines = 2000
	searchBytes = 1 << 20
	searchOpen  = 24
)

// firstBrokenLine returns the line after the longest run of whole lines that still parses. The
// parser's own opinion is exact for some faults, and the beginning of the broken block for
// others; it is returned when the bounds do not suffice.
func (s *source) firstBrokenLine(guess int) int {
	guess = min(guess, len(s.starts))
	budget := searchBytes
	parses := func(lines int) bool {
		head := s.upTo(lines)
		budget -= len(head) + 512
		err := decode(yaml.NewDecoder(bytes.NewReader(head)), new(yaml.Node))
		return err == nil || errors.Is(err, io.EOF)
	}
	if len(s.starts) > searchLines {
		return guess
	}
	good, bad := 0, len(s.starts)
	for good+1 < bad && budget > 0 {
		if half := (good + bad) / 2; parses(half) {
			good = half
		} else {
			bad = half
		}
		// The bad end may only be a construct that is still open and closes later on.
		for n := bad + 1; good+1 == bad && n < min(len(s.starts), bad+searchOpen) && budget > 0; n++ {
			if parses(n) {
				good, bad = n, len(s.starts)
			}
		}
	}
	if budget <= 0 {
		return guess
	}
	return max(good+1, guess)
}
