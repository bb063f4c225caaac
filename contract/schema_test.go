package contract_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"greatminds/contract"
	"greatminds/internal/refusal"
)

// What the tables of the workflow must say; written down a second time, by hand, on purpose.
const transitionTable = `
user_feedback feature_inbox ARCHITECT-PLANNER triage_block
user_feedback archive ARCHITECT-PLANNER triage_block
feature_inbox archive ARCHITECT-PLANNER
feature_plan archive ARCHITECT-PLANNER
review_sessions archive ARCHITECT-PLANNER review_session_terminal_block
review_sessions archive EXPLORER review_session_terminal_block
feature_blocked archive ARCHITECT-REVIEWER feature_blocked_withdrawn_reason
feature_inbox feature_plan ARCHITECT-PLANNER triage_block
feature_plan feature_dev ARCHITECT-PLANNER plan_block scope_backend
feature_plan feature_ui_dev ARCHITECT-PLANNER plan_block scope_ui
feature_plan feature_docs ARCHITECT-PLANNER plan_block scope_docs
feature_plan feature_docs_review ARCHITECT-PLANNER plan_block scope_docs plan.audit_only
feature_plan feature_live ARCHITECT-PLANNER plan_block plan.interactive
feature_plan feature_test ARCHITECT-PLANNER plan_block plan.verify_only
feature_dev feature_test DEVELOPER implementation_block
feature_ui_dev feature_test UI-DEVELOPER implementation_block
feature_docs feature_docs_review TECHNICAL-WRITER implementation_block
feature_live feature_review LIVE-DEVELOPER implementation_block
feature_test feature_review TESTER tests_block gate_check_pass_if_stand_required
feature_test feature_dev TESTER tests_block_fail_or_partial scope_backend
feature_test feature_ui_dev TESTER tests_block_fail_or_partial scope_ui
feature_docs_review feature_review READER reader_block_pass
feature_docs_review feature_docs READER reader_block_fail_or_partial
feature_review verified ARCHITECT-REVIEWER review_block_approved gate_check_pass_if_stand_required
feature_review feature_dev ARCHITECT-REVIEWER review_block_changes_requested scope_backend
feature_review feature_ui_dev ARCHITECT-REVIEWER review_block_changes_requested scope_ui
feature_review feature_docs ARCHITECT-REVIEWER review_block_changes_requested scope_docs
any_active_queue feature_blocked current_owner blocked_block_with_dependencies_and_resume_to
any_active_queue feature_blocked ARCHITECT-PLANNER blocked_block_withdrawn_reason_and_resume_to
feature_blocked any_resume_to_queue ARCHITECT-REVIEWER all_dependencies_exist_per_wake_check
verified archive ARCHITECT-REVIEWER rollback_block_with_reason
verified feature_review ARCHITECT-REVIEWER rollback_block_with_reason
`

// name, owner, kind, writers
const queueTable = `
feature_inbox ARCHITECT-PLANNER active ARCHITECT-PLANNER EXPLORER
feature_plan ARCHITECT-PLANNER active ARCHITECT-PLANNER
feature_blocked ARCHITECT-REVIEWER parking DEVELOPER UI-DEVELOPER TECHNICAL-WRITER TESTER READER ARCHITECT-REVIEWER ARCHITECT-PLANNER
feature_dev DEVELOPER active DEVELOPER
feature_ui_dev UI-DEVELOPER active UI-DEVELOPER
feature_docs TECHNICAL-WRITER active TECHNICAL-WRITER
feature_test TESTER active DEVELOPER UI-DEVELOPER TESTER
feature_docs_review READER active TECHNICAL-WRITER READER
feature_live LIVE-DEVELOPER active LIVE-DEVELOPER ARCHITECT-PLANNER
feature_review ARCHITECT-REVIEWER active TESTER READER LIVE-DEVELOPER ARCHITECT-REVIEWER
verified ARCHITECT-REVIEWER terminal ARCHITECT-REVIEWER
archive ARCHITECT-PLANNER terminal ARCHITECT-PLANNER ARCHITECT-REVIEWER
user_feedback ARCHITECT-PLANNER active USER
review_sessions EXPLORER active ARCHITECT-PLANNER EXPLORER
.stand - state TESTER ARCHITECT-PLANNER MAINTAINER LIVE-DEVELOPER EXPLORER ARCHITECT-REVIEWER
`

