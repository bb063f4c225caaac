package sourceid

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sort"
	"syscall"

	"greatminds/internal/execgate"
)

// Executable is the identity of the file that an argv[0] stands for.
type Executable struct {
	// Path is where it was found, links not followed: what exec is given.
	Path string
	// SHA256 is of the contents, behind any link.
	SHA256 string
}

// Program identifies the file that a launch in dir with this environment executes for name. The
// error is an *execgate.ExecError where there is none.
// Spec: E-092, E-102.
func Program(ctx context.Context, name, dir string, env []string) (Executable, error) {
	path, err := execgate.LookPath(name, dir, env)
	if err != nil {
		return Executable{}, err
	}
	sum, err := followed(ctx, path)
	if err != nil {
		return Executable{}, err
	}
	return Executable{Path: path, SHA256: sum}, nil
}

// EnvironmentHMAC returns the HMAC-SHA256 of an environment, in hex. Order does not count. Only
// the HMAC is ever stored: with the private key it tells whether two environments were equal, and
// gives no value away.
// Spec: E-093, E-102.
func EnvironmentHMAC(key []byte, env []string) string {
	sorted := append([]string(nil), env...)
	sort.Strings(sorted)
	sum := hmac.New(sha256.New, key)
	for _, variable := range sorted {
		sum.Write([]byte(variable))
		sum.Write([]byte{0}) // no variable holds one
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// followed hashes the file behind a path.
func followed(ctx context.Context, path string) (string, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if err == nil {
		var sum string
		if sum, _, err = contents(ctx, resolved, make([]byte, 128<<10)); err == nil {
			return sum, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		errno := syscall.ENOENT
		if errors.Is(err, fs.ErrPermission) {
			errno = syscall.EACCES
		}
		return "", &execgate.ExecError{Errno: errno, Path: path}
	}
	return "", fmt.Errorf("identity of the executable: %w", err)
}
