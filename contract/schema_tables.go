package contract

import (
	"slices"

	"greatminds/internal/yamldoc"
)

func (r *schemaReader) queues(n *yamldoc.Node, path string) {
	r.entries(n, path, checkQueueName, func(id string, n *yamldoc.Node, path string) {
		q := QueueSpec{Name: Queue(id)}
		r.object(n, path,
			field{"owner", false, r.oneRole(&q.Owner)},
			field{"writers", true, r.roleList(&q.Writers)},
			field{"kind", true, choice(&r.reader, &q.Kind, QueueActive, QueueParking, QueueTerminal, QueueState)},
		)
		if q.Owner == "" && q.Kind != QueueState && n.Get("owner") == nil {
			r.faults.Add(n, "add owner", "%s has no owner", path)
		}
		r.s.Queues = append(r.s.Queues, q)
	})
}

func (r *schemaReader) roles(n *yamldoc.Node, path string) {
	r.entries(n, path, checkRoleName, func(id string, n *yamldoc.Node, path string) {
		role := RoleSpec{Name: Role(id)}
		r.object(n, path,
			field{"category", true, choice(&r.reader, &role.Category, "product", "entry", "system")},
			field{"lifecycle", true, choice(&r.reader, &role.Lifecycle, "driven", "interactive")},
			field{"claims_from", true, r.queueList(&role.ClaimsFrom)},
			field{"intake_discipline", false, r.checked(&role.IntakeDiscipline, checkToken)},
			field{"responsibilities", true, texts(&r.reader, &role.Responsibilities, nil)},
			field{"forbidden_actions", true, texts(&r.reader, &role.ForbiddenActions, nil)},
			field{"event_triggers", false, func(n *yamldoc.Node, path string) {
				r.entries(n, path, checkToken, func(id string, n *yamldoc.Node, path string) {
					t := EventTrigger{Event: id}
					texts(&r.reader, &t.Actions, nil)(n, path)
					role.EventTriggers = append(role.EventTriggers, t)
				})
			}},
			field{"stand_profile_selection", false, func(n *yamldoc.Node, path string) {
				role.StandProfileSelection = r.profileSelection(n, path)
			}},
		)
		r.s.Roles = append(r.s.Roles, role)
	})
}

func (r *schemaReader) profileSelection(n *yamldoc.Node, path string) *StandProfileSelection {
	sel := &StandProfileSelection{DefaultFor: map[string]string{}}
	word := func(string) string { return "" }
	r.object(n, path,
		field{"must_select_from", true, r.checked(&sel.MustSelectFrom, checkRelative)},
		field{"required_for", true, texts(&r.reader, &sel.RequiredFor, nil)},
		field{"default_for", true, func(n *yamldoc.Node, path string) {
			r.entries(n, path, word, func(id string, n *yamldoc.Node, path string) {
				var token string
				r.checked(&token, func(s string) string { return r.listed(s, "default_for_values") })(n, path)
				sel.DefaultFor[id] = token
			})
		}},
		field{"allowed_used_for", true, func(n *yamldoc.Node, path string) {
			texts(&r.reader, &sel.AllowedUsedFor, func(s string) string { return r.listed(s, "used_for_values") })(n, path)
		}},
	)
	return sel
}

// listed says whether a word stands in a list of stand_profile_registry, which may come later in
// the file and is therefore looked up in the tree.
func (r *schemaReader) listed(word, list string) string {
	values := r.s.document.Get("stand_profile_registry").Get(list)
	if values == nil || slices.ContainsFunc(values.Items, func(n *yamldoc.Node) bool { return n.Text == word }) {
		return ""
	}
	return "is not listed in stand_profile_registry." + list
}

func (r *schemaReader) transitions(n *yamldoc.Node, path string) {
	r.items(n, path, func(n *yamldoc.Node, path string) {
		var t Transition
		r.object(n, path,
			field{"from", true, r.oneQueue(&t.From, AnyActiveQueue)},
			field{"to", true, r.oneQueue(&t.To, AnyResumeToQueue)},
			field{"by", true, r.oneRole(&t.By, CurrentOwner)},
			field{"requires", true, texts(&r.reader, &t.Requires, nil)},
		)
		r.s.Transitions = append(r.s.Transitions, t)
	})
}

// Destinations of system transitions that are not queues.
const (
	DeclaredResumeTo   = "declared_resume_to"
	ConflictHandbackTo = "conflict_handback_to"
)

// systemRows are the moves that the daemon implements. A schema that says otherwise would be
// obeyed by nobody and is refused.
var systemRows = []SystemTransition{
	{Name: "resume_dependencies", From: "feature_blocked", To: DeclaredResumeTo,
		Requires: []string{"terminal_dependencies", "declared_resume", "task_readiness"}},
	{Name: "return_merge_conflict", From: "feature_review", To: ConflictHandbackTo, Requires: []string{"merge_conflict"}},
}

