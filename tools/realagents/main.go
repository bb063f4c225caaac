// Command realagents runs real ACP agents through the demo's pipeline, against a stand-in for
// their models on loopback, and prints what was seen.
//
//	realagents [--cache DIR] [--lightest] [--json FILE] [--markdown FILE] [AGENT...]
//
// Agents are installed by pinned version into the cache folder. Each tool call of an agent asks
// for a permission, which is answered by the operator's own command. The run fails when an agent
// did not get its task merged, or when the stand-in saw no request of it.
//
// Exit status: 0 when every agent asked for finished, 1 otherwise, 2 wrong usage.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	"greatminds/internal/execgate"
)

func main() {
	execgate.Main()
	os.Exit(run())
}

func run() int {
	cacheDir, err := os.UserCacheDir()
	if err != nil {
		cacheDir = os.TempDir()
	}
	cache := flag.String("cache", filepath.Join(cacheDir, "greatminds-realagents"), "folder for installed agents")
	lightest := flag.Bool("lightest", false, "run only the agent that is quickest to install")
	jsonFile := flag.String("json", "", "write the table as JSON to this file")
	markdown := flag.String("markdown", "", "write the table as Markdown to this file")
	flag.Parse()
	chosen, err := choose(flag.Args(), *lightest)
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	b := &bench{cache: *cache}
	if err := b.build(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		return 1
	}
	defer b.cleanUp()
	status := 0
	var rows []row
	for _, r := range chosen {
		fmt.Printf("== %s\n", r.name)
		one := b.try(ctx, r)
		if one.Error != "" {
			status = 1
			fmt.Printf("FAILED %s: %s\n", r.name, one.Error)
		}
		rows = append(rows, one)
	}
	table := markdownTable(rows)
	fmt.Println(table)
	for _, out := range []struct{ file, text string }{{*jsonFile, jsonTable(rows)}, {*markdown, table}} {
		if out.file == "" {
			continue
		}
		if err := os.WriteFile(out.file, []byte(out.text+"\n"), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "Error:", err)
			status = 1
		}
	}
	return status
}

func choose(names []string, lightest bool) ([]recipe, error) {
	if lightest {
		return recipes[:1], nil
	}
	if len(names) == 0 {
		return recipes, nil
	}
	var out []recipe
	for _, name := range names {
		r, ok := find(name)
		if !ok {
			return nil, fmt.Errorf("no agent named %q; known are opencode, gemini, codex", name)
		}
		out = append(out, r)
	}
	return out, nil
}
