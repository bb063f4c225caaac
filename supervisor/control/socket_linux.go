package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
)

// folder is the open private runtime folder. The socket is reached through it, as
// /proc/self/fd/N/coordd.sock, because a socket address holds only 108 bytes and a project's path
// may be longer.
type folder struct {
	file *os.File
	path string
}

// openFolder opens the runtime folder and refuses one of another user, also for root: what root
// wrote there its owner could no longer read.
func openFolder(path string) (*folder, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, errors.Join(fmt.Errorf("look at %s: %w", path, err), f.Close())
	}
	if uid := os.Geteuid(); int(st.Uid) != uid {
		return nil, errors.Join(refusal.New(refusal.CodeForeignRuntime,
			fmt.Sprintf("run the command as the owner, for example with `sudo -u '#%d'`", st.Uid),
			"runtime folder %s belongs to uid %d, but this process has uid %d", path, st.Uid, uid), f.Close())
	}
	return &folder{file: f, path: path}, nil
}

// socket is the short path of the control socket, valid while the folder is open.
func (d *folder) socket() string { return fmt.Sprintf("/proc/self/fd/%d/%s", d.file.Fd(), SocketName) }

func (d *folder) close() error { return d.file.Close() }

// Listener is the bound control socket. It takes connections once a [Server] is started on it.
type Listener struct {
	dir    *folder
	socket *net.UnixListener
	// dev and ino are those of the socket file that we made; another one is not ours to remove.
	dev, ino uint64
	places   *places
	closing  sync.Once
	done     chan struct{}
	// peerOf reads who is at the other end of a connection; [Start] may set another one.
	peerOf func(*net.UnixConn) (execgate.Peer, error)
}

// Listen binds the control socket in the runtime folder storeDir and makes it private (0600, in
// a folder of 0700). Only the holder of the project's lease may call it: a socket file that is
// already there is then a dead daemon's, and is replaced. Anything else in its place is refused,
// and so is a file system that cannot hold sockets, by its name.
func Listen(storeDir string) (*Listener, error) {
	dir, err := openFolder(storeDir)
	if err != nil {
		return nil, fmt.Errorf("open the runtime folder: %w", err)
	}
	l, err := bind(dir)
	if err != nil {
		return nil, errors.Join(err, dir.close())
	}
	return l, nil
}

func bind(dir *folder) (*Listener, error) {
	if err := dir.file.Chmod(0o700); err != nil {
		return nil, fmt.Errorf("make %s private: %w", dir.path, err)
	}
	if err := clearStale(dir); err != nil {
		return nil, err
	}
	socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: dir.socket(), Net: "unix"})
	if err != nil {
		return nil, explainBind(dir, err)
	}
	// The listener's own unlink would go by a path that means nothing once the folder is closed.
	socket.SetUnlinkOnClose(false)
	l := &Listener{dir: dir, socket: socket, places: newPlaces(), done: make(chan struct{}), peerOf: execgate.PeerOf}
	var st unix.Stat_t
	err = os.Chmod(dir.socket(), 0o600)
	if err == nil {
		err = unix.Fstatat(int(dir.file.Fd()), SocketName, &st, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make %s private: %w", filepath.Join(dir.path, SocketName), err), socket.Close())
	}
	l.dev, l.ino = st.Dev, st.Ino
	return l, nil
}

func clearStale(dir *folder) error {
	var st unix.Stat_t
	err := unix.Fstatat(int(dir.file.Fd()), SocketName, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at %s: %w", filepath.Join(dir.path, SocketName), err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return refusal.New(refusal.CodeSocketTaken, "move it away, then start the daemon again",
			"%s is no socket, but the daemon's socket belongs there", filepath.Join(dir.path, SocketName))
	}
	return unix.Unlinkat(int(dir.file.Fd()), SocketName, 0)
}

