package powercut_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"greatminds/internal/durable"
	"greatminds/internal/durable/faultdisk"
	"greatminds/internal/durable/powercut"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t interface {
	Helper()
	Fatal(...any)
}, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// shown is an image in the words of the naive model.
func shown(t powercut.Tree) string {
	var lines []string
	for _, path := range t.Paths() {
		data, file := t.File(path)
		lines = append(lines, fmt.Sprintf("%s dir=%v %q", path, !file, data))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// folder is a place that a recording can begin in.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	return dir
}

func record(t *testing.T, root string) (*powercut.Recorder, *durable.Disk) {
	t.Helper()
	r, err := powercut.Record(root, nil)
	must(t, err)
	return r, durable.NewDisk(r)
}

// images collects what can be found, each with the words of its loss.
func images(t *testing.T, r *powercut.Recorder) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, r.Images(func(i powercut.Image) error {
		all[shown(i.Tree)] = i.Lost
		return nil
	}))
	return all
}

// E-165
func TestAReplacedFileIsOldOrNewAndItsTemporaryMayStay(t *testing.T) {
	root := folder(t)
	must(t, os.WriteFile(root+"/f", []byte("old"), 0o600))
	r, d := record(t, root)
	must(t, d.Replace(root+"/f", []byte("new!"), 0o600))
	all := images(t, r)
	var contents []string
	for image := range all {
		for _, line := range strings.Split(image, "\n") {
			if name, data, _ := strings.Cut(line, " "); name == "f" && !slices.Contains(contents, data) {
				contents = append(contents, data)
			}
		}
	}
	slices.Sort(contents)
	if got := strings.Join(contents, " "); got != `dir=false "new!" dir=false "old"` {
		t.Errorf("f may hold %s", got)
	}
	for _, torn := range []string{`"n"`, `"ne"`, `"n\x00\x00\x00"`, `"\x00\x00\x00\x00"`, `""`} {
		if !slices.ContainsFunc(slices.Collect(keys(all)), func(image string) bool { return strings.Contains(image, ".tmp dir=false "+torn) }) {
			t.Errorf("no image has a temporary file with %s", torn)
		}
	}
}

func keys(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// unsynced lets the syncs of a kind of step be left out, as a fault of the product would.
type unsynced struct {
	*powercut.Recorder
	op durable.Op
}

func (u unsynced) Before(s durable.Step) error {
	if s.Op == u.op {
		return durable.ErrSkip
	}
	return u.Recorder.Before(s)
}

func (u unsynced) After(s durable.Step, err error) error {
	if s.Op == u.op {
		return err
	}
	return u.Recorder.After(s, err)
}

// A sync that is left out shows: in what stands under a new name, or in which name stands.
func TestAMissingSyncShows(t *testing.T) {
	for op, want := range map[durable.Op]string{durable.OpSync: `f dir=false ""`, durable.OpSyncDir: `f dir=false "old"`} {
		root := folder(t)
		must(t, os.WriteFile(root+"/f", []byte("old"), 0o600))
		r, err := powercut.Record(root, nil)
		must(t, err)
		must(t, durable.NewDisk(unsynced{r, op}).Replace(root+"/f", []byte("new"), 0o600))
		end, found := r.Len(), false
		must(t, r.Images(func(i powercut.Image) error {
			found = found || i.After == end && strings.Contains(shown(i.Tree), want)
			return nil
		}))
		if !found {
			t.Errorf("without %s: %q is not among the last images", op, want)
		}
	}
}

func TestWhatOthersWriteIsSafeWhenItIsSeen(t *testing.T) {
	root := folder(t)
	r, d := record(t, root)
	must(t, d.Step("git.something", func() error {
		return errors.Join(os.Mkdir(root+"/g", 0o755), os.WriteFile(root+"/g/x", []byte("x"), 0o640), os.Symlink("x", root+"/g/l"))
	}))
	must(t, os.Remove(root+"/g/l"))
	end := r.Len()
	var last []string
	must(t, r.Images(func(i powercut.Image) error {
		if i.After >= end {
			last = append(last, shown(i.Tree))
		}
		return nil
	}))
	want := []string{"g dir=true \"\"\ng/l dir=true \"\"\ng/x dir=false \"x\"", "g dir=true \"\"\ng/x dir=false \"x\""}
	if !slices.Equal(last, want) {
		t.Errorf("got %q, want %q", last, want)
	}
	if f := r.Foreign(); len(f) != 4 {
		t.Errorf("foreign: %v", f)
	}
}

// A scenario whose process is killed and goes on in another one: what was not safe still is not.
func TestARecordingGoesOnAfterACrash(t *testing.T) {
	root := folder(t)
	fd := faultdisk.New(faultdisk.On(func(s durable.Step) bool { return s.Op == durable.OpSyncDir }, faultdisk.CrashAt(1)))
	r, err := powercut.Record(root, fd)
	must(t, err)
	if err := durable.NewDisk(r).Replace(root+"/a", []byte("a"), 0o600); !errors.Is(err, faultdisk.ErrCrashed) {
		t.Fatal(err)
	}
	r.Behind(nil)
	killed := r.Len()
	must(t, durable.NewDisk(r).Step("other", func() error { return os.Mkdir(root+"/other", 0o700) }))
	end, lost := r.Len(), false
	must(t, r.Images(func(i powercut.Image) error {
		lost = lost || i.After == end && len(i.Files()) == 0 && i.Since < killed
		if i.Lost == "" && i.Since != i.After || i.Lost != "" && i.Since >= i.After {
			t.Errorf("after %d, since %d: %q", i.After, i.Since, i.Lost)
		}
		return nil
	}))
	if !lost {
		t.Error("the new process made the old one's rename safe")
	}
}

// Steps of two goroutines are recorded in the order in which they end.
func TestStepsMayOverlap(t *testing.T) {
	root := folder(t)
	r, _ := record(t, root)
	a, b := durable.Step{Seq: 1, Op: durable.OpMkdir, Path: root + "/a"}, durable.Step{Seq: 2, Op: durable.OpMkdir, Path: root + "/b"}
	must(t, r.Before(a))
	must(t, os.Mkdir(root+"/a", 0o700))
	must(t, r.Before(b))
	must(t, os.Mkdir(root+"/b", 0o700))
	must(t, r.After(b, nil))
	must(t, r.After(a, nil))
	all := images(t, r)
	if len(all) != 4 || len(r.Foreign()) > 0 {
		t.Errorf("%d images, foreign %v", len(all), r.Foreign())
	}
	must(t, r.After(b, nil))
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "step 2 ended, but did not begin") {
		t.Errorf("got %v", err)
	}
}

