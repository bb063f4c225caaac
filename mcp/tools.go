package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"greatminds/internal/refusal"
	"greatminds/supervisor/control"
)

// Limits of the tools.
const (
	// maxInline bounds a decision, in bytes, as on the command line. E-178.
	maxInline = 65536
	// maxOpen bounds the tool calls in work at a time.
	maxOpen = 32
	// maxWait bounds the wait for a command within one call.
	maxWait = time.Hour
	// defaultWait and defaultOutput hold where a call names none. Clients give up on a silent tool
	// after a time of their own, many after a minute.
	defaultWait   = 30 * time.Second
	defaultOutput = 8192
	// waitSlice is how long one call waits in the daemon; progressSlice where the client wants to
	// hear of progress.
	waitSlice     = time.Minute
	progressSlice = 2 * time.Second
)

// The arguments of the operations, as the control API takes them.
type (
	contractArgs struct {
		Schema   bool `json:"schema,omitempty"`
		Decision bool `json:"decision,omitempty"`
	}
	submitArgs struct {
		Text string `json:"text"`
	}
	commandArgs struct {
		Command string  `json:"command_id"`
		Request string  `json:"request_id"`
		Wait    float64 `json:"wait_seconds"`
		Output  int     `json:"output_limit"`
	}
	statusArgs struct {
		Request string `json:"request_id"`
		Output  int    `json:"output_limit"`
	}
)

// tools performs the calls of one client.
type tools struct {
	call Call
	open chan struct{} // one token per call in work
}

// operation performs one call of a tool and returns its answer.
type operation func(ctx context.Context, r *sdk.CallToolRequest) (json.RawMessage, error)

// handler gives a tool its bounds. A refusal becomes a tool error; a call that was cancelled gets
// the protocol's own error.
func (t *tools) handler(do operation) sdk.ToolHandler {
	return func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		select {
		case t.open <- struct{}{}:
			defer func() { <-t.open }()
		default:
			return failed(refusal.New(refusal.CodeToolsBusy, "wait for the answer of one of them", "%d tool calls are open already", maxOpen)), nil
		}
		answer, err := guarded(ctx, r, do)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return failed(err), nil
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(answer)}}, StructuredContent: answer}, nil
	}
}

// guarded turns a panic into a refusal: one broken call must not take the others down with it.
func guarded(ctx context.Context, r *sdk.CallToolRequest, do operation) (answer json.RawMessage, err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = refusal.New(refusal.CodeInternal, "use the command line instead", "tool %s failed: %v", r.Params.Name, broken)
		}
	}()
	return do(ctx, r)
}

// failed is a refusal as a tool error: the JSON that the command line writes.
func failed(err error) *sdk.CallToolResult {
	text, encoding := json.Marshal(struct {
		Version int           `json:"version"`
		Error   *refusal.Wire `json:"error"`
	}{1, refusal.ToWire(err)})
	if encoding != nil {
		panic("mcp: a refusal of plain texts does not encode: " + encoding.Error())
	}
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}, StructuredContent: json.RawMessage(text)}
}

// decode reads a tool's arguments strictly: one that is misspelled must not become the default.
func decode(r *sdk.CallToolRequest, into any) error {
	if len(r.Params.Arguments) == 0 {
		return nil
	}
	if err := control.StrictFields(r.Params.Arguments, into); err != nil {
		return refusal.New(refusal.CodeUsage, "give the arguments that the tool's input schema names", "the arguments of %s are not valid: %v", r.Params.Name, err)
	}
	return nil
}

func (t *tools) contract(ctx context.Context, r *sdk.CallToolRequest) (json.RawMessage, error) {
	var args struct {
		Schema bool `json:"schema"`
	}
	if err := decode(r, &args); err != nil {
		return nil, err
	}
	return t.call(ctx, "run.contract", contractArgs{Schema: args.Schema})
}

// submit hands the decision on as it was written: form and rules are judged in one place.
func (t *tools) submit(ctx context.Context, r *sdk.CallToolRequest) (json.RawMessage, error) {
	text := r.Params.Arguments
	if len(text) > maxInline {
		return nil, refusal.New(refusal.CodeUsage, "write it to a file and give it to `run submit --file`, or hand long parts over as an artifact",
			"the decision is %d bytes long, but submit takes %d", len(text), maxInline)
	}
	return t.call(ctx, "run.submit", submitArgs{Text: string(text)})
}

func (t *tools) status(ctx context.Context, r *sdk.CallToolRequest) (json.RawMessage, error) {
	args := statusArgs{Output: defaultOutput}
	if err := decode(r, &args); err != nil {
		return nil, err
	}
	if args.Request == "" {
		return nil, refusal.New(refusal.CodeUsage, "give the id of the request", "request_id is missing")
	}
	return t.call(ctx, "run.command-status", args)
}

// command queues a command and waits for its outcome, in slices that one call may last. Whatever
// ends the wait, the command goes on.
func (t *tools) command(ctx context.Context, r *sdk.CallToolRequest) (json.RawMessage, error) {
	args := commandArgs{Wait: defaultWait.Seconds(), Output: defaultOutput}
	if err := decode(r, &args); err != nil {
		return nil, err
	}
	if args.Command == "" {
		return nil, refusal.New(refusal.CodeUsage, "give the id of a configured command", "command_id is missing")
	}
	if args.Wait < 0 || args.Wait > maxWait.Seconds() {
		return nil, refusal.New(refusal.CodeUsage, fmt.Sprintf("wait 0 to %g seconds", maxWait.Seconds()), "a wait of %g seconds is out of range", args.Wait)
	}
	if args.Request == "" {
		args.Request = control.NewID()
	}
	return t.outcome(ctx, r, args)
}

func (t *tools) outcome(ctx context.Context, r *sdk.CallToolRequest, args commandArgs) (json.RawMessage, error) {
	wait, began := time.Duration(args.Wait*float64(time.Second)), time.Now()
	slice, token := waitSlice, r.Params.GetProgressToken()
	if token != nil {
		slice = progressSlice
	}
	for waited := time.Duration(0); ; {
		args.Wait = min(wait-waited, slice).Seconds()
		answer, err := t.call(ctx, "run.command", args)
		if err != nil {
			return nil, err
		}
		var receipt struct{ Status string }
		if err := json.Unmarshal(answer, &receipt); err != nil {
			return nil, fmt.Errorf("the receipt cannot be read: %w", err)
		}
		open := receipt.Status == "queued" || receipt.Status == "starting" || receipt.Status == "running"
		if waited = time.Since(began); !open || waited >= wait {
			return answer, nil
		}
		if token != nil {
			// A client that does not take it will not take the answer either, which tells.
			_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: waited.Seconds(), Total: wait.Seconds(),
				Message: fmt.Sprintf("command %s (request %s) is %s", args.Command, args.Request, receipt.Status)})
		}
	}
}