// explainBind names the file system when binding failed in a way that a file system without
// sockets fails.
func explainBind(dir *folder, err error) error {
	for _, unsupported := range []error{unix.EPERM, unix.EOPNOTSUPP, unix.EINVAL, unix.ENOSYS, unix.ENXIO} {
		if errors.Is(err, unsupported) {
			r := refusal.New(refusal.CodeSocketUnsupported,
				"move the project to a local file system such as ext4, xfs or btrfs",
				"%s lies on a file system of type %s, which cannot hold the daemon's socket (%v)",
				dir.path, fileSystem(dir.path), errors.Unwrap(err))
			r.Err = err
			return r
		}
	}
	return fmt.Errorf("bind %s: %w", filepath.Join(dir.path, SocketName), err)
}

// fileSystem is the type of the file system that holds path, as mountinfo names it.
func fileSystem(path string) string {
	name, best := "unknown", -1
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return name
	}
	for line := range strings.Lines(string(data)) {
		head, tail, found := strings.Cut(line, " - ")
		fields := strings.Fields(head)
		if !found || len(fields) < 5 {
			continue
		}
		point := unescapeMount(fields[4])
		within := point == "/" || path == point || strings.HasPrefix(path, point+"/")
		// A later mount on the same point hides the earlier one.
		if within && len(point) >= best {
			name, best = strings.Fields(tail)[0], len(point)
		}
	}
	return name
}

var mountEscapes = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

func unescapeMount(s string) string { return mountEscapes.Replace(s) }

// Accept waits for the next connection. It holds back while maxConns are open.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case l.places.free <- struct{}{}:
	case <-l.done:
		return nil, net.ErrClosed
	}
	conn, err := l.socket.AcceptUnix()
	if err != nil {
		<-l.places.free
		return nil, err
	}
	return l.places.enter(conn, l.peerOf), nil
}

// Addr is the socket's address.
func (l *Listener) Addr() net.Addr { return l.socket.Addr() }

// Close stops taking connections and removes the socket file, unless it is no longer the one
// that Listen made. Closing twice is safe.
func (l *Listener) Close() error {
	var err error
	l.closing.Do(func() {
		close(l.done)
		err = errors.Join(l.remove(), l.socket.Close(), l.dir.close())
	})
	return err
}

func (l *Listener) remove() error {
	var st unix.Stat_t
	err := unix.Fstatat(int(l.dir.file.Fd()), SocketName, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil || st.Dev != l.dev || st.Ino != l.ino {
		return err
	}
	return unix.Unlinkat(int(l.dir.file.Fd()), SocketName, 0)
}

// queuePause is the pause between two tries to join a full queue of connections: the kernel says
// nothing when there is room again.
const queuePause = 5 * time.Millisecond

// dialWhenRoom connects to the control socket, and waits within ctx where so many callers are in the
// kernel's queue that it takes no more: an agent that connects without end must not make the daemon
// look dead.
func dialWhenRoom(ctx context.Context, storeDir string) (net.Conn, error) {
	timer := time.NewTimer(queuePause)
	defer timer.Stop()
	for {
		conn, err := dialSocket(storeDir)
		if err == nil {
			return conn, nil
		}
		if !errors.Is(err, unix.EAGAIN) {
			return nil, err
		}
		timer.Reset(queuePause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, errors.Join(err, ctx.Err())
		}
	}
}

// dialSocket connects to the control socket of the runtime folder. The error is fs.ErrNotExist or
// unix.ECONNREFUSED where no daemon listens.
func dialSocket(storeDir string) (*net.UnixConn, error) {
	dir, err := openFolder(storeDir)
	if err != nil {
		return nil, err
	}
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: dir.socket(), Net: "unix"})
	runtime.KeepAlive(dir)
	if closeErr := dir.close(); err == nil && closeErr != nil {
		return nil, errors.Join(closeErr, conn.Close())
	}
	return conn, err
}

// nobodyListens reports whether a dial failed because no daemon has the socket open.
func nobodyListens(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED)
}
