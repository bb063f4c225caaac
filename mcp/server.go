// Package mcp is the supervisor's own tools for an assigned agent, as an MCP server on standard
// input and output. Many agents keep their shell in a sandbox, or ask for each of its calls; their
// MCP servers run beside it.
//
// The tools are `contract`, `submit`, `command` and `command_status`. Each is one operation of the
// control API, with the run's credential, as the command line asks for it: the room decides nothing,
// and its answers and refusals are those of `greatminds run …`. A refusal is a tool error whose text
// is the JSON that the command line would write, so that the agent can mend what it sent in the same
// turn.
//
// The invariant kept: nothing that a client writes ends the server but the end of its input, and
// what is in work at a time is bounded.
package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Call performs an operation of the control API for the calling run and returns its answer.
type Call func(ctx context.Context, op string, args any) (json.RawMessage, error)

// Options say for whom the server speaks, and to whom.
type Options struct {
	// Call reaches the daemon. It may be used concurrently.
	Call Call
	// In and Out are the client's ends. Serve closes In; where that does not end a Read that waits,
	// as with a terminal, one goroutine is left with it until the process ends.
	In  io.ReadCloser
	Out io.Writer
	// Version is the program's version, for people.
	Version string
}

// Serve serves one client until the end of its input, which is no error, or the end of ctx. It asks
// the daemon first what the run is assigned, and fails with that refusal where there is no answer.
func Serve(ctx context.Context, o Options) error {
	run, err := assigned(ctx, o.Call)
	if err != nil {
		return err
	}
	t := &tools{call: o.Call, open: make(chan struct{}, maxOpen)}
	// Without capabilities of our own choice the SDK would offer to send logs.
	server := sdk.NewServer(&sdk.Implementation{Name: "greatminds", Version: o.Version},
		&sdk.ServerOptions{Instructions: instructions, Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}}})
	server.AddReceivingMiddleware(again)
	add := func(tool *sdk.Tool, do operation) {
		tool.Meta = sdk.Meta{alwaysLoad: true}
		server.AddTool(tool, t.handler(do))
	}
	add(contractTool(), t.contract)
	add(submitTool(run), t.submit)
	add(commandTool(run), t.command)
	add(statusTool(), t.status)
	w := newWire(o.In, o.Out)
	defer w.Close()
	err = server.Run(ctx, w)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if w.ended() {
		return nil
	}
	return err
}

// alwaysLoad asks agents that show their model a tool only when it searches for one (Claude Code) to
// show these from the start: each run needs one of them.
const alwaysLoad = "anthropic/alwaysLoad"

const instructions = "The tools of the supervisor that runs you. Submit exactly one decision with submit when you are done; " +
	"if it is refused, mend what it names and submit again in the same turn."

// assignment is what of a run's contract the tools' descriptions are made from.
type assignment struct {
	// Decision is the JSON Schema of its decisions.
	Decision json.RawMessage
	// Commands may be asked for.
	Commands []configured
}

type configured struct {
	ID      string `json:"id"`
	Purpose string `json:"purpose"`
}

func assigned(ctx context.Context, call Call) (assignment, error) {
	var run assignment
	var err error
	if run.Decision, err = call(ctx, "run.contract", contractArgs{Decision: true}); err != nil {
		return run, err
	}
	answer, err := call(ctx, "run.contract", contractArgs{})
	if err != nil {
		return run, err
	}
	var doc struct {
		Commands []configured `json:"configured_commands"`
	}
	if err := json.Unmarshal(answer, &doc); err != nil {
		return run, fmt.Errorf("the run's contract cannot be read: %w", err)
	}
	run.Commands = doc.Commands
	return run, nil
}

func contractTool() *sdk.Tool {
	return &sdk.Tool{Name: "contract", Description: "Shows what this run is assigned: the task, the role, the moves it may choose, the commands it may ask for.",
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: no()},
		InputSchema: object{"type": "object", "additionalProperties": false, "properties": object{
			"schema": object{"type": "boolean", "description": "Show the whole workflow schema that is pinned to the run instead."}}}}
}

func submitTool(run assignment) *sdk.Tool {
	return &sdk.Tool{Name: "submit", Description: "Submits this run's one decision and returns its receipt. It is checked at once: an error names every reason, " +
		"nothing is stored then, and it can be mended and submitted again in this turn. \"received\" means durably accepted. " +
		"The same decision again gets the same receipt. At most 65536 bytes.",
		Annotations: &sdk.ToolAnnotations{IdempotentHint: true, DestructiveHint: no(), OpenWorldHint: no()},
		InputSchema: run.Decision}
}

func commandTool(run assignment) *sdk.Tool {
	id := object{"type": "string", "description": "The id of a configured command."}
	harmless := true
	ids := []string{}
	for _, c := range run.Commands {
		ids = append(ids, c.ID)
		harmless = harmless && c.Purpose == "validation"
	}
	if len(ids) > 0 {
		id["enum"] = ids
	}
	return &sdk.Tool{Name: "command", Description: "Asks the supervisor to run a configured command in this run's workspace, waits for its outcome and returns the receipt " +
		"with the end of its output. The time over, or the call cancelled, the command goes on: ask command_status, or ask again with the same request_id, " +
		"which runs nothing a second time.",
		Annotations: &sdk.ToolAnnotations{DestructiveHint: hint(!harmless), OpenWorldHint: no()},
		InputSchema: object{"type": "object", "additionalProperties": false, "required": []string{"command_id"}, "properties": object{
			"command_id":   id,
			"request_id":   object{"type": "string", "description": "An id of your own for this request (default: a fresh one, in the receipt as id)."},
			"wait_seconds": object{"type": "number", "minimum": 0, "maximum": maxWait.Seconds(), "description": fmt.Sprintf("Most seconds to wait for the outcome (default %g).", defaultWait.Seconds())},
			"output_limit": outputLimit()}}}
}

func statusTool() *sdk.Tool {
	return &sdk.Tool{Name: "command_status", Description: "Shows the receipt of one of this run's command requests, with the end of its output.",
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: no()},
		InputSchema: object{"type": "object", "additionalProperties": false, "required": []string{"request_id"}, "properties": object{
			"request_id":   object{"type": "string", "description": "The id of the request."},
			"output_limit": outputLimit()}}}
}

func outputLimit() object {
	return object{"type": "integer", "minimum": 0, "maximum": 65536, "description": fmt.Sprintf("Most bytes of each output stream to show (default %d).", defaultOutput)}
}

// object is a JSON object of a schema.
type object map[string]any

func hint(b bool) *bool { return &b }

func no() *bool { return hint(false) }
