package contract

import (
	"regexp"
	"slices"
	"strings"

	"greatminds/internal/yamldoc"
)

// schemaReader reads the tables of a workflow schema. Names are checked at the end, since a
// table may use what a later one defines.
type schemaReader struct {
	reader
	s     *Schema
	later []func()
}

var (
	queueName = regexp.MustCompile(`^\.?[a-z][a-z0-9_]{0,63}$`)
	roleName  = regexp.MustCompile(`^[A-Z][A-Z0-9-]{0,63}$`)
	tokenName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
)

func matching(pattern *regexp.Regexp, what string) func(string) string {
	return func(s string) string {
		if !pattern.MatchString(s) {
			return "is no " + what
		}
		return ""
	}
}

var (
	checkQueueName = matching(queueName, "name of a queue (small letters, digits and _)")
	checkRoleName  = matching(roleName, "name of a role (capital letters, digits and -)")
	checkToken     = matching(tokenName, "simple word (small letters, digits and _)")
)

// anything accepts what is for people only; the strict reading of the file has checked its form.
func anything(*yamldoc.Node, string) {}

func (r *schemaReader) root(n *yamldoc.Node) {
	s := r.s
	r.object(n, "",
		field{"version", true, r.count(&s.Version, 1, 1)},
		field{"system_transitions", true, r.systemTransitions},
		field{"glossary", false, anything},
		field{"queues", true, r.queues},
		field{"roles", true, r.roles},
		field{"transitions", true, r.transitions},
		field{"task_kinds", false, r.taskKinds},
		field{"scenarios", true, r.scenarios},
		field{"runtime_access", false, anything},
		field{"watchdog", true, r.watchdog},
		field{"inbox", true, func(n *yamldoc.Node, path string) {
			r.object(n, path, field{"allowed_kinds", true, filled(&r.reader, &s.Inbox.AllowedKinds, checkToken)})
		}},
		field{"git_permissions", true, r.gitPermissions},
		field{"stand", true, r.stand},
		field{"stand_keeper", false, r.standKeeper},
		field{"tests_block_validation", true, r.testsValidation},
		field{"layout", true, r.layout},
		field{"streams", true, r.streams},
		field{"block_kinds", true, r.blockKinds},
		field{"queue_accepts_blocks", true, r.queueAccepts},
		field{"assignee_role_by_scope", true, r.assignees},
		field{"product_enums", true, r.enums},
		field{"worktrees", true, func(n *yamldoc.Node, path string) {
			r.object(n, path, worktreeFields(&r.reader, &s.Worktrees, true)...)
			r.queueUse(n.Get("conflict_handback_to"), path+".conflict_handback_to")
		}},
		field{"visual_events", false, anything},
		field{"report_upstream", false, anything},
		field{"project_env", false, anything},
		field{"stand_profile_registry", true, r.profileRegistry},
		field{"stand_profile", true, r.profile},
	)
	for _, check := range r.later {
		check()
	}
	r.consistency(n)
}

// queueUse, roleUse and blockUse check at the end that a name is defined.
func (r *schemaReader) queueUse(n *yamldoc.Node, path string, also ...Queue) {
	r.use(n, path, "queue", func(name string) bool {
		_, ok := r.s.Queue(Queue(name))
		for _, a := range also {
			ok = ok || name == string(a)
		}
		return ok
	})
}

func (r *schemaReader) roleUse(n *yamldoc.Node, path string, also ...Role) {
	r.use(n, path, "role", func(name string) bool {
		_, ok := r.s.Role(Role(name))
		for _, a := range also {
			ok = ok || name == string(a)
		}
		return ok
	})
}

func (r *schemaReader) blockUse(n *yamldoc.Node, path string) {
	r.use(n, path, "block kind", func(name string) bool {
		_, ok := r.s.BlockKind(BlockKind(name))
		return ok
	})
}

// use checks a scalar, or each item of a list.
func (r *schemaReader) use(n *yamldoc.Node, path, what string, known func(string) bool) {
	if n == nil {
		return
	}
	nodes := n.Items
	if n.Kind == yamldoc.String {
		nodes = []*yamldoc.Node{n}
	}
	r.later = append(r.later, func() {
		for _, x := range nodes {
			if x.Kind == yamldoc.String && !known(x.Text) {
				r.faults.Add(x, "define it, or correct the name", "%s names the %s %s, which is not defined", path, what, yamldoc.Show(x.Text))
			}
		}
	})
}

