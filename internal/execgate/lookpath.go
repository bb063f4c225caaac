package execgate

import "greatminds/internal/execgate/entry"

// LookPath returns the file that a launch with this argv[0], folder and environment executes. The
// error is an *[ExecError] with ENOENT or EACCES.
func LookPath(name, dir string, env []string) (string, error) {
	if name == "" {
		return "", &ExecError{Errno: entry.ErrEmpty}
	}
	file, errno := entry.LookPath(name, dir, env)
	if errno != 0 {
		return "", &ExecError{Errno: errno, Path: file}
	}
	return file, nil
}
