package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"greatminds/fixtures/agent"
)

// loaded converts a file of the test's own.
func loaded(t *testing.T, file string) *converted {
	t.Helper()
	one, _, err := loadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return one
}

// testdata holds what becomes of every transcript, as the program writes it: a transcript that is
// not in it, one that can be played after all, and one that cannot any more show here.
func TestTableIsWhole(t *testing.T) {
	var all []*converted
	for _, r := range recorded(t) {
		all = append(all, r.one)
	}
	for flag, c := range map[string]struct {
		file  string
		write func(io.Writer, []*converted) error
	}{"--table": {"transcripts.md", writeTable}, "--json": {"transcripts.ndjson", writeJSON}} {
		want, err := os.ReadFile(filepath.Join("testdata", c.file))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := c.write(&out, all); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), out.String()); diff != "" {
			t.Errorf("go run ./tools/transcript2script %s fixtures/transcripts/*.ndjson >tools/transcript2script/testdata/%s\n%s", flag, c.file, diff)
		}
	}
	// The program itself, for a few.
	for flag, text := range map[string]string{"--table": "| kimi-text | new | end_turn, end_turn | 11 |", "--json": `{"transcript":"kimi-text","applicable":true`} {
		var out, errs bytes.Buffer
		if code := run([]string{flag, filepath.Join("..", "..", "fixtures", "transcripts", "kimi-text.ndjson")}, &out, &errs); code != 0 || !strings.Contains(out.String(), text) {
			t.Errorf("%s: exit status %d, %s%s", flag, code, &out, &errs)
		}
	}
}

// What a client like ours can cause is played.
func TestUsualScenariosAreApplicable(t *testing.T) {
	usual := regexp.MustCompile(`-(text|tool-[a-z-]+|cancel[a-z-]*|kill-mid|load-[a-z-]+|error[s0-9]*|odd)$`)
	count := 0
	for _, r := range recorded(t) {
		one := r.one
		expected := usual.MatchString(one.Name)
		if expected {
			count++
		}
		if applicable := one.NotApplicable == nil; applicable != expected {
			t.Errorf("%s: applicable %v, want %v: %+v", one.Name, applicable, expected, one.NotApplicable)
		}
	}
	if count < 140 {
		t.Errorf("%d of the usual transcripts", count)
	}
}

const begin = `{"d":"#","note":{"spawn":true}}
{"d":">","m":{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}}
{"d":"<","m":{"jsonrpc":"2.0","id":1,"result":{"agentCapabilities":{"loadSession":true}}}}
`

const opened = begin + `{"d":">","m":{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"$CWD"}}}
{"d":"<","m":{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s","modes":{"availableModes":[]}}}}
`

const prompted = opened + `{"d":">","m":{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}}
`

func TestNotApplicable(t *testing.T) {
	for name, c := range map[string]struct{ text, what string }{
		"bytes":          {opened + `{"d":">","raw":"this is no JSON"}`, "this is no JSON"},
		"order":          {`{"d":">","m":{"id":1,"method":"session/new","params":{}}}`, "session/new before initialize"},
		"version":        {strings.Replace(begin, `"protocolVersion":1`, `"protocolVersion":99`, 1), "protocolVersion 99"},
		"file system":    {strings.Replace(begin, `"clientCapabilities":{}`, `"clientCapabilities":{"fs":{"readTextFile":true}}`, 1), "file system"},
		"twice":          {begin + strings.Split(begin, "\n")[1], "initialize again"},
		"unknown method": {opened + `{"d":">","m":{"id":3,"method":"no/such","params":{}}}`, "no/such"},
		"notification":   {opened + `{"d":">","m":{"method":"no/such","params":{}}}`, "no/such"},
		"config option":  {opened + `{"d":">","m":{"id":3,"method":"session/set_config_option","params":{}}}`, "set_config_option"},
		"late mode":      {prompted + `{"d":">","m":{"id":4,"method":"session/set_mode","params":{}}}`, "set_mode"},
		"early prompt":   {begin + `{"d":">","m":{"id":2,"method":"session/prompt","params":{}}}`, "before a session"},
		"two sessions":   {prompted + `{"d":">","m":{"id":4,"method":"session/new","params":{}}}`, "during a turn"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "one.ndjson")
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			one := loaded(t, file)
			if one.NotApplicable == nil || !strings.Contains(one.NotApplicable.What, c.what) || one.Conversations != nil {
				t.Errorf("got %+v, want something of %q", one.NotApplicable, c.what)
			}
			var out, errs bytes.Buffer
			if code := run([]string{file}, &out, &errs); code != 1 || out.Len() > 0 || !strings.Contains(errs.String(), "not applicable") {
				t.Errorf("exit status %d, %s, %s", code, &out, &errs)
			}
		})
	}
}

