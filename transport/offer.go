package transport

import (
	"encoding/json"
	"slices"
)

// Bounds of what is kept of an offer. The largest list that an agent was seen to send holds 50
// models; its description of itself, 2 KB.
const (
	maxChoices      = 256
	maxIntroduction = 64 << 10
)

// Offer is what the agent has told of itself and of the session it opened. All of it is agent text,
// bounded and not redacted: escape before showing. A list that the agent did not send is nil.
type Offer struct {
	// Capabilities is agentCapabilities as it came, nil where it is larger than 64 KiB.
	Capabilities json.RawMessage
	// AuthMethods are the advertised authentication methods.
	AuthMethods []AuthMethod
	// Modes and Models are the choices beside the config options, with the one in force.
	Modes, Models []Choice
	Mode, Model   string
	// Options are the session's config options, those of unknown types too.
	Options []ConfigOption
}

// AuthMethod is one way to log in.
type AuthMethod struct {
	// ID is what auth_method of a manifest names. Type is empty where the agent gave none.
	ID, Name, Type string
}

// Choice is one mode or model.
type Choice struct{ ID, Name string }

// ConfigOption is one option of a session.
type ConfigOption struct {
	// Category says what it is for, such as mode, model or thought_level; empty for none.
	ID, Name, Category, Type string
	// Current is the value in force, Values those of a select.
	Current string
	Values  []string
}

// Offer returns what the agent has told of itself and of its session, as far as the handshake came:
// what it was before model, mode and reasoning were set.
func (s *Session) Offer() Offer {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.offer
	o.AuthMethods, o.Modes, o.Models, o.Options = slices.Clone(o.AuthMethods), slices.Clone(o.Modes), slices.Clone(o.Models), slices.Clone(o.Options)
	return o
}

// describes keeps what the answer to initialize tells of the agent.
func (o *Offer) describes(answer []byte) {
	if agent := member(answer, "agentCapabilities"); isObject(agent) && len(agent) <= maxIntroduction {
		o.Capabilities = slices.Clone(agent)
	}
	for e := (elements{b: member(answer, "authMethods")}); e.next() && len(o.AuthMethods) < maxOptions; {
		if id := text(member(e.value, "id")); id != "" {
			o.AuthMethods = append(o.AuthMethods, AuthMethod{ID: cut(id, maxID),
				Name: cut(text(member(e.value, "name")), maxName), Type: cut(text(member(e.value, "type")), maxWord)})
		}
	}
}

// offers keeps what the answer to session/new or session/load lets a client choose.
func (o *Offer) offers(session []byte) {
	modes, models := member(session, "modes"), member(session, "models")
	o.Modes, o.Mode = choices(member(modes, "availableModes"), "id"), cut(text(member(modes, "currentModeId")), maxID)
	o.Models, o.Model = choices(member(models, "availableModels"), "modelId"), cut(text(member(models, "currentModelId")), maxID)
	for e := (elements{b: member(session, "configOptions")}); e.next() && len(o.Options) < maxOptions; {
		option := ConfigOption{ID: cut(text(member(e.value, "id")), maxID), Name: cut(text(member(e.value, "name")), maxName),
			Category: cut(text(member(e.value, "category")), maxWord), Type: cut(text(member(e.value, "type")), maxWord),
			Current: current(member(e.value, "currentValue"))}
		for _, value := range readValues(member(e.value, "options")) {
			if len(option.Values) < maxChoices {
				option.Values = append(option.Values, cut(value, maxID))
			}
		}
		if option.ID != "" {
			o.Options = append(o.Options, option)
		}
	}
}

// current is a value as text; that of an option of an unknown type as the JSON it came in.
func current(raw []byte) string {
	if isString(raw) {
		return cut(text(raw), maxID)
	}
	return cut(string(raw), maxWord)
}

func choices(raw []byte, key string) []Choice {
	var list []Choice
	for e := (elements{b: raw}); e.next() && len(list) < maxChoices; {
		if id := text(member(e.value, key)); id != "" {
			list = append(list, Choice{ID: cut(id, maxID), Name: cut(text(member(e.value, "name")), maxName)})
		}
	}
	return list
}
