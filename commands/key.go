package commands

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"greatminds/internal/refusal"
)

const (
	keyName  = "evidence.key"
	keyBytes = 32
)

// evidenceKey returns the key of the environment HMACs, which is made at its first use. Losing it
// makes earlier receipts stale, nothing else. Spec: E-093.
func (s *Service) evidenceKey() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.key != nil {
		return s.key, nil
	}
	path := filepath.Join(s.o.Dir, keyName)
	key, err := readKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		key = make([]byte, keyBytes)
		_, _ = rand.Read(key) // never fails, by its documentation
		err = s.o.Disk.Create(path, key, 0o600)
	}
	if err != nil {
		return nil, err
	}
	s.key = key
	return key, nil
}

func readKey(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	fault := ""
	key := make([]byte, keyBytes+1)
	n := 0
	if err != nil {
		fault = err.Error()
	} else {
		defer func() { _ = f.Close() }() // only read from
		info, statErr := f.Stat()
		if statErr != nil || !info.Mode().IsRegular() {
			fault = "it is no regular file"
		} else if info.Mode().Perm()&0o077 != 0 {
			fault = fmt.Sprintf("its mode %04o lets others read it", info.Mode().Perm())
		} else if n, _ = f.Read(key); n != keyBytes { // a failed read is short
			fault = fmt.Sprintf("it does not hold %d bytes", keyBytes)
		}
	}
	if fault != "" {
		return nil, refusal.New(refusal.CodeEvidenceKey, "move it away: a new one is made, and earlier receipts no longer count",
			"the evidence key %s cannot be used: %s", path, fault)
	}
	return key[:n], nil
}
