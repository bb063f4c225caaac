package supervisor_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A daemon killed at each step around the checkout and the branch ends with one merge and a
// checkout that holds it, and the user's other work as it was. E-216 is about the merge alone.
func TestADaemonKilledAroundTheCheckoutEndsWithOneMerge(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"git.keep-overlay", "git.read-tree", "merge.sync-files", "git.update-ref"} {
		for _, side := range []string{"before:", "after:"} {
			t.Run(side+step, func(t *testing.T) {
				t.Parallel()
				r := newReview(t, "main")
				own := map[string]string{"keep.txt": "half done\n", "loose.txt": "loose\n"}
				for name, text := range own {
					r.put(t, name, text)
				}
				r.killAt(t, side+step)
				if q := r.queue(t); q != "feature_review" {
					t.Fatalf("the task stands in %s after the kill", q)
				}
				r.once(t)
				r.merged(t)
				r.followed(t, r.project, own)
				head := r.git(t, "rev-parse", "main")
				r.once(t)
				if again := r.git(t, "rev-parse", "main"); again != head {
					t.Errorf("main moved again, from %s to %s", head, again)
				}
			})
		}
	}
}

// Git itself is stopped in the middle of the checkout: some files are the merge's, some are the
// old ones, some are gone.
func TestACheckoutCutInTheMiddleIsFinished(t *testing.T) {
	t.Parallel()
	t.Run("nobody touched it", func(t *testing.T) {
		t.Parallel()
		r := cutReview(t)
		r.once(t)
		r.merged(t)
		r.followed(t, r.project, map[string]string{"keep.txt": "half done\n"})
	})
	t.Run("the user wrote into it", func(t *testing.T) {
		t.Parallel()
		r := cutReview(t)
		r.put(t, "new/n.txt", "my own\n")
		before := r.picture(t, r.project)
		r.once(t)
		got := r.receipt(t)
		reason, remedy := r.lab.held(t)
		words := remedies.FindStringSubmatch(remedy)
		if got.Status != "needs_recovery" || words == nil || !strings.Contains(words[1], "run repair") {
			t.Fatalf("got receipt %q, hold %s, remedy %q", got.Status, reason, remedy)
		}
		if after := r.picture(t, r.project); after != before {
			t.Errorf("the checkout became\n%s\nbefore\n%s", after, before)
		}
		must(t, os.Rename(filepath.Join(r.project, "new", "n.txt"), filepath.Join(r.root, "aside")))
		r.run(t, "", append(strings.Fields(words[1]), "--project-dir", r.project)...)
		r.once(t)
		r.merged(t)
		r.followed(t, r.project, map[string]string{"keep.txt": "half done\n"})
		if kept, err := os.ReadFile(filepath.Join(r.root, "aside")); err != nil || string(kept) != "my own\n" {
			t.Errorf("the user's file is %q %v", kept, err)
		}
	})
}

// cutReview runs a daemon whose git hangs in a filter while it writes the checkout, and kills it
// there.
func cutReview(t *testing.T) *review {
	t.Helper()
	arm := ""
	r := newReview(t, "main", `{"file":{"op":"write","path":"@ARM@","text":""}}`)
	arm = filepath.Join(r.root, "arm")
	script, err := os.ReadFile(r.script("dev"))
	must(t, err)
	must(t, os.WriteFile(r.script("dev"), []byte(strings.Replace(string(script), "@ARM@", arm, 1)), 0o644))
	filter := filepath.Join(r.root, "filter")
	executable(t, filter, "#!/bin/sh\nif [ -e '"+arm+"' ] && ! [ -e '"+r.root+"/in-filter' ]; then\n"+
		"  : > '"+r.root+"/in-filter'\n  exec sleep 600\nfi\nexec cat\n")
	r.git(t, "config", "filter.slow.smudge", filter)
	r.git(t, "config", "filter.slow.clean", "cat")
	write(t, filepath.Join(r.project, ".git", "info", "attributes"), "a.txt filter=slow\n")
	r.put(t, "keep.txt", "half done\n")

	cmd := exec.Command(r.cli, "coordd", "--once", "--project-dir", r.project)
	cmd.Env = r.env()
	must(t, cmd.Start())
	reached := awaitChange(t, []string{r.root}, func() bool {
		_, err := os.Stat(filepath.Join(r.root, "in-filter"))
		return err == nil
	})
	must(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	if !reached {
		t.Fatal("git did not reach the filter")
	}
	r.nothingLeft(t)
	if _, err := os.Stat(filepath.Join(r.project, "dir", "b.txt")); !os.IsNotExist(err) {
		t.Fatalf("the checkout was not cut in its middle: dir/b.txt %v", err)
	}
	if got := r.git(t, "rev-parse", "main"); got != r.base {
		t.Fatalf("main is at %s already", got)
	}
	return r
}
