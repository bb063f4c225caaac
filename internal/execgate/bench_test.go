package execgate_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"greatminds/internal/execgate"
)

// BenchmarkLaunch measures what keeper, gate and record cost over a plain exec and one
// fdatasync, both interleaved, as medians in milliseconds (metric over-ms; the budget is 8 ms).
// Run it as the released binaries are built, without cgo, which makes a copy of ours cheaper to start:
// CGO_ENABLED=0 go test -run "^$" -bench Launch -benchtime 60x. The first rounds are warm-up of nothing
// but the page cache.
func BenchmarkLaunch(b *testing.B) {
	log, err := os.Create(filepath.Join(b.TempDir(), "record"))
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	var plain, gated []time.Duration
	for b.Loop() {
		plain = append(plain, timePlain(b, log))
		gated = append(gated, timeGated(b, log))
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(median(plain)), "plain-ms")
	b.ReportMetric(ms(median(gated)), "gated-ms")
	b.ReportMetric(ms(median(gated)-median(plain)), "over-ms")
	b.ReportMetric(ms(gated[len(gated)/10]-plain[len(plain)/10]), "over-p10-ms")
	b.ReportMetric(0, "ns/op")
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

func record(b *testing.B, log *os.File, p execgate.Process) {
	line, err := json.Marshal(p)
	if err == nil {
		_, err = log.Write(append(line, '\n'))
	}
	if err == nil {
		err = syscall.Fdatasync(int(log.Fd()))
	}
	if err != nil {
		b.Fatal(err)
	}
}

// timePlain starts, confirms the exec and records; the end of the process is not measured.
func timePlain(b *testing.B, log *os.File) time.Duration {
	begun := time.Now()
	p, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{Env: []string{}, Files: []*os.File{nil, nil, nil}})
	if err != nil {
		b.Fatal(err)
	}
	record(b, log, execgate.Process{PID: p.Pid})
	took := time.Since(begun)
	if _, err := p.Wait(); err != nil {
		b.Fatal(err)
	}
	return took
}

func timeGated(b *testing.B, log *os.File) time.Duration {
	ctx := context.Background()
	// As the daemon does when it begins to prepare a run, which takes it longer than a call of a tool.
	execgate.Ahead()
	if _, err := execgate.RunTool(ctx, execgate.Tool{Argv: []string{"/bin/true"}, Dir: "/"}); err != nil {
		b.Fatal(err)
	}
	begun := time.Now()
	c, err := execgate.Start(ctx, execgate.Launch{Argv: []string{"/bin/true"}, Dir: "/", Mark: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	record(b, log, c.Process())
	if err := c.Open(ctx); err != nil {
		b.Fatal(err)
	}
	took := time.Since(begun)
	<-c.Ended()
	if _, err := c.Stop(ctx, execgate.Grace{}); err != nil {
		b.Fatal(err)
	}
	return took
}

// BenchmarkTool measures a helper program under its keeper, from call to proof.
func BenchmarkTool(b *testing.B) {
	for b.Loop() {
		if _, err := execgate.RunTool(context.Background(), execgate.Tool{Argv: []string{"/bin/true"}, Dir: "/"}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDaemonDeath measures from the death of a daemon to the end of an agent with three
// descendants in sessions of their own that ignore SIGTERM (metric gone-ms; the budget is 50 ms).
func BenchmarkDaemonDeath(b *testing.B) {
	var all []time.Duration
	for b.Loop() {
		all = append(all, daemonDeath(b))
	}
	b.ReportMetric(float64(median(all).Microseconds())/1000, "gone-ms")
	b.ReportMetric(0, "ns/op")
}