// using reads a value and checks the names in it at the end.
func using(read value, use func(n *yamldoc.Node, path string)) value {
	return func(n *yamldoc.Node, path string) {
		read(n, path)
		use(n, path)
	}
}

func (r *schemaReader) roleList(into *[]Role, also ...Role) value {
	return using(texts(&r.reader, into, nil), func(n *yamldoc.Node, path string) { r.roleUse(n, path, also...) })
}

func (r *schemaReader) oneRole(into *Role, also ...Role) value {
	return using(r.text((*string)(into)), func(n *yamldoc.Node, path string) { r.roleUse(n, path, also...) })
}

func (r *schemaReader) oneQueue(into *Queue, also ...Queue) value {
	return using(r.text((*string)(into)), func(n *yamldoc.Node, path string) { r.queueUse(n, path, also...) })
}

func (r *schemaReader) queueList(into *[]Queue) value {
	return using(texts(&r.reader, into, nil), func(n *yamldoc.Node, path string) { r.queueUse(n, path) })
}

func (r *schemaReader) blockList(into *[]BlockKind) value {
	return using(texts(&r.reader, into, nil), r.blockUse)
}

// consistency checks what two tables say about the same thing.
func (r *schemaReader) consistency(root *yamldoc.Node) {
	s := r.s
	for _, q := range s.Queues {
		at := root.Get("queues").Get(string(q.Name))
		// Nobody works on what is in a terminal queue: its owner only answers for it.
		worked := q.Kind == QueueActive || q.Kind == QueueParking
		if role, ok := s.Role(q.Owner); ok && worked && !slices.Contains(role.ClaimsFrom, q.Name) {
			r.faults.Add(at, "add it there", "queue %s is owned by %s, whose claims_from does not list it", q.Name, q.Owner)
		}
		if _, ok := s.QueueAccepts[q.Name]; !ok && q.Kind != QueueState && s.QueueAccepts != nil {
			r.faults.Add(at, "add it there, with [] for none", "queue %s is missing in queue_accepts_blocks", q.Name)
		}
	}
	for _, role := range s.Roles {
		at := root.Get("roles").Get(string(role.Name))
		for _, name := range role.ClaimsFrom {
			if q, ok := s.Queue(name); ok && q.Owner != role.Name {
				r.faults.Add(at, "remove it there", "role %s claims from %s, which %s owns", role.Name, name, q.Owner)
			}
		}
	}
}

// worktreeFields are the fields of the worktree policy; required in a schema, optional in
// coordination/coord.yaml, where they override the schema's.
func worktreeFields(r *reader, w *Worktrees, required bool) []field {
	return []field{
		{"base_path", required, r.checked(&w.BasePath, checkRelative)},
		{"branch_prefix", required, r.checked(&w.BranchPrefix, checkBranch)},
		{"default_branch", required, r.checked(&w.DefaultBranch, checkBranch)},
		{"merge_strategy", required, choice(r, &w.MergeStrategy, "--no-ff")},
		{"cleanup_on_archive", required, r.flag(&w.CleanupOnArchive)},
		{"cleanup_on_verified", required, r.flag(&w.CleanupOnVerified)},
		{"conflict_handback_to", required, r.text((*string)(&w.ConflictHandbackTo))},
		{"required_for_task_kinds", required, texts(r, &w.RequiredForTaskKinds, checkToken)},
	}
}

// checkBranch refuses what git would refuse, or take for an option, as a branch or its prefix.
func checkBranch(s string) string {
	bad := strings.HasPrefix(s, "-") || strings.HasPrefix(s, "/") || strings.HasPrefix(s, ".") ||
		strings.Contains(s, "..") || strings.Contains(s, "//") || strings.Contains(s, "/.") || strings.Contains(s, "@{") ||
		strings.Contains(s, ".lock/") || strings.HasSuffix(s, ".lock") || strings.HasSuffix(s, ".") || s == "@" ||
		strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c == 0x7f || strings.ContainsRune(`~^:?*[\`, c) })
	if bad {
		return "is no name of a branch"
	}
	return ""
}
