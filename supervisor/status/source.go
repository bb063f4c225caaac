package status

import "greatminds/runstore"

// Source says where a document was read, and with that whether anybody takes an answer now.
type Source int

// The sources.
const (
	// FromDaemon: the daemon has told it.
	FromDaemon Source = iota
	// BesideDaemon: read from the files beside a daemon that does not answer.
	BesideDaemon
	// NoDaemon: read from the files, and no daemon runs. What was under way has ended with it.
	NoDaemon
)

// lost tells of a run that it is on record as under way and has ended with its daemon.
func (s Source) lost(r *runstore.Run) bool {
	return s == NoDaemon && r != nil && r.Process != nil && !r.State.Terminal()
}

const lostWords = "its processes have ended with the daemon; the next start records that"

// answerLines are the lines below an open question: the commands that show and answer it, or why it
// cannot be answered and what becomes of it.
func (s Source) answerLines(p *runstore.Permission) []string {
	out := []string{"  greatminds run permission " + string(p.ID)}
	switch s {
	case BesideDaemon:
		return append(out, "  it can be answered once the daemon answers again")
	case NoDaemon:
		return append(out, "  it cannot be answered any more: who waited for it has ended with the daemon, and the next start closes it",
			"  greatminds run retry "+string(p.RunID)+"    # starts the run over", "  greatminds run cancel "+string(p.RunID)+"    # gives it up")
	}
	for _, o := range p.Options {
		if o.Once() {
			out = append(out, "  "+AnswerCommand(p.ID, o.OptionID)+"    # "+o.Kind+", "+safe(o.Name, 60))
		}
	}
	return out
}
