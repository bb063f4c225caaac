package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// BenchmarkVersion compares `greatminds --version` with a bare process start, in turn, and
// reports both medians and what the program costs over the bare start. 40 rounds at least:
//
//	go test -run '^$' -bench Version -benchtime 60x ./cmd/greatminds
func BenchmarkVersion(b *testing.B) {
	binary := filepath.Join(b.TempDir(), "greatminds")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, "greatminds/cmd/greatminds")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	info, err := os.Stat(binary)
	if err != nil {
		b.Fatal(err)
	}
	var bare, version []time.Duration
	for b.Loop() {
		bare = append(bare, timed(b, "true"))
		version = append(version, timed(b, binary, "--version"))
	}
	b.ReportMetric(float64(median(bare).Microseconds())/1000, "bare-ms")
	b.ReportMetric(float64(median(version).Microseconds())/1000, "version-ms")
	b.ReportMetric(float64((median(version)-median(bare)).Microseconds())/1000, "over-ms")
	b.ReportMetric(float64(info.Size())/(1<<20), "binary-MiB")
}

func timed(b *testing.B, argv ...string) time.Duration {
	b.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	began := time.Now()
	if err := cmd.Run(); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
