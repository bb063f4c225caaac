package contract

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"greatminds/internal/refusal"
	"greatminds/internal/yamldoc"
)

// maxFileBytes bounds every file that this package reads.
const maxFileBytes = 1 << 20

// Parse reads an execution contract strictly. file names it in messages; s says which roles
// there are. All faults of the file come back at once, as a refusal with code contract_invalid
// whose reasons begin with "file:line:column". Spec: "Execution contract".
func Parse(file string, data []byte, s *Schema) (*Contract, error) {
	root, faults := yamldoc.Read(file, data, yamldoc.Options{MaxBytes: maxFileBytes})
	c := newContract()
	if root != nil {
		roles := func(name string) string {
			if _, known := s.Role(Role(name)); !known {
				return "is no role of the schema (" + strings.Join(roleNames(s), ", ") + ")"
			}
			return ""
		}
		(&contractReader{reader: reader{faults}, c: c, checkRole: roles}).root(root)
	}
	if r := faults.Refusal(refusal.CodeContractInvalid, "the execution contract is not valid",
		"mend what is named, then run `greatminds project execution`"); r != nil {
		return nil, r
	}
	return c, nil
}

func roleNames(s *Schema) []string {
	names := make([]string, len(s.Roles))
	for i, r := range s.Roles {
		names[i] = string(r.Name)
	}
	return names
}

// Load parses the project's contract, from path or, when that is empty, from its usual place.
// It fails with contract_missing where there is none and contract_unreadable where the file
// cannot be read.
func Load(p Project, path string, s *Schema) (*Contract, error) {
	if path == "" {
		path = p.ExecutionPath()
	}
	data, err := ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data, s)
}

// ReadFile reads a configuration file of bounded size. Anything but a regular file is refused
// without waiting for it.
func ReadFile(path string) ([]byte, error) {
	// O_NONBLOCK, or opening a pipe would wait for its writer.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		r := refusal.New(refusal.CodeContractMissing, "run `greatminds setup`, or name the file", "there is no file %s", path)
		r.Err = err
		return nil, r
	}
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer func() { _ = f.Close() }() // read only: nothing can be lost
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, unreadable(path, errors.Join(err, errNotRegular))
	}
	// One byte past the bound, so that the reader can refuse the file as too long.
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, unreadable(path, err)
	}
	return data, nil
}

var errNotRegular = errors.New("not a regular file")

func unreadable(path string, err error) error {
	r := refusal.New(refusal.CodeContractUnreadable, "make it a readable file", "cannot read %s: %v", path, err)
	r.Err = err
	return r
}