func (r *schemaReader) systemTransitions(n *yamldoc.Node, path string) {
	r.entries(n, path, checkToken, func(id string, n *yamldoc.Node, path string) {
		t := SystemTransition{Name: id}
		r.object(n, path,
			field{"from", true, r.oneQueue(&t.From)},
			field{"to", true, choice(&r.reader, &t.To, DeclaredResumeTo, ConflictHandbackTo)},
			field{"requires", true, texts(&r.reader, &t.Requires, nil)},
		)
		i := slices.IndexFunc(systemRows, func(row SystemTransition) bool { return row.Name == id })
		if i < 0 || systemRows[i].From != t.From || systemRows[i].To != t.To || !slices.Equal(systemRows[i].Requires, t.Requires) {
			r.faults.Add(n, "write it as `greatminds project schema` prints it", "%s is not what the daemon implements", path)
		}
		r.s.SystemTransitions = append(r.s.SystemTransitions, t)
	})
	for _, row := range systemRows {
		if n.Kind == yamldoc.Mapping && n.Get(row.Name) == nil {
			r.faults.Add(n, "add it", "%s.%s is missing", path, row.Name)
		}
	}
}

func (r *schemaReader) streams(n *yamldoc.Node, path string) {
	r.entries(n, path, checkToken, func(id string, n *yamldoc.Node, path string) {
		st := Stream{Name: id}
		r.object(n, path,
			field{"blocks", true, r.blockList(&st.Blocks)},
			field{"intake", true, r.queueList(&st.Intake)},
		)
		r.s.Streams = append(r.s.Streams, st)
	})
}

// The enumerated fields of blocks.
var allowedLists = []string{"allowed_test_results", "allowed_gate_check_results", "allowed_outcomes"}

func (r *schemaReader) blockKinds(n *yamldoc.Node, path string) {
	r.entries(n, path, checkToken, func(id string, n *yamldoc.Node, path string) {
		b := BlockKindSpec{Kind: BlockKind(id), Allowed: map[string][]string{}}
		fields := []field{
			{"author_roles", true, r.roleList(&b.Authors, CurrentOwner)},
			{"body_field", true, r.checked(&b.BodyField, checkToken)},
		}
		for _, name := range allowedLists {
			fields = append(fields, field{name, false, func(n *yamldoc.Node, path string) {
				var words []string
				filled(&r.reader, &words, nil)(n, path)
				b.Allowed[name] = words
			}})
		}
		r.object(n, path, fields...)
		r.s.BlockKinds = append(r.s.BlockKinds, b)
	})
}

func (r *schemaReader) queueAccepts(n *yamldoc.Node, path string) {
	r.s.QueueAccepts = map[Queue][]BlockKind{}
	r.entries(n, path, checkQueueName, func(id string, n *yamldoc.Node, path string) {
		var kinds []BlockKind
		r.blockList(&kinds)(n, path)
		r.s.QueueAccepts[Queue(id)] = kinds
		r.use(&yamldoc.Node{Kind: yamldoc.String, Text: id, Line: n.Line, Column: n.Column}, path, "queue", func(name string) bool {
			q, ok := r.s.Queue(Queue(name))
			return ok && q.Kind != QueueState
		})
	})
}

func (r *schemaReader) assignees(n *yamldoc.Node, path string) {
	r.s.AssigneeRoleByScope = map[string]Role{}
	r.entries(n, path, checkToken, func(id string, n *yamldoc.Node, path string) {
		var role Role
		r.oneRole(&role)(n, path)
		r.s.AssigneeRoleByScope[id] = role
	})
}

func (r *schemaReader) enums(n *yamldoc.Node, path string) {
	e := &r.s.Enums
	r.object(n, path,
		field{"kinds", true, filled(&r.reader, &e.Kinds, checkToken)},
		field{"scopes", true, filled(&r.reader, &e.Scopes, checkToken)},
		field{"priorities", true, filled(&r.reader, &e.Priorities, checkToken)},
		field{"plan_kinds", true, filled(&r.reader, &e.PlanKinds, checkToken)},
		field{"modes", true, filled(&r.reader, &e.Modes, nil)},
	)
}

func (r *schemaReader) taskKinds(n *yamldoc.Node, path string) {
	read := func(into *map[string][]string) value {
		return func(n *yamldoc.Node, path string) {
			*into = map[string][]string{}
			r.entries(n, path, checkToken, func(id string, n *yamldoc.Node, path string) {
				var words []string
				texts(&r.reader, &words, nil)(n, path)
				(*into)[id] = words
			})
		}
	}
	r.object(n, path,
		field{"product", true, read(&r.s.TaskKinds.Product)},
		field{"review_session", true, read(&r.s.TaskKinds.ReviewSession)},
	)
}
