//go:build faultseam

package durable

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// SeamFromEnv returns a seam that kills this process at one step, for kill tests.
//
// GREATMINDS_FAULT is "before:NAME#N" or "after:NAME#N" (N from 1, 1 when left out), where
// NAME is the name of a Disk.Step, or "OP:FILE" with the kind of a file operation and the base
// name of its file; a temporary file goes by the name of the file it is to become, so that
// "rename:state.json" is the moment in which state.json is replaced. At the N-th such step the
// file named by GREATMINDS_FAULT_REACHED is created and the process sends itself SIGKILL.
// It returns nil when GREATMINDS_FAULT is empty or cannot be read that way.
func SeamFromEnv(getenv func(string) string) Seam {
	when, rest, ok := strings.Cut(getenv("GREATMINDS_FAULT"), ":")
	if !ok || (when != "before" && when != "after") {
		return nil
	}
	name, count, numbered := strings.Cut(rest, "#")
	n := 1
	if numbered {
		var err error
		if n, err = strconv.Atoi(count); err != nil || n < 1 {
			return nil
		}
	}
	return &killSeam{after: when == "after", name: name, left: n, reached: getenv("GREATMINDS_FAULT_REACHED")}
}

type killSeam struct {
	after   bool
	name    string
	left    int
	reached string
}

func (k *killSeam) Before(s Step) error {
	if !k.after {
		k.count(s)
	}
	return nil
}

func (k *killSeam) After(s Step, err error) error {
	if k.after && err == nil {
		k.count(s)
	}
	return err
}

func (k *killSeam) count(s Step) {
	if !slices.Contains(stepNames(s), k.name) {
		return
	}
	if k.left--; k.left != 0 {
		return
	}
	if k.reached != "" {
		os.WriteFile(k.reached, []byte(k.name+"\n"), 0o600) // the test fails for want of it
	}
	syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the signal is on its way; nothing more may happen here
}

// stepNames are the names that a step answers to.
func stepNames(s Step) []string {
	if s.Name != "" {
		return []string{s.Name}
	}
	var names []string
	for _, path := range []string{s.Path, s.To} {
		if path != "" {
			names = append(names, string(s.Op)+":"+meantBy(filepath.Base(path)))
		}
	}
	return names
}

// meantBy returns the file that a temporary name stands for; other names stand for themselves.
func meantBy(base string) string {
	inner, ok := strings.CutSuffix(base, ".tmp")
	dot := strings.LastIndexByte(inner, '.')
	if !ok || dot < 2 || base[0] != '.' {
		return base
	}
	return inner[1:dot]
}
