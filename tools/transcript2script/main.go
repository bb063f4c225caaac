// Command transcript2script turns recorded wire transcripts of real ACP agents into scripts for the
// scripted agent of fixtures/agent, so that what a real agent once said can be said again, behind a
// real pipe, to a client of today.
//
//	go run ./tools/transcript2script FILE...            # the scripts, one JSON object a line
//	go run ./tools/transcript2script --table FILE...    # what became of each, as a markdown table
//	go run ./tools/transcript2script --json FILE...     # the same as JSON
//	go run ./tools/transcript2script --copy DIR FILE... # what conversion uses of each, as a file in DIR
//
// A transcript is ndjson, one object a line: t (seconds), d (direction: > client, < agent, ! standard
// error, # facts of the process), and m (a message), raw (a line that is none), cut with head and tail
// (a message of cut characters of which only these two were kept), or note (facts).
//
// Each session of a transcript becomes one launch of the script. Requests and notifications of the
// recording client become `expect` steps, with what they must hold; the agent's answers become `reply`
// steps, so that they carry the ids of the client that is there; everything else that the agent wrote is
// written as it was, a cut message padded to its length; answers of the client become `await` steps. Where
// the client cancelled stands a mark, cancel-N in the Nth turn. The time between the lines is not kept.
// What our client never does is left out where the rest stands without it, and makes the transcript not
// applicable otherwise.
//
// Exit status: 0, 1 when a transcript is not applicable and its script was asked for, 2 for a wrong call
// or a file that is not understood.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	f := flag.NewFlagSet("transcript2script", flag.ContinueOnError)
	f.SetOutput(stderr)
	table := f.Bool("table", false, "print a markdown table of what becomes of each transcript")
	asJSON := f.Bool("json", false, "print the table as JSON")
	into := f.String("copy", "", "write what conversion uses of each transcript into this folder")
	if err := f.Parse(args); err != nil {
		return 2
	}
	all, err := load(f.Args(), *into)
	if err == nil && *table && *asJSON {
		err = errors.New("--table and --json exclude each other")
	}
	if err != nil {
		fmt.Fprintln(stderr, "Error:", err)
		return 2
	}
	switch {
	case *table:
		err = writeTable(stdout, all)
	case *asJSON:
		err = writeJSON(stdout, all)
	case *into == "":
		return scripts(all, stdout, stderr)
	}
	if err != nil {
		fmt.Fprintln(stderr, "Error:", err)
		return 2
	}
	return 0
}

// load reads and converts files, and copies them when into names a folder.
func load(files []string, into string) ([]*converted, error) {
	if len(files) == 0 {
		return nil, errors.New("no transcripts: pass FILE... (see --help)")
	}
	var out []*converted
	for _, file := range files {
		one, lines, err := loadFile(file)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
		if into == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(into, filepath.Base(file)), shortened(lines, one), 0o644); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func loadFile(file string) (*converted, []line, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	lines, err := readTranscript(file, data)
	if err != nil {
		return nil, nil, err
	}
	one, err := convert(strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)), lines)
	return one, lines, err
}

// script is the agent script of a transcript.
func script(one *converted) []byte {
	type launch struct {
		Steps []step `json:"steps"`
	}
	doc := struct {
		Version  int               `json:"version"`
		Vars     map[string]string `json:"vars"`
		Launches []launch          `json:"launches"`
	}{Version: 1, Vars: map[string]string{dollar: "$"}}
	for _, c := range one.Conversations {
		doc.Launches = append(doc.Launches, launch{c.Steps})
	}
	return encoded(doc)
}

// encoded is a value as one line of JSON, its strings as they are.
func encoded(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("transcript2script: %v", err)) // only valid JSON and plain values are put together
	}
	return b.Bytes()
}

func scripts(all []*converted, stdout, stderr io.Writer) int {
	status := 0
	for _, one := range all {
		if no := one.NotApplicable; no != nil {
			fmt.Fprintf(stderr, "Error: %s:%d is not applicable: %s; %s\n", one.Name, no.Line, no.What, no.Why)
			status = 1
			continue
		}
		if _, err := stdout.Write(script(one)); err != nil {
			fmt.Fprintln(stderr, "Error:", err)
			return 2
		}
	}
	return status
}

// shortened keeps what conversion reads: without blanks between members and without facts that
// nothing uses; of a transcript that is not applicable only what the client wrote.
func shortened(lines []line, one *converted) []byte {
	var out []byte
	for _, l := range lines {
		unused := l.D == fact && l.Note.Spawn == nil && l.Note.Tree == "" && l.Note.Finish == nil && l.Note.Timeout == nil
		if unused || one.NotApplicable != nil && l.D != fromClient {
			continue
		}
		kept := l.record
		if l.D == fact {
			short := *l.Note
			if short.Spawn != nil {
				short.Spawn = json.RawMessage("true") // how the recorded program was started is its machine's affair
			}
			kept.Note = &short
		}
		out = append(out, encoded(kept)...)
	}
	return out
}