// name, category, lifecycle, responsibilities, forbidden actions, event triggers, queues
const roleTable = `
ARCHITECT-PLANNER product interactive 7 5 5 user_feedback feature_inbox feature_plan
ARCHITECT-REVIEWER product driven 4 3 3 feature_review feature_blocked
DEVELOPER product driven 3 5 1 feature_dev
UI-DEVELOPER product driven 3 3 1 feature_ui_dev
LIVE-DEVELOPER product interactive 3 3 1 feature_live
TECHNICAL-WRITER product driven 2 2 1 feature_docs
TESTER product driven 5 7 1 feature_test
READER product driven 2 2 1 feature_docs_review
EXPLORER product driven 3 5 1 review_sessions
USER entry interactive 2 3 0
MAINTAINER system interactive 4 5 1
`

func rows(table string) [][]string {
	var out [][]string
	for line := range strings.Lines(strings.TrimSpace(table)) {
		out = append(out, strings.Fields(line))
	}
	return out
}

func strs[T ~string](items []T) []string {
	out := []string{}
	for _, x := range items {
		out = append(out, string(x))
	}
	return out
}

func TestWorkflowTables(t *testing.T) {
	s := contract.EmbeddedSchema()
	var transitions, queues, roles [][]string
	for _, x := range s.Transitions {
		transitions = append(transitions, append([]string{string(x.From), string(x.To), string(x.By)}, x.Requires...))
	}
	if d := cmp.Diff(rows(transitionTable), transitions); d != "" {
		t.Errorf("transitions (-want +got):\n%s", d)
	}
	for _, q := range s.Queues {
		owner := string(q.Owner)
		if owner == "" {
			owner = "-"
		}
		queues = append(queues, append([]string{string(q.Name), owner, string(q.Kind)}, strs(q.Writers)...))
	}
	if d := cmp.Diff(rows(queueTable), queues); d != "" {
		t.Errorf("queues (-want +got):\n%s", d)
	}
	count := func(n int) string { return string(rune('0' + n)) }
	for _, r := range s.Roles {
		roles = append(roles, append([]string{string(r.Name), r.Category, r.Lifecycle, count(len(r.Responsibilities)), count(len(r.ForbiddenActions)), count(len(r.EventTriggers))}, strs(r.ClaimsFrom)...))
		for _, token := range slices.Concat(r.Responsibilities, r.ForbiddenActions) {
			if strings.Trim(token, "abcdefghijklmnopqrstuvwxyz_") != "" {
				t.Errorf("%s: %q is no snake_case token", r.Name, token)
			}
		}
	}
	if d := cmp.Diff(rows(roleTable), roles); d != "" {
		t.Errorf("roles (-want +got):\n%s", d)
	}
}

