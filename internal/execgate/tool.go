package execgate

import (
	"context"
	"time"
)

// Tool is one bounded call of a helper program.
type Tool struct {
	Argv, Env []string
	Dir       string
	Stdin     []byte
	MaxOutput int64
	Timeout   time.Duration
}

// ToolOutput is what a helper program wrote and how it exited.
type ToolOutput struct {
	Stdout, Stderr []byte
	Code           int
	Truncated      bool
}

// RunTool runs a helper program to its end.
func RunTool(ctx context.Context, t Tool) (ToolOutput, error) { return ToolOutput{}, errUnfinished }

// GitEnv returns the environment for a git call.
func GitEnv(base []string) []string { return base }
