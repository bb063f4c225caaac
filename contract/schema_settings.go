package contract

import "greatminds/internal/yamldoc"

func (r *schemaReader) scenarios(n *yamldoc.Node, path string) {
	letter := func(s string) string {
		if len(s) != 1 || s[0] < 'A' || s[0] > 'Z' {
			return "is no capital letter"
		}
		return ""
	}
	r.entries(n, path, letter, func(id string, n *yamldoc.Node, path string) {
		sc := Scenario{Letter: id}
		r.object(n, path,
			field{"name", true, r.checked(&sc.Name, checkToken)},
			field{"roles", true, r.roleList(&sc.Roles)},
			field{"stand_profile", true, r.text(&sc.StandProfile)},
		)
		r.s.Scenarios = append(r.s.Scenarios, sc)
	})
}

func (r *schemaReader) watchdog(n *yamldoc.Node, path string) {
	w := &r.s.Watchdog
	r.object(n, path,
		field{"intent_orphan_seconds", true, r.count(&w.IntentOrphanSeconds, 1, maxSeconds)},
		field{"task_stale_in_active_queue_seconds", true, r.count(&w.TaskStaleInActiveQueueSeconds, 1, maxSeconds)},
		field{"task_stale_in_review_queue_seconds", true, r.count(&w.TaskStaleInReviewQueueSeconds, 1, maxSeconds)},
	)
}

func (r *schemaReader) gitPermissions(n *yamldoc.Node, path string) {
	g := &r.s.GitPermissions
	r.object(n, path,
		field{"commit", true, r.roleList(&g.Commit)},
		field{"push", true, r.roleList(&g.Push)},
		field{"forbidden_verbs", true, texts(&r.reader, &g.ForbiddenVerbs, nil)},
	)
}

func (r *schemaReader) layout(n *yamldoc.Node, path string) {
	l := &r.s.Layout
	r.object(n, path,
		field{"journal", true, r.checked(&l.Journal, checkRelative)},
		field{"intent_dir", true, r.checked(&l.IntentDir, checkRelative)},
		field{"inbox_dir", true, r.checked(&l.InboxDir, checkRelative)},
		field{"stand_status", true, r.checked(&l.StandStatus, checkRelative)},
	)
}

func (r *schemaReader) stand(n *yamldoc.Node, path string) {
	s := &r.s.Stand
	r.object(n, path,
		field{"deploy_strategy", false, anything},
		field{"resource", true, func(n *yamldoc.Node, path string) {
			r.object(n, path,
				field{"state_file", true, r.checked(&s.StateFile, checkRelative)},
				field{"states", true, filled(&r.reader, &s.States, checkToken)},
				field{"transitions", false, anything},
				field{"lease", true, func(n *yamldoc.Node, path string) {
					r.object(n, path,
						field{"ttl_seconds_default", true, r.count(&s.LeaseTTLSeconds, 1, maxSeconds)},
						field{"ttl_warn_window_seconds", true, r.count(&s.LeaseWarnSeconds, 0, maxSeconds)},
						field{"auto_release_on_no_response", true, r.flag(&s.AutoRelease)},
					)
				}},
				field{"queue", false, anything},
			)
		}},
	)
}

func (r *schemaReader) standKeeper(n *yamldoc.Node, path string) {
	r.object(n, path, field{"notifications", true, func(n *yamldoc.Node, path string) {
		r.object(n, path, field{"on_down", true, r.oneRole(&r.s.Stand.NotifyOnDown)})
	}})
}

func (r *schemaReader) testsValidation(n *yamldoc.Node, path string) {
	v := &r.s.TestsValidation
	v.RequiredForScopes = map[string][]string{}
	r.object(n, path,
		field{"stand_evidence", true, func(n *yamldoc.Node, path string) {
			r.object(n, path,
				field{"required_subfields", true, texts(&r.reader, &v.RequiredSubfields, nil)},
				field{"required_when", true, r.text(&v.RequiredWhen)},
			)
		}},
		field{"required_for_scopes", true, func(n *yamldoc.Node, path string) {
			r.entries(n, path, checkToken, func(id string, n *yamldoc.Node, path string) {
				var words []string
				texts(&r.reader, &words, nil)(n, path)
				v.RequiredForScopes[id] = words
			})
		}},
		field{"exempt_scopes", true, texts(&r.reader, &v.ExemptScopes, checkToken)},
		field{"scope_probes_required_when", true, r.text(&v.ScopeProbesWhen)},
	)
}

func (r *schemaReader) profileRegistry(n *yamldoc.Node, path string) {
	p := &r.s.StandProfiles
	r.object(n, path,
		field{"path", true, r.checked(&p.RegistryPath, checkRelative)},
		field{"environment_values", true, filled(&r.reader, &p.Environments, checkToken)},
		field{"used_for_values", true, filled(&r.reader, &p.UsedFor, checkToken)},
		field{"default_for_values", true, filled(&r.reader, &p.DefaultFor, checkToken)},
	)
}

func (r *schemaReader) profile(n *yamldoc.Node, path string) {
	p := &r.s.StandProfiles
	r.object(n, path,
		field{"directory", true, r.checked(&p.Directory, checkRelative)},
		field{"formats", false, anything},
		field{"yaml_dialect", false, anything},
		field{"yaml_required_fields", true, texts(&r.reader, &p.RequiredFields, checkToken)},
		field{"yaml_optional_fields", true, texts(&r.reader, &p.OptionalFields, checkToken)},
		field{"deploy_prerequisites_only_flag", false, anything},
	)
}
