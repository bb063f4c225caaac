package execgate_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"greatminds/internal/execgate"
)

func listen(t *testing.T) (*net.UnixListener, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "gm") // t.TempDir may be too long for a socket
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // a folder of this test
	socket := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	must(t, err)
	t.Cleanup(func() { l.Close() })
	return l, socket
}

func accept(t *testing.T, l *net.UnixListener) *net.UnixConn {
	t.Helper()
	conn, err := l.AcceptUnix()
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestAPeerFromOurOwnTreeDescends(t *testing.T) {
	l, socket := listen(t)
	connect := roleVariable + "='connect " + socket + "' "
	for _, c := range []struct{ name, script string }{
		{"the agent", connect + "exec /proc/self/exe"},
		{"its child", connect + "$EXE & wait"},
		{"in a session of its own, twice forked, without environment", "(env -i " + connect + "setsid $EXE &) ; exec sleep 1000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			exe, err := os.Executable()
			must(t, err)
			if c.name == "the agent" {
				c.script = connect + "exec $EXE"
			}
			a := running(t, c.script, "EXE="+exe)
			conn := accept(t, l)
			peer, err := execgate.PeerOf(conn)
			if err != nil || !peer.Known || !peer.Descends || peer.UID != uint32(os.Getuid()) || peer.PID == 0 {
				t.Errorf("got %+v, %v, want a known descendant", peer, err)
			}
			a.stop(execgate.Grace{})
			if peer, err := execgate.PeerOf(conn); peer.Known || !errors.Is(err, execgate.ErrUnknown) {
				t.Errorf("after its end got %+v, %v, want unknown", peer, err)
			}
		})
	}
}

func TestAPeerFromElsewhereDoesNotDescend(t *testing.T) {
	l, socket := listen(t)
	done := make(chan error, 1)
	go func() {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			defer conn.Close()
			_, err = conn.Read(make([]byte, 1)) // until the test has looked
		}
		done <- err
	}()
	conn := accept(t, l)
	peer, err := execgate.PeerOf(conn)
	if err != nil || !peer.Known || peer.Descends || peer.PID != os.Getpid() {
		t.Errorf("got %+v, %v, want this process itself, known and no descendant", peer, err)
	}
	conn.Close()
	<-done
}

func TestDescends(t *testing.T) {
	a := running(t, "sleep 1000 & echo $!; wait")
	grandchild := a.pids(1)[0]
	p := a.c.Process()
	for _, c := range []struct {
		name          string
		pid, ancestor int
		want          bool
	}{
		{"child", p.Keeper.PID, os.Getpid(), true},
		{"grandchild", grandchild.pid, os.Getpid(), true},
		{"of the keeper", grandchild.pid, p.Keeper.PID, true},
		{"parent", os.Getppid(), os.Getpid(), false},
		{"itself", os.Getpid(), os.Getpid(), false},
		{"upside down", os.Getpid(), grandchild.pid, false},
		{"first process", 1, os.Getpid(), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := execgate.Descends(c.pid, c.ancestor); err != nil || got != c.want {
				t.Errorf("got %v, %v, want %v", got, err, c.want)
			}
		})
	}
	a.stop(execgate.Grace{})
	if _, err := execgate.Descends(grandchild.pid, os.Getpid()); !errors.Is(err, execgate.ErrUnknown) {
		t.Errorf("for a process that has ended got %v, want ErrUnknown", err)
	}
}