func TestLeftOut(t *testing.T) {
	text := prompted + `{"d":">","m":{"id":4,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}}
{"d":"<","m":{"method":"session/update","params":{"sessionId":"s","update":{}}}}
{"d":"<","m":{"id":4,"result":{"stopReason":"end_turn"}}}
{"d":">","m":{"method":"session/cancel","params":{"sessionId":"s"}}}
`
	file := filepath.Join(t.TempDir(), "one.ndjson")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	one := loaded(t, file)
	var lines []int
	for _, o := range one.LeftOut {
		lines = append(lines, o.Line)
	}
	if diff := cmp.Diff([]int{7, 8, 10}, lines); diff != "" || one.NotApplicable != nil {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
	if got := one.Conversations[0].Plan; len(got.Turns) != 1 || got.Turns[0].End.String() != "no answer" || got.Updates != 0 {
		t.Errorf("plan %+v", got)
	}
}

func TestWrongCalls(t *testing.T) {
	folder := t.TempDir()
	files := map[string]string{
		"not JSON": begin + "{", "empty": "\n", "direction": `{"d":"?","m":{}}`, "nothing in it": `{"d":">"}`,
		"no message": `{"d":">","m":3}`, "no session": begin, "silence": `{"d":"#","note":{"spawn":true}}`,
		"both":      prompted + `{"d":"<","m":{"id":3,"result":{},"error":{"code":1}}}`,
		"neither":   prompted + `{"d":"<","m":{"id":3}}`,
		"no code":   prompted + `{"d":"<","m":{"id":3,"error":{}}}`,
		"no status": prompted + `{"d":"#","note":{"finish":{"how":"eof","rc":"odd"}}}`,
		"signal":    prompted + `{"d":"#","note":{"finish":{"how":"kill","rc":-99}}}`,
		"no fit":    prompted + `{"d":"<","cut":9000,"head":"{\"a\": [","tail":"]]"}`,
	}
	calls := [][]string{{}, {"--no-such"}, {filepath.Join(folder, "missing")}, {"--table", "--json", recorded(t)[0].file}}
	for name, text := range files {
		file := filepath.Join(folder, name+".ndjson")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		calls = append(calls, []string{file})
	}
	for _, call := range calls {
		var out, errs bytes.Buffer
		if code := run(call, &out, &errs); code != 2 || out.Len() > 0 || errs.Len() == 0 {
			t.Errorf("%v: exit status %d, output %q, message %q", call, code, &out, &errs)
		}
	}
}

// Every script is one that the agent takes, and its text arrives as it was recorded: $CWD as the
// folder, and what looks like a reference as itself.
func TestTextArrives(t *testing.T) {
	text := opened + `{"d":"<","m":{"method":"_x","params":{"t":"${cwd} $CWD ${session} $5 {x} $"}}}
{"d":"!","raw":"in $CWD: ${cwd} and ${session}"}
{"d":"!","raw":"and more"}
{"d":"<","raw":"no ${cwd} JSON","notjson":true}
{"d":">","m":{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}}
{"d":"<","m":{"id":3,"result":{"stopReason":"end_turn","t":"${cwd} $CWD"}}}
{"d":"#","note":{"finish":{"how":"eof","rc":3}}}
`
	folder := t.TempDir()
	file := filepath.Join(folder, "one.ndjson")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := run([]string{file}, &out, &errs); code != 0 {
		t.Fatalf("exit status %d: %s", code, &errs)
	}
	if _, err := agent.Parse("script", out.Bytes()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "agent-script.json")
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	p, o := launch(t, path)
	for _, request := range []string{
		`{"id":"a","method":"initialize","params":{"protocolVersion":1}}`, `{"id":"b","method":"session/new","params":{"cwd":"x"}}`,
		`{"id":"c","method":"session/prompt","params":{"sessionId":"s","prompt":[]}}`,
	} {
		if _, err := o.Stdin.WriteString(request + "\n"); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.Stdin.Close(); err != nil {
		t.Fatal(err)
	}
	<-p.ended
	got, want := read(t, o.Stdout), strings.ReplaceAll(`{"jsonrpc":"2.0","id":"a","result":{"agentCapabilities":{"loadSession":true}}}
{"jsonrpc":"2.0","id":"b","result":{"sessionId":"s","modes":{"availableModes":[]}}}
{"method":"_x","params":{"t":"${cwd} HERE ${session} $5 {x} $"}}
no ${cwd} JSON
{"jsonrpc":"2.0","id":"c","result":{"stopReason":"end_turn","t":"${cwd} HERE"}}
`, "HERE", p.folder)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("in "+p.folder+": ${cwd} and ${session}\nand more\n", read(t, o.Stderr)); diff != "" {
		t.Error(diff)
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 3 {
		t.Errorf("exit status %d", code)
	}
}

func read(t *testing.T, f *os.File) string {
	t.Helper()
	defer f.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(f); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// What --copy writes converts to the same scripts.
func TestCopies(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "one.ndjson")
	text := strings.ReplaceAll(prompted, `{"spawn":true}`, `{"spawn":["/usr/bin/node"],"env":["HOME"]}`) +
		`{"d":"#","note":{"tree":"idle","procs":[{"pid":1}]}}
{"d":"#","note":{"eof":"stdout"}}
{"d": "<", "m": {"id": 3, "result": {"stopReason": "<end>"}}}
{"d":"#","note":{"finish":{"how":"eof","rc":0,"took_s":1}}}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	into := t.TempDir()
	var out, errs bytes.Buffer
	if code := run([]string{"--copy", into, file}, &out, &errs); code != 0 || out.Len() > 0 {
		t.Fatalf("exit status %d: %s%s", code, &out, &errs)
	}
	copied := filepath.Join(into, "one.ndjson")
	if got, want := string(script(loaded(t, copied))), string(script(loaded(t, file))); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	data, err := os.ReadFile(copied)
	if err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{"node", "HOME", "pid", "stdout", "took_s", ": "} {
		if bytes.Contains(data, []byte(gone)) {
			t.Errorf("%q is in the copy:\n%s", gone, data)
		}
	}
}