func TestRestOfTheWorkflow(t *testing.T) {
	s := contract.EmbeddedSchema()
	type facts struct {
		Version  int
		Enums    contract.Enums
		Scopes   map[string]contract.Role
		Worktree contract.Worktrees
		Git      contract.GitPermissions
		Watchdog contract.Watchdog
		Inbox    []string
		System   []contract.SystemTransition
		Streams  []contract.Stream
		Letters  []contract.Scenario
		Stand    contract.StandSettings
		Layout   contract.Layout
		Tests    contract.TestsValidation
	}
	got := facts{s.Version, s.Enums, s.AssigneeRoleByScope, s.Worktrees, s.GitPermissions, s.Watchdog, s.Inbox.AllowedKinds, s.SystemTransitions, s.Streams, s.Scenarios, s.Stand, s.Layout, s.TestsValidation}
	probes := []string{"functional_probes", "stand_evidence.tester_observations"}
	want := facts{
		Version: 1,
		Enums: contract.Enums{Kinds: []string{"feature", "bugfix", "docs", "ops", "research", "release"}, Scopes: []string{"backend", "ui", "docs", "stand", "research", "release"},
			Priorities: []string{"low", "normal", "high"}, PlanKinds: []string{"full", "bugfix"}, Modes: []string{"A", "B", "C"}},
		Scopes: map[string]contract.Role{"backend": "DEVELOPER", "ui": "UI-DEVELOPER", "docs": "TECHNICAL-WRITER"},
		Worktree: contract.Worktrees{BasePath: ".worktrees", BranchPrefix: "task/", DefaultBranch: "main", MergeStrategy: "--no-ff", CleanupOnArchive: true, CleanupOnVerified: true,
			ConflictHandbackTo: "feature_dev", RequiredForTaskKinds: []string{"feature", "bugfix", "ops", "docs", "release"}},
		Git: contract.GitPermissions{Commit: []contract.Role{"ARCHITECT-REVIEWER"}, Push: []contract.Role{"ARCHITECT-REVIEWER"},
			ForbiddenVerbs: []string{"reset", "restore", "checkout", "stash", "rebase", "revert", "branch", "tag"}},
		Watchdog: contract.Watchdog{IntentOrphanSeconds: 300, TaskStaleInActiveQueueSeconds: 86400, TaskStaleInReviewQueueSeconds: 43200},
		Inbox:    []string{"wake", "ask", "info"},
		System: []contract.SystemTransition{
			{Name: "resume_dependencies", From: "feature_blocked", To: contract.DeclaredResumeTo, Requires: []string{"terminal_dependencies", "declared_resume", "task_readiness"}},
			{Name: "return_merge_conflict", From: "feature_review", To: contract.ConflictHandbackTo, Requires: []string{"merge_conflict"}}},
		Streams: []contract.Stream{
			{Name: "product", Blocks: []contract.BlockKind{"triage", "plan", "implementation", "tests", "reader_review", "review", "blocked", "rollback"}, Intake: []contract.Queue{"feature_inbox", "user_feedback"}},
			{Name: "review_session", Blocks: []contract.BlockKind{"session_iteration", "blocked"}, Intake: []contract.Queue{"review_sessions"}}},
		Letters: []contract.Scenario{
			{Letter: "A", Name: "feature_or_refactor", Roles: []contract.Role{"ARCHITECT-PLANNER", "ARCHITECT-REVIEWER", "DEVELOPER", "UI-DEVELOPER", "TECHNICAL-WRITER", "TESTER", "READER"}, StandProfile: "full-deploy"},
			{Letter: "B", Name: "intensive_review", Roles: []contract.Role{"ARCHITECT-PLANNER", "ARCHITECT-REVIEWER", "EXPLORER", "DEVELOPER", "UI-DEVELOPER", "TESTER"}, StandProfile: "full-deploy"},
			{Letter: "C", Name: "ui_rapid_iteration", Roles: []contract.Role{"LIVE-DEVELOPER"}, StandProfile: "vite-dev"}},
		Stand:  contract.StandSettings{States: []string{"free", "preparing", "ready", "down"}, LeaseTTLSeconds: 14400, LeaseWarnSeconds: 300, AutoRelease: true, StateFile: ".stand/state.yaml", NotifyOnDown: "ARCHITECT-PLANNER"},
		Layout: contract.Layout{Journal: "journal.ndjson", IntentDir: "intent/", InboxDir: "inbox/", StandStatus: "stand.status"},
		Tests: contract.TestsValidation{RequiredSubfields: []string{"reproduction_steps", "observed_without_fix", "observed_with_fix", "lease_id", "result", "commit"}, RequiredWhen: "plan.stand_required",
			RequiredForScopes: map[string][]string{"backend": probes, "ui": probes}, ExemptScopes: []string{"docs", "research"}, ScopeProbesWhen: "plan.stand_required"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("schema (-want +got):\n%s", d)
	}
	if s.Worktrees.Requires("research") || !s.Worktrees.Requires("docs") {
		t.Error("docs tasks have a worktree, research tasks have none")
	}
}

func TestBlocksAndWhereTheyGo(t *testing.T) {
	s := contract.EmbeddedSchema()
	authors := map[contract.BlockKind][]contract.Role{}
	for _, b := range s.BlockKinds {
		authors[b.Kind] = b.Authors
	}
	implementers := []contract.Role{"DEVELOPER", "UI-DEVELOPER", "TECHNICAL-WRITER", "LIVE-DEVELOPER"}
	want := map[contract.BlockKind][]contract.Role{"triage": {"ARCHITECT-PLANNER"}, "plan": {"ARCHITECT-PLANNER"}, "implementation": implementers, "tests": {"TESTER"}, "reader_review": {"READER"},
		"review": {"ARCHITECT-REVIEWER"}, "blocked": {contract.CurrentOwner, "ARCHITECT-PLANNER"}, "rollback": {"ARCHITECT-REVIEWER"}, "session_iteration": {"EXPLORER"}}
	if d := cmp.Diff(want, authors); d != "" {
		t.Errorf("authors (-want +got):\n%s", d)
	}
	accepts := map[contract.Queue][]contract.BlockKind{"feature_inbox": {"triage", "blocked"}, "feature_plan": {"plan", "blocked"}, "feature_dev": {"implementation", "blocked"},
		"feature_ui_dev": {"implementation", "blocked"}, "feature_docs": {"implementation", "blocked"}, "feature_live": {"implementation", "blocked"}, "feature_test": {"tests", "blocked"},
		"feature_docs_review": {"reader_review", "blocked"}, "feature_review": {"review", "blocked"}, "feature_blocked": {"blocked"}, "user_feedback": {"triage", "blocked"},
		"review_sessions": {"session_iteration", "blocked"}, "verified": {"rollback"}, "archive": {}}
	if d := cmp.Diff(accepts, s.QueueAccepts); d != "" {
		t.Errorf("accepted blocks (-want +got):\n%s", d)
	}
	if !s.Accepts("verified", "rollback") || s.Accepts("archive", "rollback") || s.Accepts("nowhere", "plan") {
		t.Error("Accepts")
	}
	tests, ok := s.BlockKind("tests")
	if !ok || tests.BodyField != "notes" || !cmp.Equal(tests.Allowed, map[string][]string{"allowed_test_results": {"pass", "fail", "partial"}, "allowed_gate_check_results": {"pass", "fail", "missing", "n/a"}}) {
		t.Errorf("tests block: %+v", tests)
	}
	queues := s.TaskQueues()
	if len(queues) != 14 || slices.Contains(queues, ".stand") {
		t.Errorf("task queues %v", queues)
	}
	if st, ok := s.Stream("review_session"); !ok || len(st.Blocks) != 2 {
		t.Errorf("stream %+v", st)
	}
	for _, found := range []bool{has(s.Queue("none")), has(s.Role("NONE")), has(s.BlockKind("none")), has(s.Stream("none"))} {
		if found {
			t.Error("something that is not there was found")
		}
	}
}

func has[T any](_ T, ok bool) bool { return ok }

// The profiles that roles select name words of the registry.
func TestStandProfileSelection(t *testing.T) {
	s := contract.EmbeddedSchema()
	want := map[contract.Role]contract.StandProfileSelection{
		"ARCHITECT-REVIEWER": {RequiredFor: []string{"final_review_when_stand_required", "production_review"}, DefaultFor: map[string]string{"final_review_when_stand_required": "reviewer", "production_review": "production_review"}, AllowedUsedFor: []string{"reviewer_validation", "tester_validation", "explorer_review", "production_post_deploy_review"}},
		"LIVE-DEVELOPER":     {RequiredFor: []string{"feature_live"}, DefaultFor: map[string]string{"feature_live": "live_developer"}, AllowedUsedFor: []string{"live_ui", "ui_iteration"}},
		"TESTER":             {RequiredFor: []string{"plan.stand_required", "plan.verify_only"}, DefaultFor: map[string]string{"plan.stand_required": "feature_test", "plan.verify_only": "verify_only"}, AllowedUsedFor: []string{"tester_validation", "deploy_only", "warmup", "quick_readiness"}},
		"EXPLORER":           {RequiredFor: []string{"review_session"}, DefaultFor: map[string]string{"review_session": "explorer"}, AllowedUsedFor: []string{"explorer_review", "full_product_validation"}},
	}
	got := map[contract.Role]contract.StandProfileSelection{}
	for _, r := range s.Roles {
		if sel := r.StandProfileSelection; sel != nil {
			if sel.MustSelectFrom != s.StandProfiles.RegistryPath {
				t.Errorf("%s selects from %s", r.Name, sel.MustSelectFrom)
			}
			got[r.Name] = contract.StandProfileSelection{RequiredFor: sel.RequiredFor, DefaultFor: sel.DefaultFor, AllowedUsedFor: sel.AllowedUsedFor}
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// changed is the embedded schema with one replacement.
func changed(t *testing.T, old, new string) string {
	t.Helper()
	text := string(contract.EmbeddedSchema().Text)
	if !strings.Contains(text, old) {
		t.Fatalf("the schema has no %q", old)
	}
	return strings.Replace(text, old, new, 1)
}

func TestSchemaFaultsAreRefusedWithTheirPlace(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"version", "version: 1", "version: 2", "version is 2"},
		{"unknown table", "version: 1", "version: 1\nquues: {}", `unknown field "quues"; did you mean queues?`},
		{"missing table", "worktrees:\n", "wortrees:\n", `unknown field "wortrees"; did you mean worktrees?`},
		{"repeated queue", "  feature_plan:\n    owner", "  feature_inbox:\n    owner", `key "feature_inbox" is repeated`},
		{"kind of queue", "kind: parking", "kind: idle", `queues.feature_blocked.kind "idle" is unknown`},
		{"name of a queue", "  .stand:", "  ../stand:", `"../stand" in queues is no name of a queue`},
		{"no owner", "    owner: DEVELOPER\n", "", "queues.feature_dev has no owner"},
		{"unknown owner", "    owner: DEVELOPER\n", "    owner: DEVELOPR\n", `queues.feature_dev.owner names the role "DEVELOPR", which is not defined`},
		{"unknown writer", "writers: [USER]", "writers: [USERS]", `queues.user_feedback.writers names the role "USERS"`},
		{"claim of another's queue", "claims_from: [feature_dev]", "claims_from: [feature_dev, feature_docs]", "role DEVELOPER claims from feature_docs, which TECHNICAL-WRITER owns"},
		{"queue that nobody claims", "claims_from: [feature_dev]", "claims_from: []", "queue feature_dev is owned by DEVELOPER, whose claims_from does not list it"},
		{"lifecycle", "lifecycle: driven", "lifecycle: manual", `lifecycle "manual" is unknown`},
		{"transition from nowhere", "{from: user_feedback,", "{from: nowhere,", `transitions[0].from names the queue "nowhere"`},
		{"transition by nobody", "by: EXPLORER,", "by: NOBODY,", `transitions[5].by names the role "NOBODY"`},
		{"transition with an extra field", "{from: user_feedback,", "{when: x, from: user_feedback,", `unknown field "when" in transitions[0]`},
		{"system transition", "requires: [merge_conflict]", "requires: []", "system_transitions.return_merge_conflict is not what the daemon implements"},
		{"unknown system transition", "  return_merge_conflict:", "  return_conflict:", "system_transitions.return_merge_conflict is missing"},
		{"block of a stream", "blocks: [session_iteration, blocked]", "blocks: [session, blocked]", `streams.review_session.blocks names the block kind "session"`},
		{"blocks of a queue", "  archive: []\n", "", "queue archive is missing in queue_accepts_blocks"},
		{"blocks of an unknown queue", "  archive: []\n", "  archive: []\n  attic: []\n", `queue_accepts_blocks.attic names the queue "attic"`},
		{"blocks of a state queue", "  archive: []\n", "  archive: []\n  .stand: []\n", `the queue ".stand"`},
		{"conflict queue", "conflict_handback_to: feature_dev", "conflict_handback_to: feature_development", `names the queue "feature_development"`},
		{"default branch", "default_branch: main", "default_branch: --force", `worktrees.default_branch "--force" is no name of a branch`},
		{"merge strategy", "merge_strategy: --no-ff", "merge_strategy: --squash", `worktrees.merge_strategy "--squash" is unknown`},
		{"base path", "base_path: .worktrees", "base_path: ../elsewhere", "worktrees.base_path"},
		{"profile word", "feature_live: live_developer", "feature_live: live_dev", "is not listed in stand_profile_registry.default_for_values"},
		{"watchdog", "intent_orphan_seconds: 300", "intent_orphan_seconds: 5m", "watchdog.intent_orphan_seconds is text"},
		{"scenario", "  C:\n", "  CC:\n", `"CC" in scenarios is no capital letter`},
		{"anchor", "queues:\n", "queues: &q\n", "anchor &q"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := contract.ParseSchema("s.yaml", []byte(changed(t, c.old, c.new)))
			refusedWith(t, err, refusal.CodeSchemaInvalid, c.want, "s.yaml:")
		})
	}
}

func TestSchemaOfAnotherFolder(t *testing.T) {
	dir := t.TempDir()
	env := func(name string) string {
		if name == "GREATMINDS_CANON_DIR" {
			return dir
		}
		return ""
	}
	_, err := contract.LoadSchema(env)
	refusedWith(t, err, refusal.CodeSchemaMissing, dir, "does not exist", "unset GREATMINDS_CANON_DIR")
	if r, _ := refusal.Find(err); r.Status() != refusal.Failed {
		t.Errorf("status %d", r.Status())
	}
	write(t, filepath.Join(dir, "schema.yaml"), changed(t, "default_branch: main", "default_branch: trunk"))
	s, err := contract.LoadSchema(env)
	if err != nil || s.Worktrees.DefaultBranch != "trunk" || s.Source != filepath.Join(dir, "schema.yaml") || s.SHA256 == contract.EmbeddedSchema().SHA256 {
		t.Fatalf("got %+v %v", s, err)
	}
	write(t, filepath.Join(dir, "schema.yaml"), "version: 1\n")
	_, err = contract.LoadSchema(env)
	refusedWith(t, err, refusal.CodeSchemaInvalid, "queues is missing", "transitions is missing")
	none, err := contract.LoadSchema(func(string) string { return "" })
	if err != nil || none != contract.EmbeddedSchema() || none.Source != contract.EmbeddedSource {
		t.Fatalf("without the variable: %v %v", none, err)
	}
}

func TestMirrorStatesAndSchemaDocument(t *testing.T) {
	s := contract.EmbeddedSchema()
	p := contract.Project{Runtime: t.TempDir()}
	shown := func(check bool) map[string]any {
		t.Helper()
		var doc map[string]any
		if err := json.Unmarshal(s.Document(contract.MirrorOf(p, s), check), &doc); err != nil {
			t.Fatal(err)
		}
		return doc
	}
	copied := func() map[string]any { return shown(true)["project_copy"].(map[string]any) }
	if d := cmp.Diff(map[string]any{"path": p.SchemaMirrorPath(), "status": "missing", "sha256": nil}, copied()); d != "" {
		t.Errorf("missing (-want +got):\n%s", d)
	}
	write(t, p.SchemaMirrorPath(), string(s.Text))
	if d := cmp.Diff(map[string]any{"path": p.SchemaMirrorPath(), "status": "current", "sha256": s.SHA256}, copied()); d != "" {
		t.Errorf("current (-want +got):\n%s", d)
	}
	write(t, p.SchemaMirrorPath(), "# edited\n"+string(s.Text))
	if got := copied(); got["status"] != "drifted" || got["sha256"] == s.SHA256 {
		t.Errorf("drifted: %v", got)
	}
	if err := os.Remove(p.SchemaMirrorPath()); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(p.SchemaMirrorPath(), "x"), "")
	if got := copied(); got["status"] != "unreadable" || got["sha256"] != nil || got["error"] == nil {
		t.Errorf("unreadable: %v", got)
	}
	doc := shown(false)
	schema := doc["schema"].(map[string]any)
	if doc["source"] != "embedded" || doc["version"] != 1.0 || doc["sha256"] != s.SHA256 || len(schema["transitions"].([]any)) != 32 || len(schema) != 27 {
		t.Errorf("document has %d tables", len(schema))
	}
	if _, there := shown(true)["schema"]; there {
		t.Error("--check prints the schema")
	}
}
