package commands

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"greatminds/internal/refusal"
	"greatminds/runstore"
)

var streamNames = []string{"stdout", "stderr"}

// StreamPreview is the beginning of one captured stream.
type StreamPreview struct {
	// Text is at most the asked number of bytes; what is no UTF-8 in it is replaced.
	Text string `json:"text"`
	// Truncated says that the command wrote more than Text.
	Truncated bool `json:"truncated"`
	// Bytes and SHA256 are the receipt's.
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Preview returns the beginning of both streams of a receipt, by name, at most limit bytes of each. The
// files are checked first: each must be the regular file at the recorded place, with the recorded
// size and hash. It is never stored, and says nothing about the freshness of the evidence.
// Spec: "Scoped context and command output"; E-174..E-176.
func (s *Service) Preview(c *runstore.Command, limit int) (any, error) {
	previews := map[string]StreamPreview{}
	if c.Output == nil {
		return previews, nil
	}
	for _, name := range streamNames {
		text, err := s.readStream(c, name, limit)
		if err != nil {
			return nil, err
		}
		d := streamOf(c, name)
		previews[name] = StreamPreview{
			Text: readable(text), Truncated: int64(len(text)) < d.Bytes, Bytes: d.Bytes, SHA256: d.SHA256,
		}
	}
	return previews, nil
}

func streamOf(c *runstore.Command, name string) runstore.Stream {
	if name == "stdout" {
		return c.Output.Stdout
	}
	return c.Output.Stderr
}

// readable cuts off a character that the limit has split, and replaces what is no UTF-8.
func readable(text []byte) string {
	for n := 1; n <= min(utf8.UTFMax-1, len(text)); n++ {
		if tail := text[len(text)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				text = text[:len(text)-n]
			}
			break
		}
	}
	return strings.ToValidUTF8(string(text), "\uFFFD")
}

// readStream checks a captured stream and returns its beginning. The file is looked for where this
// request's output is kept, not where the receipt says: a receipt must not lead elsewhere.
func (s *Service) readStream(c *runstore.Command, name string, limit int) ([]byte, error) {
	d := streamOf(c, name)
	path := filepath.Join(s.outputFolder(c.ID), name)
	refuse := func(format string, args ...any) ([]byte, error) {
		return nil, refusal.New(refusal.CodeCommandOutput, "the receipt no longer proves anything: request the command again under another id",
			"%s of command %s: %s", name, c.ID, fmt.Sprintf(format, args...))
	}
	if !sameTail(d.Path, path) {
		return refuse("the receipt names %s, which is not where it is kept", d.Path)
	}
	// Without O_NONBLOCK a pipe put in its place would hang us.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return refuse("%s is missing", path)
	case errors.Is(err, syscall.ELOOP):
		return refuse("%s is a link", path)
	case err != nil:
		return nil, fmt.Errorf("%s of command %s: %w", name, c.ID, err)
	}
	defer func() { _ = f.Close() }() // only read from
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s of command %s: %w", name, c.ID, err)
	case !info.Mode().IsRegular():
		return refuse("%s is no regular file", path)
	case info.Size() != d.StoredBytes:
		return refuse("%s has %d bytes, the receipt says %d", path, info.Size(), d.StoredBytes)
	}
	head := &head{limit: limit}
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(sum, head), io.LimitReader(f, d.StoredBytes+1)); err != nil {
		return nil, fmt.Errorf("%s of command %s: %w", name, c.ID, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != d.SHA256 {
		return refuse("%s has hash %.12s, the receipt says %.12s", path, got, d.SHA256)
	}
	return head.text, nil
}

// sameTail: a project folder that was moved takes its outputs along, so only the part below the
// runtime folder counts.
func sameTail(recorded, path string) bool {
	tail := filepath.Join("command-output", filepath.Base(filepath.Dir(path)), filepath.Base(path))
	return recorded == tail || strings.HasSuffix(recorded, "/"+tail)
}

// head keeps the first limit bytes.
type head struct {
	text  []byte
	limit int
}

// Write never fails.
func (h *head) Write(p []byte) (int, error) {
	h.text = append(h.text, p[:min(len(p), max(0, h.limit-len(h.text)))]...)
	return len(p), nil
}
