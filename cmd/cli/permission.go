package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"greatminds/contract"
	"greatminds/runstore"
	"greatminds/supervisor/ops"
	"greatminds/supervisor/status"
)

func (a *app) runPermission() *cobra.Command {
	var option string
	cmd := &cobra.Command{
		Use: "permission [REQUEST_ID]", Short: "List open permission requests, show one, or answer it with one of its options.", Args: upTo(1),
		Long: "An answer reaches the agent's open request; \"consumed\" says that it was handed over,\n" +
			"not that the tool succeeded. Only single answers (allow_once, reject_once) can be given.\n" +
			"Requests are redacted as well as we can; look at them as text that an agent wrote.\n" +
			"On a terminal a request is readable, and an open one asks for the number of an answer;\n" +
			"nothing is answered without one. With --json or into a pipe it is the record as JSON.",
		Example: "  greatminds run permission\n  greatminds run permission 8c1d...\n  greatminds run permission 8c1d... --option allow-once",
		RunE: func(cmd *cobra.Command, args []string) error {
			chosen := cmd.Flags().Changed("option")
			switch {
			case len(args) == 0 && chosen:
				return usage(cmd, "missing argument REQUEST_ID")
			case len(args) == 0:
				return a.listQuestions(cmd.Context())
			case chosen:
				return a.answerQuestion(cmd.Context(), runstore.PermissionID(args[0]), option)
			}
			return a.showQuestion(cmd.Context(), runstore.PermissionID(args[0]))
		},
	}
	cmd.Flags().StringVar(&option, "option", "", "`id` of the option to choose")
	return exits(a.takesProject(cmd), "  0 done, 2 unknown request, option not offered or lasting, 3 not the operator, or the\n  request is no longer open, 4 storage conflict, or the daemon does not answer.")
}

// forPeople tells whether an answer is read by a person: on a terminal, not asked for as JSON, and not
// by an agent, whose shell may have a terminal too.
func (a *app) forPeople() bool { return a.Terminal && !a.asJSON() }

func (a *app) listQuestions(ctx context.Context) error {
	p, err := a.project()
	if err != nil {
		return err
	}
	answer, from, err := a.readFrom(ctx, p, "run.permissions", struct{}{}, 0)
	if err != nil {
		return err
	}
	if !a.forPeople() {
		return a.print(answer)
	}
	var list ops.Questions
	if err := json.Unmarshal(answer, &list); err != nil {
		return err
	}
	var open []*runstore.Permission
	tasks := map[runstore.PermissionID]runstore.TaskID{}
	for _, q := range list.Questions {
		open = append(open, q.Request)
		tasks[q.Request.ID] = q.TaskID
	}
	return a.saySafe(status.QuestionList(open, tasks, a.Now(), from))
}

func (a *app) answerQuestion(ctx context.Context, id runstore.PermissionID, option string) error {
	answer, err := a.do(ctx, "run.permission-answer", ops.AnswerArgs{Request: id, Option: option})
	if err != nil {
		return err
	}
	return a.print(answer)
}

func (a *app) showQuestion(ctx context.Context, id runstore.PermissionID) error {
	p, err := a.project()
	if err != nil {
		return err
	}
	answer, from, err := a.readFrom(ctx, p, "run.permission", ops.PermissionArgs{Request: id}, 0)
	if err != nil {
		return err
	}
	if !a.forPeople() {
		return a.print(answer)
	}
	var question runstore.Permission
	if err := json.Unmarshal(answer, &question); err != nil {
		return err
	}
	run, err := a.runOf(ctx, p, question.RunID)
	if err != nil {
		return err
	}
	if err := a.saySafe(status.QuestionText(&question, run, a.Now(), from)); err != nil {
		return err
	}
	choices := status.Choices(&question)
	if question.Status != "pending" || from != status.FromDaemon || !a.Input || len(choices) == 0 {
		return nil
	}
	return a.askForAnswer(ctx, &question, choices)
}

func (a *app) runOf(ctx context.Context, p contract.Project, id runstore.RunID) (*runstore.Run, error) {
	answer, err := a.read(ctx, p, "run.show", ops.RunArgs{Run: id})
	if err != nil {
		return nil, err
	}
	var shown ops.Shown
	err = json.Unmarshal(answer, &shown)
	return shown.Run, err
}

// tries is how often a number is asked for.
const tries = 3

// askForAnswer asks for the number of an option. Nothing but a number answers: an empty line, the end
// of the input and an interrupt leave the question open.
func (a *app) askForAnswer(ctx context.Context, q *runstore.Permission, choices []runstore.Option) error {
	in := bufio.NewReader(io.LimitReader(a.Stdin, 4<<10))
	for range tries {
		if _, err := fmt.Fprintf(a.Stdout, "\nAnswer with a number (1 to %d), or Enter for none: ", len(choices)); err != nil {
			return err
		}
		text, err := readLine(ctx, in)
		if ctx.Err() != nil {
			_ = a.say("") // the shell's prompt stands on a line of its own, if the terminal is still there
		}
		if err != nil {
			return err
		}
		if text == "" {
			return a.say("not answered")
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > len(choices) || text[0] == '+' {
			if err := a.saySafe(fmt.Sprintf("%.40q is none of the numbers", text)); err != nil {
				return err
			}
			continue
		}
		chosen := choices[n-1]
		if _, err := a.do(ctx, "run.permission-answer", ops.AnswerArgs{Request: q.ID, Option: chosen.OptionID}); err != nil {
			return err
		}
		return a.saySafe(fmt.Sprintf("answered with %d (%s)", n, chosen.Kind))
	}
	return a.say("not answered")
}

// readLine reads a line without its blanks, empty at the end of the input. It gives up with ctx; the
// reader then still waits for a line that nobody takes, as the process ends.
func readLine(ctx context.Context, in *bufio.Reader) (string, error) {
	type read struct {
		line string
		err  error
	}
	done := make(chan read, 1)
	go func() {
		line, err := in.ReadString('\n')
		done <- read{line, err}
	}()
	select {
	case r := <-done:
		if r.err == io.EOF {
			r.err = nil
		}
		return strings.TrimSpace(r.line), r.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
