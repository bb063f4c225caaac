package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// process is what /proc tells of one process.
type process struct {
	pid, parent int
	name        string
	state       byte
	// start is when it started, in clock ticks after boot: with the pid, its identity.
	start uint64
}

func (p process) zombie() bool { return p.state == 'Z' || p.state == 'X' }

func (p process) String() string {
	text, _ := os.ReadFile(procFile(p.pid, "cmdline")) // one that has ended is told by its name
	words := strings.TrimSpace(string(bytes.ReplaceAll(text, []byte{0}, []byte{' '})))
	if len(words) > 200 {
		words = words[:200]
	}
	return fmt.Sprintf("pid %d (%s, state %c, child of %d): %s", p.pid, p.name, p.state, p.parent, words)
}

func procFile(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }

// look reads one process; false where there is none.
func look(pid int) (process, bool) {
	data, err := os.ReadFile(procFile(pid, "stat"))
	if err != nil {
		return process{}, false
	}
	open, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if open < 0 || end < open {
		return process{}, false
	}
	fields := strings.Fields(string(data[end+1:]))
	if len(fields) < 20 {
		return process{}, false
	}
	parent, err1 := strconv.Atoi(fields[1])
	start, err2 := strconv.ParseUint(fields[19], 10, 64)
	return process{pid, parent, string(data[open+1 : end]), fields[0][0], start}, err1 == nil && err2 == nil
}

// table is every process at one moment.
type table map[int]process

func allProcesses() table {
	t := table{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return t
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if p, ok := look(pid); ok {
				t[pid] = p
			}
		}
	}
	return t
}

// below lists the descendants of root, parents first.
func (t table) below(root int) []process {
	children := map[int][]int{}
	for pid, p := range t {
		children[p.parent] = append(children[p.parent], pid)
	}
	var out []process
	for queue := children[root]; len(queue) > 0; queue = queue[1:] {
		out = append(out, t[queue[0]])
		queue = append(queue, children[queue[0]]...)
	}
	return out
}

// environ is the environment that a process was started with; nil where it cannot be read.
func environ(pid int) []string {
	data, err := os.ReadFile(procFile(pid, "environ"))
	if err != nil {
		return nil
	}
	return strings.Split(string(data), "\x00")
}

func variable(env []string, name string) (string, bool) {
	for _, v := range env {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// belongs tells whether a process was started for the project in folder: its environment, its
// arguments or its working folder say so.
func belongs(pid int, folder string) bool {
	for _, name := range []string{"environ", "cmdline"} {
		if data, err := os.ReadFile(procFile(pid, name)); err == nil && bytes.Contains(data, []byte(folder+"/")) {
			return true
		}
	}
	cwd, err := os.Readlink(procFile(pid, "cwd"))
	return err == nil && strings.HasPrefix(cwd+"/", folder+"/")
}

// livingMarks are the marks of all agents and commands of a project that live, each once.
func livingMarks(folder string) []string {
	seen := map[string]bool{}
	for pid, p := range allProcesses() {
		// A keeper has its tree's mark, and goes a moment after it.
		if p.zombie() || p.name == keeperName || !belongs(pid, folder) {
			continue
		}
		if mark, ok := variable(environ(pid), "GREATMINDS_MARK"); ok && isMark(mark) {
			seen[mark] = true
		}
	}
	return sorted(seen)
}

// isMark tells the marks of agents and commands from those of tools.
func isMark(mark string) bool {
	run, _, _ := strings.Cut(mark, "/")
	return len(run) == 32 && strings.Trim(run, "0123456789abcdef") == ""
}

// pin holds on to one process: a pid that is used again is another one.
type pin struct {
	fd int
	process
}

// hold pins a process that was looked at before; false where it is gone.
func hold(p process) (pin, bool) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return pin{}, false
	}
	now, ok := look(p.pid)
	if !ok || now.start != p.start {
		_ = unix.Close(fd) // only opened
		return pin{}, false
	}
	return pin{fd, now}, true
}

func (p pin) release() { _ = unix.Close(p.fd) } // only held

// gone tells whether the process has ended; one that was not waited for yet has.
func (p pin) gone() bool {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}, 0)
		if err == nil {
			return n == 1
		}
		if err != unix.EINTR {
			return false
		}
	}
}

// signal reports whether the process was there to take it.
func (p pin) signal(number unix.Signal) bool {
	return unix.PidfdSendSignal(p.fd, number, nil, 0) == nil
}

// adoptOrphans makes this process the parent of whatever a killed daemon leaves, so that nothing of
// it can go unseen.
func adoptOrphans() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// family are the children that this process started itself.
type family struct {
	mu  sync.Mutex
	own map[int]bool
}

var ours = family{own: map[int]bool{}}

// start starts a child and enters it, so that it is never taken for an orphan.
func (f *family) start(begin func() (pid int, err error)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	pid, err := begin()
	if err == nil {
		f.own[pid] = true
	}
	return err
}

// ended forgets a child that was waited for.
func (f *family) ended(pid int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.own, pid)
}

// orphans lists what others left to this process, with all below it, and takes away its zombies.
func (f *family) orphans() []process {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := allProcesses()
	var out []process
	for pid, p := range all {
		if p.parent != os.Getpid() || f.own[pid] {
			continue
		}
		if p.zombie() {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) // a child of ours that nobody else waits for
			continue
		}
		out = append(append(out, p), all.below(pid)...)
	}
	return out
}

// strangers lists the living processes of a project that are no descendants of a child of ours.
func (f *family) strangers(folder string) []process {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := allProcesses()
	known := map[int]bool{os.Getpid(): true}
	for pid := range f.own {
		known[pid] = true
		for _, p := range all.below(pid) {
			known[p.pid] = true
		}
	}
	var out []process
	for pid, p := range all {
		if !known[pid] && !p.zombie() && belongs(pid, folder) {
			out = append(out, p)
		}
	}
	return out
}

// lookAgain is the pause between two looks at processes.
const lookAgain = 3 * time.Millisecond

// outlast waits until nothing of a dead daemon is left: the processes that were seen below it, the
// orphans it left, and whatever else names the project. It returns what is left after limit, and how
// long the waiting took.
func outlast(seen []pin, folder string, limit time.Duration) (left []process, took time.Duration) {
	began := time.Now()
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		left = left[:0]
		for _, p := range seen {
			if !p.gone() {
				left = append(left, p.process)
			}
		}
		if len(left) == 0 {
			took = time.Since(began)
			left = append(ours.orphans(), ours.strangers(folder)...)
		}
		if len(left) == 0 {
			return nil, took
		}
		if took = time.Since(began); took > limit {
			return left, took
		}
		<-tick.C
	}
}