// Beyond ten open changes not every subset is built, but each one and two lost, and every prefix.
func TestManyOpenChangesAreSampled(t *testing.T) {
	root := folder(t)
	r, err := powercut.Record(root, nil)
	must(t, err)
	d := durable.NewDisk(unsynced{r, durable.OpSyncDir})
	const n = 12
	for i := range n {
		must(t, d.MkdirAll(fmt.Sprintf("%s/d%02d", root, i), 0o700))
	}
	end, all := r.Len(), map[string]bool{}
	must(t, r.Images(func(i powercut.Image) error {
		if i.After == end {
			all[shown(i.Tree)] = true
		}
		return nil
	}))
	with := func(is func(i int) bool) string {
		var lines []string
		for i := range n {
			if is(i) {
				lines = append(lines, fmt.Sprintf("d%02d dir=true \"\"", i))
			}
		}
		return strings.Join(lines, "\n")
	}
	for a := range n {
		if !all[with(func(i int) bool { return i < a })] {
			t.Errorf("the prefix of %d is missing", a)
		}
		for b := range n {
			if !all[with(func(i int) bool { return i != a && i != b })] {
				t.Errorf("the loss of %d and %d is missing", a, b)
			}
		}
	}
	if len(all) < 700 || len(all) >= 1<<n {
		t.Errorf("%d images", len(all))
	}
}

func TestATreeIsRestoredAsItWas(t *testing.T) {
	root, other := folder(t), folder(t)
	must(t, os.MkdirAll(root+"/a/b", 0o755))
	must(t, os.WriteFile(root+"/a/f", []byte("f"), 0o640))
	must(t, os.Chmod(root+"/a/f", 0o444))
	must(t, os.Symlink("nowhere", root+"/a/l"))
	must(t, os.WriteFile(other+"/stray", nil, 0o600))
	must(t, syscall.Mkfifo(root+"/pipe", 0o600))
	must(t, os.Chmod(root+"/a/b", 0o500))
	before, err := powercut.Capture(root)
	must(t, err)
	must(t, before.Restore(other))
	after, err := powercut.Capture(other)
	must(t, err)
	if d := before.Diff(after); len(d) > 0 || before.Sum() != after.Sum() {
		t.Errorf("they differ in %v", d)
	}
	info, err := os.Stat(other + "/a/f")
	must(t, err)
	was, err := os.Stat(root + "/a/f")
	must(t, err)
	if !info.ModTime().Equal(was.ModTime()) {
		t.Error("the time is another one")
	}
	must(t, os.Chmod(other+"/a/f", 0o644))
	must(t, os.WriteFile(other+"/a/f", []byte("g"), 0o640))
	after, err = powercut.Capture(other)
	must(t, err)
	if d := before.Diff(after); !slices.Equal(d, []string{"a/f"}) || before.Sum() == after.Sum() {
		t.Errorf("they differ in %v", d)
	}
}
