package contract

import "greatminds/internal/yamldoc"

func (r *contractReader) commands(n *yamldoc.Node, path string) {
	r.entries(n, path, checkName, func(id string, n *yamldoc.Node, path string) {
		k := Command{ID: id, Cwd: ".", TimeoutSeconds: 600, MaxOutputBytes: 1048576, Environment: []EnvRef{},
			RequiredEnv: []string{}, EnvironmentRevision: "1", Purpose: PurposeValidation}
		r.object(n, path,
			field{"argv", true, filled(&r.reader, &k.Argv, nil)},
			field{"roles", true, filled(&r.reader, &k.Roles, r.checkRole)},
			field{"cwd", false, r.checked(&k.Cwd, checkRelative)},
			field{"timeout_seconds", false, r.count(&k.TimeoutSeconds, 1, maxSeconds)},
			field{"max_output_bytes", false, r.count(&k.MaxOutputBytes, 1, maxCount)},
			field{"environment", false, r.environment(&k.Environment)},
			field{"required_env", false, texts(&r.reader, &k.RequiredEnv, checkVariable)},
			field{"environment_revision", false, r.text(&k.EnvironmentRevision)},
			field{"purpose", false, choice(&r.reader, &k.Purpose, PurposeValidation, PurposeDeployment, PurposePublication)},
			field{"authorized", false, r.flag(&k.Authorized)},
		)
		r.c.Commands = append(r.c.Commands, k)
	})
}

func (r *contractReader) stand(n *yamldoc.Node, path string) {
	s := &Stand{Profiles: []string{}, TimeoutSeconds: 1800, MaxOutputBytes: 1048576, EnvironmentRevision: "1"}
	r.object(n, path,
		field{"profiles", false, func(n *yamldoc.Node, path string) {
			texts(&r.reader, &s.Profiles, nil)(n, path)
			r.distinct(n, path)
		}},
		field{"authorized", false, r.flag(&s.Authorized)},
		field{"timeout_seconds", false, r.count(&s.TimeoutSeconds, 1, maxSeconds)},
		field{"max_output_bytes", false, r.count(&s.MaxOutputBytes, 1, 67108864)},
		field{"environment_revision", false, r.text(&s.EnvironmentRevision)},
	)
	if profiles := n.Get("profiles"); s.Authorized && (profiles == nil || profiles.Kind == yamldoc.Sequence && len(profiles.Items) == 0) {
		r.faults.Add(n, "list the profiles that may be deployed, or leave authorized out", "%s is authorized without profiles", path)
	}
	r.c.Stand = s
}

// distinct refuses a list that names something twice.
func (r *reader) distinct(n *yamldoc.Node, path string) {
	seen := map[string]bool{}
	for _, item := range n.Items {
		if item.Kind == yamldoc.String && seen[item.Text] {
			r.faults.Add(item, "keep one of them", "%s names %s twice", path, yamldoc.Show(item.Text))
		}
		seen[item.Text] = true
	}
}
