//go:build faultseam

package durable_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"greatminds/internal/durable"
)

// TestKilledChild is the process that the next test starts and that the seam kills.
func TestKilledChild(t *testing.T) {
	dir := os.Getenv("SEAM_TEST_DIR")
	if dir == "" {
		t.Skip("only as a child of TestTheSeamKillsAtTheNamedStep")
	}
	d := durable.NewDisk(durable.SeamFromEnv(os.Getenv))
	for _, name := range []string{"a", "b"} {
		if err := d.Replace(dir+"/"+name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		err := d.Step("gate", func() error { return os.WriteFile(dir+"/gate-"+name, nil, 0o600) })
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheSeamKillsAtTheNamedStep(t *testing.T) {
	for fault, want := range map[string]string{
		"before:gate":     "a=x",
		"after:gate#1":    "a=x gate-a=",
		"before:gate#2":   "a=x b=x gate-a=",
		"after:gate#2":    "a=x b=x gate-a= gate-b=",
		"before:syncdir:": "",
	} {
		t.Run(fault, func(t *testing.T) {
			dir, reached := t.TempDir(), t.TempDir()+"/reached"
			if fault == "before:syncdir:" {
				fault += filepath.Base(dir)
				want = "a=x"
			}
			cmd := exec.Command(os.Args[0], "-test.run=^TestKilledChild$")
			cmd.Env = append(os.Environ(), "SEAM_TEST_DIR="+dir, "GREATMINDS_FAULT="+fault, "GREATMINDS_FAULT_REACHED="+reached)
			err := cmd.Run()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("got %v, want SIGKILL", err)
			}
			if got := read(t, reached); got == "(none)" {
				t.Error("the step was not reached")
			}
			if got := contents(t, dir); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestAnUnreadableFaultIsNone(t *testing.T) {
	for _, v := range []string{"", "gate", "during:gate", "before:gate#0", "before:gate#x"} {
		if seam := durable.SeamFromEnv(func(string) string { return v }); seam != nil {
			t.Errorf("%q: got %v, want nil", v, seam)
		}
	}
}
