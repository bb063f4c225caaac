package execgate

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"greatminds/internal/execgate/proc"
)

// Peer is the process at the other end of a Unix socket.
type Peer struct {
	// PID in our pid namespace; 0 for a process outside of it.
	PID int
	// UID that the kernel saw when the peer connected.
	UID uint32
	// Descends says that the peer is a descendant of this process. It means nothing unless Known.
	Descends bool
	// Known is false where the peer has ended, or its line of descent could not be read: then it
	// must not be granted anything that a descendant may not have.
	Known bool
}

// PeerOf identifies the process that connected. The error, if any, says why Known is false; the
// rest of the answer is then what the socket told.
//
// Where a process hands its connection on and stays alive, the answer is about that process.
// Spec: design "Authority"; DESIGN "Authority is decided at the daemon, by process descent".
func PeerOf(conn *net.UnixConn) (Peer, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return Peer{}, fmt.Errorf("execgate: peer: %w", err)
	}
	var cred *unix.Ucred
	pidfd, pidfdErr := -1, error(nil)
	controlErr := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		pidfd, pidfdErr = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	})
	if err = errors.Join(controlErr, err); err != nil {
		return Peer{}, fmt.Errorf("execgate: peer: %w", err)
	}
	if pidfdErr == nil {
		defer proc.CloseFD(pidfd)
	} else {
		pidfd = -1
	}
	peer := Peer{PID: int(cred.Pid), UID: cred.Uid}
	switch {
	case peer.PID == 0:
		peer.Known = true // outside our namespace nothing descends from us
		return peer, nil
	case pidfdErr == nil, errors.Is(pidfdErr, unix.ENOPROTOOPT):
		peer.Descends, err = peerDescends(peer.PID, pidfd)
		peer.Known = err == nil
		return peer, err
	}
	return peer, fmt.Errorf("%w: the peer, pid %d, has ended: %w", ErrUnknown, peer.PID, pidfdErr)
}

// peerDescends looks at the line of descent of a pinned peer. Without SO_PEERPIDFD (before Linux
// 6.5) the pin is made here, and the peer's start is compared before and after.
func peerDescends(pid, pidfd int) (bool, error) {
	if pidfd < 0 {
		pin, err := proc.PinPID(pid)
		if err != nil {
			return false, fmt.Errorf("%w: pid %d: %w", ErrUnknown, pid, err)
		}
		defer proc.CloseFD(pin.FD)
		pidfd = pin.FD
	}
	descends, err := Descends(pid, os.Getpid())
	if err != nil {
		return false, err
	}
	// The line belongs to the pinned process only if that one still held its pid.
	if !proc.Alive(pidfd) {
		return false, fmt.Errorf("%w: pid %d has ended", ErrUnknown, pid)
	}
	return descends, nil
}

// descentTries bounds how often a line of descent is read until two readings agree.
const descentTries = 32

// maxDescent bounds the length of a line.
const maxDescent = 4096

// Descends tells whether pid is a child, grandchild and so on of ancestor; nothing descends from
// itself. Parents end and hand their children on while one reads, so two readings in a row must
// agree, start times included. An error wraps [ErrUnknown].
func Descends(pid, ancestor int) (bool, error) {
	var before []proc.Stat
	var last error
	for range descentTries {
		line, err := descent(pid, ancestor)
		if err == nil && before != nil && slices.Equal(before, line) {
			return line[len(line)-1].Parent == ancestor, nil
		}
		before, last = line, err
		if err != nil {
			before = nil
		}
	}
	return false, fmt.Errorf("%w: line of descent of pid %d: %w", ErrUnknown, pid, last)
}

// descent reads from pid upwards to the child of ancestor, or to the top.
func descent(pid, ancestor int) ([]proc.Stat, error) {
	var line []proc.Stat
	for len(line) < maxDescent {
		st, err := proc.ReadStat(pid)
		if err != nil {
			return nil, err
		}
		st.State = 0 // running or sleeping changes between two looks and means nothing
		line = append(line, st)
		// Parent 0 is the top of the namespace, or a parent outside of it.
		if st.Parent == ancestor || st.Parent == 0 {
			return line, nil
		}
		pid = st.Parent
	}
	return nil, fmt.Errorf("more than %d ancestors", maxDescent)
}
