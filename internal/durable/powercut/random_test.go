package powercut_test

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"greatminds/internal/durable"
	"greatminds/internal/durable/powercut"
)

// script is a random sequence of calls of the Disk, with some syncs left out.
type script struct {
	root string
	disk *durable.Disk
	r    *powercut.Recorder
}

// lossy leaves out syncs as it is told to.
type lossy struct {
	*powercut.Recorder
	skip *bool
}

func (l lossy) Before(s durable.Step) error {
	if *l.skip && (s.Op == durable.OpSync || s.Op == durable.OpSyncDir) {
		return durable.ErrSkip
	}
	return l.Recorder.Before(s)
}

func (l lossy) After(s durable.Step, err error) error {
	if *l.skip && (s.Op == durable.OpSync || s.Op == durable.OpSyncDir) {
		return err
	}
	return l.Recorder.After(s, err)
}

func (s *script) step(rt *rapid.T) {
	name := func(what string) string {
		dir := rapid.SampledFrom([]string{"", "d/", "e/"}).Draw(rt, what+" folder")
		return s.root + "/" + dir + rapid.SampledFrom([]string{"a", "b"}).Draw(rt, what)
	}
	text := func() []byte {
		return []byte(rapid.SampledFrom([]string{"", "x", "yz", strings.Repeat("w", 5000)}).Draw(rt, "text"))
	}
	var err error
	switch rapid.IntRange(0, 7).Draw(rt, "call") {
	case 0:
		err = s.disk.Replace(name("file"), text(), 0o600)
	case 1:
		err = s.disk.Create(name("file"), text(), 0o600)
	case 2:
		err = s.disk.Rename(name("from"), name("to"))
	case 3:
		err = s.disk.Remove(name("file"))
	case 4:
		err = s.disk.MkdirAll(s.root+"/"+rapid.SampledFrom([]string{"d", "e", "d/e"}).Draw(rt, "folder"), 0o700)
	case 5:
		err = s.disk.Rename(s.root+"/d", s.root+"/e")
	default:
		err = s.log(name("log"), text(), rapid.Bool().Draw(rt, "truncate"))
	}
	var odd *fs.PathError
	var link *os.LinkError
	if err != nil && !errors.As(err, &odd) && !errors.As(err, &link) {
		rt.Fatal(err)
	}
}

func (s *script) log(path string, text []byte, cut bool) error {
	l, err := s.disk.OpenLog(path, 0o600)
	if err != nil {
		return err
	}
	err = l.Append(text)
	if err == nil && cut {
		err = l.Truncate(l.Size() / 2)
	}
	return errors.Join(err, l.Close())
}

// The builder finds exactly the images that the words of its documentation allow.
func TestImagesAgainstANaiveModel(t *testing.T) {
	top := folder(t)
	rapid.Check(t, func(rt *rapid.T) {
		root, err := os.MkdirTemp(top, "")
		must(rt, err)
		r, err := powercut.Record(root, nil)
		must(rt, err)
		skip := false
		s := &script{root: root, r: r, disk: durable.NewDisk(lossy{r, &skip})}
		for range rapid.IntRange(1, 5).Draw(rt, "calls") {
			skip = rapid.Bool().Draw(rt, "without syncs")
			s.step(rt)
		}
		got := map[int]map[string]bool{}
		must(rt, r.Images(func(i powercut.Image) error {
			if got[i.After] == nil {
				got[i.After] = map[string]bool{}
			}
			got[i.After][shown(i.Tree)] = true
			return nil
		}))
		if f := r.Foreign(); len(f) > 0 {
			rt.Fatalf("the steps do not tell of %v", f)
		}
		model := naive{steps: r.Done()}
		for n := range len(model.steps) + 1 {
			if len(model.open(n)) > 10 {
				break
			}
			if want := model.images(n); !equal(got[r.MoveOf(n)], want) {
				rt.Fatalf("after %d of the steps %v:\ngot %v\nwant %v", n, model.steps, got[r.MoveOf(n)], want)
			}
		}
	})
}

func equal(a, b map[string]bool) bool {
	for k := range a {
		if !b[k] {
			return false
		}
	}
	return len(a) == len(b)
}
