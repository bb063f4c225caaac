package execgate

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"greatminds/internal/execgate/proc"
	"greatminds/internal/refusal"
)

// The oldest Linux on which waiting for a child through its pidfd works.
const floorMajor, floorMinor = 5, 4

// Supported says whether processes can be started and ended safely here: Linux 5.4 or newer,
// pidfds that are not filtered away, and a readable /proc. The answer is a *refusal.Refusal
// with code kernel_too_old, pidfd_unavailable or proc_unavailable.
// Every start asks it first; the answer is computed once.
func Supported() error { return supported() }

var supported = sync.OnceValue(func() error {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return fmt.Errorf("execgate: uname: %w", err)
	}
	if err := checkRelease(unix.ByteSliceToString(name.Release[:])); err != nil {
		return err
	}
	if err := checkPidfd(); err != nil {
		return err
	}
	return checkProc()
})

func checkRelease(release string) error {
	major, minor, ok := parseRelease(release)
	if !ok || major > floorMajor || major == floorMajor && minor >= floorMinor {
		return nil // an unknown form of release is decided by what the calls say
	}
	return refusal.New(refusal.CodeKernelTooOld,
		fmt.Sprintf("run it on Linux %d.%d or newer", floorMajor, floorMinor),
		"Linux %s is older than %d.%d: processes could not be ended safely", release, floorMajor, floorMinor)
}

func parseRelease(release string) (major, minor int, ok bool) {
	first, rest, found := strings.Cut(release, ".")
	if !found {
		return 0, 0, false
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(rest)
	}
	major, errMajor := strconv.Atoi(first)
	minor, errMinor := strconv.Atoi(rest[:end])
	return major, minor, errMajor == nil && errMinor == nil
}

func checkPidfd() error {
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err == nil {
		err = unix.PidfdSendSignal(fd, 0, nil, 0)
		proc.CloseFD(fd)
	}
	if err == nil {
		return nil
	}
	return &refusal.Refusal{
		Code:   refusal.CodePidfdUnavailable,
		What:   fmt.Sprintf("this process may not use pidfds: %v", err),
		Remedy: "allow pidfd_open and pidfd_send_signal in the container's system call filter",
		Err:    err,
	}
}

func checkProc() error {
	_, err := proc.ReadStat(os.Getpid())
	if err == nil {
		// In a pid namespace that has the /proc of another one, our number is somebody else's there.
		var self string
		if self, err = os.Readlink("/proc/self"); err == nil && self != strconv.Itoa(os.Getpid()) {
			err = fmt.Errorf("it shows pid %s for our pid %d", self, os.Getpid())
		}
	}
	if err == nil {
		_, err = proc.BootID()
	}
	if err == nil {
		return nil
	}
	return &refusal.Refusal{
		Code:   refusal.CodeProcUnavailable,
		What:   fmt.Sprintf("/proc does not show this process: %v", err),
		Remedy: "mount proc at /proc, of this pid namespace",
		Err:    err,
	}
}
