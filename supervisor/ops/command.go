package ops

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/supervisor/control"
)

// maxPreview bounds the output preview, in bytes of each stream.
const maxPreview = 65536

// maxWait bounds a wait for a receipt within one call, in seconds. A caller that wants to wait
// longer asks again.
const maxWait = 600

// CommandArgs ask for a configured command.
type CommandArgs struct {
	Command string `json:"command_id"`
	// Request is the request id; empty for one that the daemon makes.
	Request runstore.CommandID `json:"request_id,omitempty"`
	// Wait is how long to wait for the outcome, in seconds, at most 600.
	Wait float64 `json:"wait_seconds,omitempty"`
	// OutputLimit bounds the preview of each stream, in bytes, 0 to 65536.
	OutputLimit int `json:"output_limit"`
}

// runCommand queues a configured command for the daemon and may wait for its outcome. Waiting
// cancels nothing when it ends. E-075..E-082.
func runCommand(ctx context.Context, r *request) (any, error) {
	var args CommandArgs
	if err := r.decode(&args); err != nil {
		return nil, err
	}
	if err := checkPreview(args.OutputLimit); err != nil {
		return nil, err
	}
	if args.Wait < 0 || args.Wait > maxWait {
		return nil, refusal.New(refusal.CodeUsage, "wait 0 to 600 seconds at a time",
			"a wait of %g seconds is out of range", args.Wait)
	}
	if args.Request == "" {
		args.Request = runstore.CommandID(r.ID)
	}
	receipt := r.view().Command(args.Request)
	if receipt == nil || receipt.RunID != r.run.ID || receipt.CommandID != args.Command {
		var err error
		if receipt, err = r.requestCommand(ctx, args); err != nil {
			return nil, err
		}
	}
	receipt = r.awaitCommand(receipt, time.Duration(args.Wait*float64(time.Second)))
	return r.withPreview(receipt, args.OutputLimit)
}

func (r *request) requestCommand(ctx context.Context, args CommandArgs) (*runstore.Command, error) {
	if err := r.active(); err != nil {
		return nil, err
	}
	pinned, err := r.pinnedContract(r.run)
	if err != nil {
		return nil, err
	}
	definition, known := pinned.Command(args.Command)
	if !known {
		return nil, refusal.New(refusal.CodeCommandUnknown, "read `configured_commands` in `greatminds run contract`",
			"the run's contract configures no command %q", args.Command)
	}
	receipt, err := r.Commands.Admit(ctx, r.run, definition, args.Request)
	if err == nil {
		r.Daemon.Wake()
	}
	return receipt, err
}

// pinnedContract is the contract that the run was claimed under: an edit of the file does not
// change what a running run may do. E-081.
func (r *request) pinnedContract(run *runstore.Run) (*contract.Contract, error) {
	data, err := r.Store.Pinned("execution", run.ConfigSHA256)
	if err != nil {
		return nil, err
	}
	return contract.FromCanonical(data)
}

// awaitCommand waits until the command has an outcome, at most limit, and returns its receipt as
// it then is.
func (r *request) awaitCommand(c *runstore.Command, limit time.Duration) *runstore.Command {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		changed := r.Store.Changed()
		if now := r.view().Command(c.ID); now != nil {
			c = now
		}
		if c.Status != "queued" && c.Status != "starting" && c.Status != "running" {
			return c
		}
		select {
		case <-changed:
		case <-timer.C:
			return c
		case <-r.caller.Done():
			return c
		case <-control.Draining(r.caller):
			return c
		}
	}
}

// CommandStatusArgs name one command request.
type CommandStatusArgs struct {
	Request     runstore.CommandID `json:"request_id"`
	OutputLimit int                `json:"output_limit"`
}

// runCommandStatus shows a receipt: an operator any, an agent those of its own run. E-177.
func runCommandStatus(ctx context.Context, r *request) (any, error) {
	var args CommandStatusArgs
	if err := r.decode(&args); err != nil {
		return nil, err
	}
	if err := checkPreview(args.OutputLimit); err != nil {
		return nil, err
	}
	v := r.view()
	receipt := v.Command(args.Request)
	if fault := v.HistoryFault(); fault != nil {
		return nil, fault
	}
	if r.run != nil && (receipt == nil || receipt.RunID != r.run.ID) {
		return nil, refusal.New(refusal.CodeCredential, "ask for a request of your own run",
			"request %q is none of run %s", args.Request, r.run.ID)
	}
	if receipt == nil {
		return nil, unknownReceipt(args.Request)
	}
	return r.withPreview(receipt, args.OutputLimit)
}

// ResolveArgs acknowledge a command whose outcome is unknown.
type ResolveArgs struct {
	Request runstore.CommandID `json:"request_id"`
	Reason  string             `json:"reason"`
}

// runCommandResolve records an operator's assessment. It produces no evidence and runs nothing.
func runCommandResolve(ctx context.Context, r *request) (any, error) {
	var args ResolveArgs
	if err := r.decode(&args); err != nil {
		return nil, err
	}
	if err := checkReason(args.Reason); err != nil {
		return nil, err
	}
	answer, err := r.change(ctx, func(tx *runstore.Tx) (any, error) {
		c := tx.Command(args.Request)
		if c == nil {
			return nil, unknownReceipt(args.Request)
		}
		if c.Status != "needs_recovery" {
			return nil, refusal.New(refusal.CodeNotRecoverable, "only a command in needs_recovery can be resolved",
				"command %s is %s", c.ID, c.Status)
		}
		at := runstore.Epoch(tx.Now())
		err := tx.SetCommand(c.ID, "resolved", func(c *runstore.Command) { c.Resolution, c.ResolvedAt = args.Reason, &at })
		return tx.Command(c.ID), err
	})
	if err == nil {
		r.Daemon.Wake()
	}
	return answer, err
}

// withPreview adds the bounded output to a receipt. It is never stored. E-174, E-176.
func (r *request) withPreview(c *runstore.Command, limit int) (any, error) {
	preview := any(map[string]any{})
	if c.Output != nil {
		var err error
		if preview, err = r.Commands.Preview(c, limit); err != nil {
			return nil, err
		}
	}
	receipt, err := control.Encode(c)
	if err != nil {
		return nil, err
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(receipt, &members); err != nil {
		return nil, err
	}
	if members["output_preview"], err = control.Encode(preview); err != nil {
		return nil, err
	}
	return members, nil
}

func checkPreview(limit int) error {
	if limit < 0 || limit > maxPreview {
		return refusal.New(refusal.CodeUsage, "give 0 to 65536 bytes", "an output limit of %d bytes is out of range", limit)
	}
	return nil
}

func checkReason(reason string) error {
	if n := len([]rune(reason)); strings.TrimSpace(reason) == "" || n > 1000 {
		return refusal.New(refusal.CodeUsage, "say in 1 to 1000 characters what you found", "the reason %.20q of %d characters says nothing, or too much", reason, n)
	}
	return nil
}

func unknownReceipt(id runstore.CommandID) error {
	return refusal.New(refusal.CodeCommandReceipt, "read the request ids from `greatminds run status`", "unknown command request %q", id)
}
