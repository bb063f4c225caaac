package permission

import (
	"fmt"
	"slices"

	"greatminds/internal/redact"
	"greatminds/runstore"
	"greatminds/transport"
)

// offered are the options of a question as they are on record, beside those of the agent.
type offered struct {
	shown []runstore.Option
	given []transport.Option
}

// offer masks what the options say. An id is only changed where it holds a secret itself: then the
// record has a name of ours in its place.
func offer(secrets *redact.Redactor, options []transport.Option) offered {
	o := offered{given: options}
	taken := func(id string) bool {
		return slices.ContainsFunc(options, func(g transport.Option) bool { return g.ID == id })
	}
	for i, g := range options {
		id := g.ID
		if secrets.Text(id) != id {
			for id = fmt.Sprintf("option-%d", i+1); taken(id); id += "-" {
			}
		}
		kind := g.Kind
		if !g.Selectable {
			kind = secrets.Text(kind)
		}
		o.shown = append(o.shown, runstore.Option{OptionID: id, Name: secrets.Text(g.Name), Kind: kind})
	}
	return o
}

// chosen puts the agent's own id in the place of the recorded one.
func (o offered) chosen(a Answered) Answered {
	for i, s := range o.shown {
		if a.OptionID != "" && s.OptionID == a.OptionID {
			a.OptionID = o.given[i].ID
			break
		}
	}
	return a
}
