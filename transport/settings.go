package transport

import (
	"context"
	"fmt"
	"slices"

	acp "github.com/coder/acp-go-sdk"
)

// configOption is one select option of the session; other types are left alone.
type configOption struct {
	id, category, current string
	values                []string
}

// readConfig reads the select options in a configOptions array. An option of a type that
// nobody knows costs only itself.
func readConfig(raw []byte) []configOption {
	var options []configOption
	for e := (elements{b: raw}); e.next(); {
		o := configOption{
			id:       text(member(e.value, "id")),
			category: text(member(e.value, "category")),
			current:  text(member(e.value, "currentValue")),
		}
		if text(member(e.value, "type")) != "select" || o.id == "" {
			continue
		}
		o.values = readValues(member(e.value, "options"))
		options = append(options, o)
	}
	return options
}

// readValues reads options, alone or in groups. A group holds no further groups: to look for them
// would read what is nested deep as often as it is deep.
func readValues(raw []byte) []string {
	var values []string
	for e := (elements{b: raw}); e.next(); {
		if v := member(e.value, "value"); isString(v) {
			values = append(values, text(v))
			continue
		}
		for g := (elements{b: member(e.value, "options")}); g.next(); {
			if v := member(g.value, "value"); isString(v) {
				values = append(values, text(v))
			}
		}
	}
	return values
}

// find returns the option of a category that offers the value, else the category's first.
func find(options []configOption, category, value string) (configOption, bool) {
	var found *configOption
	for i, o := range options {
		if o.category != category {
			continue
		}
		if slices.Contains(o.values, value) {
			return o, true
		}
		if found == nil {
			found = &options[i]
		}
	}
	if found == nil {
		return configOption{}, false
	}
	return *found, true
}

// configure applies model, mode and reasoning in this order, each from the options that the
// one before has left. A setting counts only when the agent's answer confirms it.
// Spec: "Delivery status".
func (c *conn) configure(ctx context.Context, session []byte) *Error {
	if raw := member(session, "configOptions"); isArray(raw) {
		c.mu.Lock()
		c.options = readConfig(raw)
		c.mu.Unlock()
	}
	for _, setting := range []struct {
		name, category, value string
		confirmed             *string
	}{
		{"model", "model", c.o.Model, &c.negotiated.Model},
		{"mode", "mode", c.o.Mode, &c.negotiated.Mode},
		{"reasoning", "thought_level", c.o.Reasoning, &c.negotiated.Reasoning},
	} {
		if setting.value == "" {
			continue
		}
		err := c.set(ctx, session, setting.name, setting.category, setting.value)
		if err != nil {
			return err
		}
		c.mu.Lock()
		*setting.confirmed = setting.value
		c.mu.Unlock()
	}
	return nil
}

func (c *conn) set(ctx context.Context, session []byte, name, category, value string) *Error {
	c.mu.Lock()
	option, ok := find(c.options, category, value)
	c.mu.Unlock()
	modes := member(session, "modes")
	switch {
	case ok:
		return c.setOption(ctx, name, category, option, value)
	case category == "mode" && isObject(modes):
		return c.setMode(ctx, modes, value)
	}
	return misconfigured("%s %q: the agent offers no option of category %s", name, value, category)
}

func misconfigured(format string, args ...any) *Error {
	return &Error{Kind: Configuration, Phase: PhaseConfigure, What: fmt.Sprintf(format, args...)}
}

// setOption sets one config option and reads the answer's options back. An answer without
// options counts when the agent has sent them as an update instead.
func (c *conn) setOption(ctx context.Context, name, category string, option configOption, value string) *Error {
	if !slices.Contains(option.values, value) {
		return misconfigured("%s %q is not among the offered %q", name, value, shown(option.values))
	}
	c.mu.Lock()
	c.options = nil
	c.mu.Unlock()
	answer, err := c.request(ctx, PhaseConfigure, acp.AgentMethodSessionSetConfigOption, map[string]string{
		"sessionId": c.session(), "configId": option.id, "value": value,
	})
	if err != nil {
		return refusedSetting(err, name, value)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if raw := member(answer, "configOptions"); isArray(raw) {
		c.options = readConfig(raw)
	}
	for _, o := range c.options {
		if o.id != option.id {
			continue
		}
		if o.current == value {
			return nil
		}
		return misconfigured("%s %q was not confirmed: the agent reports %q", name, value, cut(o.current, maxWord))
	}
	return misconfigured("%s %q was not confirmed by the agent's answer", name, value)
}

// setMode sets a mode where the agent has no config option for it. The answer holds no
// state, so that an acknowledgement confirms, unless an update before it says otherwise.
func (c *conn) setMode(ctx context.Context, modes []byte, value string) *Error {
	var ids []string
	for e := (elements{b: member(modes, "availableModes")}); e.next(); {
		ids = append(ids, text(member(e.value, "id")))
	}
	// Some agents take any id for an answer, so it is checked here.
	if !slices.Contains(ids, value) {
		return misconfigured("mode %q is not among the offered %q", value, shown(ids))
	}
	c.mu.Lock()
	c.mode = ""
	c.mu.Unlock()
	_, err := c.request(ctx, PhaseConfigure, acp.AgentMethodSessionSetMode,
		acp.SetSessionModeRequest{SessionId: acp.SessionId(c.session()), ModeId: acp.SessionModeId(value)})
	if err != nil {
		return refusedSetting(err, "mode", value)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mode != "" && c.mode != value {
		return misconfigured("mode %q was not confirmed: the agent reports %q", value, cut(c.mode, maxWord))
	}
	return nil
}

// refusedSetting makes an agent's refusal of a setting a fault of the configuration.
func refusedSetting(err *Error, name, value string) *Error {
	if err.Kind == Protocol && err.Code != nil {
		err.Kind = Configuration
		err.What = fmt.Sprintf("the agent refused %s %q", name, value)
	}
	return err
}

// shown keeps a list short enough to print.
func shown(values []string) []string {
	const most = 20
	out := make([]string, 0, min(len(values), most))
	for _, v := range values[:min(len(values), most)] {
		out = append(out, cut(v, maxWord))
	}
	return out
}
