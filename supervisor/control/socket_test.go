package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
	"greatminds/supervisor/control"
)

func TestAProjectPathOf180BytesWorks(t *testing.T) {
	root := t.TempDir()
	for len(root) < 180 {
		root = filepath.Join(root, strings.Repeat("d", min(50, max(1, 180-len(root)-1))))
	}
	p := project(t, root)
	if len(p.SocketPath()) <= 108 {
		t.Fatalf("the socket's path has only %d bytes", len(p.SocketPath()))
	}
	serve(t, p, echo)
	c := dial(t, p)
	data, err := c.Do(t.Context(), control.Call{ID: "1", Op: "x", Args: json.RawMessage(`{"a":"<&>é"}`), Role: "R", Cwd: "/w"})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"version":1,"id":"1","op":"x","args":{"a":"<&>é"},"role":"R","cwd":"/w"}`; string(data) != want {
		t.Fatalf("got %s, want %s", data, want)
	}
	if h := c.Hello(); h.Program != "1.2.3" || h.PID != os.Getpid() || h.Version != control.Version {
		t.Fatalf("got the greeting %+v", h)
	}
}

func TestTheSocketIsPrivate(t *testing.T) {
	p := project(t, t.TempDir())
	if err := os.Chmod(p.StoreDir(), 0o755); err != nil {
		t.Fatal(err)
	}
	serve(t, p, echo)
	for path, want := range map[string]os.FileMode{p.StoreDir(): 0o700, p.SocketPath(): 0o600} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: got %v %v, want %o", path, info.Mode().Perm(), err, want)
		}
	}
}

func TestOnlyADeadSocketIsReplaced(t *testing.T) {
	p := project(t, t.TempDir())
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: p.SocketPath(), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	if err := stale.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := control.Dial(t.Context(), p); !errors.Is(err, control.ErrNoDaemon) {
		t.Fatalf("a stale socket: got %v, want ErrNoDaemon", err)
	}
	closeServer(t, serve(t, p, echo))
	if _, err := os.Lstat(p.SocketPath()); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the socket is left after Close: %v", err)
	}
	for name, put := range map[string]func() error{
		"file": func() error { return os.WriteFile(p.SocketPath(), []byte("mine"), 0o600) },
		"link": func() error { return os.Symlink("/nowhere", p.SocketPath()) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := put(); err != nil {
				t.Fatal(err)
			}
			if _, err := control.Listen(p.StoreDir()); code(err) != refusal.CodeSocketTaken {
				t.Fatalf("got %v, want socket_taken", err)
			}
			if err := os.Remove(p.SocketPath()); err != nil {
				t.Fatalf("what stood there is gone: %v", err)
			}
		})
	}
}

func TestARuntimeFolderOfAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a folder away")
	}
	p := project(t, t.TempDir())
	if err := os.Chown(p.StoreDir(), 4242, 4242); err != nil {
		t.Fatal(err)
	}
	_, listenErr := control.Listen(p.StoreDir())
	_, dialErr := control.Dial(t.Context(), p)
	for what, err := range map[string]error{"listen": listenErr, "dial": dialErr} {
		if code(err) != refusal.CodeForeignRuntime || !strings.Contains(err.Error(), "4242") {
			t.Errorf("%s: got %v, want a refusal that names uid 4242", what, err)
		}
	}
}

func TestAnotherUsersCallIsRefused(t *testing.T) {
	p := project(t, t.TempDir())
	l, err := control.Listen(p.StoreDir())
	if err != nil {
		t.Fatal(err)
	}
	s := control.Start(l, control.ServerOptions{Handler: handler(echo), Log: slog.New(slog.DiscardHandler), Now: time.Now,
		PeerOf: func(*net.UnixConn) (execgate.Peer, error) {
			return execgate.Peer{PID: 1, UID: uint32(os.Geteuid() + 1), Known: true}, nil
		}})
	defer closeServer(t, s)
	if _, err := dial(t, p).Do(t.Context(), control.Call{Op: "x"}); code(err) != refusal.CodeForeignPeer {
		t.Fatalf("got %v, want foreign_peer", err)
	}
}

func TestACallerThatCannotBeReadIsUnknownToTheHandler(t *testing.T) {
	p := project(t, t.TempDir())
	l, err := control.Listen(p.StoreDir())
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan execgate.Peer, 1)
	s := control.Start(l, control.ServerOptions{Log: slog.New(slog.DiscardHandler), Now: time.Now,
		Handler: handler(func(_ context.Context, peer execgate.Peer, _ control.Call) (any, error) { seen <- peer; return 1, nil }),
		PeerOf: func(*net.UnixConn) (execgate.Peer, error) {
			return execgate.Peer{PID: 7, Known: true}, errors.New("no /proc")
		}})
	defer closeServer(t, s)
	if _, err := dial(t, p).Do(t.Context(), control.Call{Op: "x"}); err != nil {
		t.Fatal(err)
	}
	if peer := <-seen; peer.Known || peer.Descends {
		t.Fatalf("got %+v, want an unknown peer", peer)
	}
}
