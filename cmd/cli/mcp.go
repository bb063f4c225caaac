package cli

import (
	"context"
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"greatminds/mcp"
)

func (a *app) mcp() *cobra.Command {
	cmd := &cobra.Command{
		Use: "mcp", Short: "Serve the calling run's tools over MCP, on standard input and output.", Args: exactly(),
		Long: "Agents start it: it stands among the MCP servers of their session. Its tools are contract,\n" +
			"submit, command and command_status; they do what `greatminds run …` does, with the same receipts.",
		Example: "  greatminds mcp",
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := a.project()
			if err != nil {
				return err
			}
			if err := a.needCredential(p, "mcp"); err != nil {
				return err
			}
			call := func(ctx context.Context, op string, args any) (json.RawMessage, error) {
				return a.doIn(ctx, p, op, args)
			}
			return mcp.Serve(cmd.Context(), mcp.Options{Call: call, In: closer(a.Stdin), Out: a.Stdout, Version: a.Version})
		},
	}
	return exits(a.takesProject(cmd), "  0 the client has closed its side, 1 not found, 2 wrong usage, 3 no valid run credential,\n  4 the daemon does not answer.")
}

// closer is a reader that can be closed, or that closing does nothing to.
func closer(r io.Reader) io.ReadCloser {
	if c, ok := r.(io.ReadCloser); ok {
		return c
	}
	return io.NopCloser(r)
}
