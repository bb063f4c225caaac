package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A process that outlives its daemon is found, whether it is below it, left to us, or only names the project.
func TestAProcessThatIsLeftIsFound(t *testing.T) {
	if err := adoptOrphans(); err != nil {
		t.Fatal(err)
	}
	folder, err := realFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pids := filepath.Join(folder, "pids")
	// The shell goes at once; its grandchild in a session of its own becomes an orphan.
	sh := exec.Command("sh", "-c", `(setsid sleep 600 & echo $! >`+pids+`)`)
	sh.Dir = folder
	if err := sh.Run(); err != nil {
		t.Fatal(err)
	}
	alive, _ := outlast(nil, folder, 50*time.Millisecond)
	if len(alive) == 0 || !strings.Contains(alive[0].String(), "sleep 600") {
		t.Fatalf("found %v, want the sleep", alive)
	}
	held, ok := hold(alive[0])
	if !ok {
		t.Fatal("it cannot be pinned")
	}
	defer held.release()
	if left, took := outlast([]pin{held}, folder, 50*time.Millisecond); len(left) != 1 || took < 50*time.Millisecond {
		t.Fatalf("pinned: found %v after %s", left, took)
	}
	if held.gone() || !held.signal(unix.SIGKILL) {
		t.Fatal("it is gone before it was killed")
	}
	if left, _ := outlast([]pin{held}, folder, 5*time.Second); len(left) != 0 {
		t.Errorf("found %v after its end", left)
	}
	if !held.gone() || held.signal(unix.SIGKILL) {
		t.Error("it is not gone, or took a signal after its end")
	}
}

// A stranger is one that names the project and is nobody's child here; our own children are none.
func TestOnlyStrangersOfTheProjectCount(t *testing.T) {
	folder, err := realFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	own := exec.Command("sleep", "600")
	own.Env = append(os.Environ(), "SOMEWHERE="+folder+"/x")
	if err := startOwn(own); err != nil {
		t.Fatal(err)
	}
	pid := own.Process.Pid
	if found := ours.strangers(folder); len(found) != 0 {
		t.Errorf("our own child counts as a stranger: %v", found)
	}
	ours.ended(pid) // from now on it is unknown
	if found := ours.strangers(folder); len(found) != 1 || found[0].pid != pid {
		t.Errorf("found %v, want pid %d", found, pid)
	}
	if found := ours.strangers(folder + "-other"); len(found) != 0 {
		t.Errorf("found %v for another project", found)
	}
	if err := own.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = own.Wait() // it was killed
	if found := ours.strangers(folder); len(found) != 0 {
		t.Errorf("found %v after its end", found)
	}
}

// Marks of agents and commands are runs and requests; those of tools are something else.
func TestMarksOfAgentsAndCommands(t *testing.T) {
	run := strings.Repeat("0af9", 8)
	for mark, want := range map[string]bool{run: true, run + "/check-1": true, "": false, "tool": false, run + "0": false, "x/" + run: false} {
		if isMark(mark) != want {
			t.Errorf("%q: got %v", mark, !want)
		}
	}
}
