package contract

import "errors"

var errNotYet = errors.New("contract: not built yet")

// Parse reads an execution contract. See the package comment.
func Parse(file string, data []byte, s *Schema) (*Contract, error) { return nil, errNotYet }

// Load reads the contract of a project from path, or from its usual place when path is empty.
func Load(p Project, path string, s *Schema) (*Contract, error) { return nil, errNotYet }

// Canonical is the fingerprint JSON.
func (c *Contract) Canonical() []byte { return nil }

// SHA256 is the lowercase hex digest of Canonical.
func (c *Contract) SHA256() string { return "" }

// FromCanonical reads a pinned document back.
func FromCanonical(data []byte) (*Contract, error) { return nil, errNotYet }

// SHA256 is the fingerprint of the manifest.
func (a Agent) SHA256() string { return "" }

// SHA256 is the fingerprint of the binding.
func (b Binding) SHA256() string { return "" }

// SHA256 is the fingerprint of the command.
func (c Command) SHA256() string { return "" }

// FindProject finds the project that start belongs to.
func FindProject(start string, getenv func(string) string) (Project, error) {
	return Project{}, errNotYet
}

// OpenProject takes dir as the project folder.
func OpenProject(dir string) (Project, error) { return Project{}, errNotYet }

// EmbeddedSchema is our own schema.
func EmbeddedSchema() *Schema { return &Schema{} }

// ParseSchema reads a workflow schema.
func ParseSchema(file string, data []byte) (*Schema, error) { return nil, errNotYet }

// LoadSchema is our own schema, or that of GREATMINDS_CANON_DIR.
func LoadSchema(getenv func(string) string) (*Schema, error) { return nil, errNotYet }

// WorktreePolicy is the schema's policy with the project's overrides.
func WorktreePolicy(p Project, s *Schema) (Worktrees, error) { return Worktrees{}, errNotYet }

// DefaultBranch is the branch that verified work is merged into.
func DefaultBranch(p Project, s *Schema) (string, error) { return "", errNotYet }
