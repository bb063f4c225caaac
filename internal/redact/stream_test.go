package redact

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// streamed masks a text in pieces of these lengths, the rest in one.
func streamed(r *Redactor, text string, lengths []int) string {
	s, out := r.Stream(), strings.Builder{}
	for _, n := range lengths {
		n = min(n, len(text))
		out.WriteString(s.Write(text[:n]))
		text = text[n:]
	}
	out.WriteString(s.Write(text))
	out.WriteString(s.Flush())
	return out.String()
}

// A text in pieces is masked as the whole, wherever it is cut.
func TestStreamMasksAcrossPieces(t *testing.T) {
	secrets := []string{"CANARY-SECRET", "CANARY", "two words", "aaaa", "aaab aaab", "line one of it\nline two of it"}
	r := New(secrets...)
	words := append([]string{" ", " ", "\n", "\t", "x", "pass", "password", "password: ", "api", "api key: ", "\"token\": \"", "token='", "'", "\"", "\\\"",
		"Bearer ", "authorization: Bearer ", "abc.def", "https://me:", "pw@host/", "CANARY-SEC", "RET", "two", "words", "aa", "é", "=", ":", "line one of it"}, secrets...)
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 40).Draw(t, "words"), "")
		lengths := rapid.SliceOf(rapid.IntRange(0, 12)).Draw(t, "lengths")
		if got, want := streamed(r, text, lengths), r.Text(text); got != want {
			t.Fatalf("%q in pieces of %v:\ngot  %q\nwant %q", text, lengths, got, want)
		}
	})
}

// A known value that stands before a scheme without a blank makes a word of the scheme once it is masked.
func TestStreamMasksBehindAMask(t *testing.T) {
	r := New("CANARY-VALUE")
	const text = "CANARY-VALUEBearer abc.def, done"
	want := Mask + "Bearer " + Mask + ", done"
	for cut := range len(text) {
		if got := streamed(r, text, []int{cut}); got != want {
			t.Errorf("cut at %d: got %q, want %q", cut, got, want)
		}
	}
	for n := len("CANARY-VALUEBearer a"); n < len(text); n++ {
		if got := r.Head(text, n); strings.Contains(got, "abc") {
			t.Errorf("the head of %d bytes is %q", n, got)
		}
	}
}

// What is ready at any moment holds no start of a known value that then goes on.
func TestStreamShowsNoStartOfASecret(t *testing.T) {
	const secret = "CANARY SECRET VALUE"
	r := New(secret)
	s, out := r.Stream(), ""
	for _, b := range []byte("the words are " + secret + ", he said") {
		out += s.Write(string(b))
		if strings.Contains(out, "CANARY") {
			t.Fatalf("it shows %q", out)
		}
	}
	if out += s.Flush(); out != "the words are "+Mask+", he said" {
		t.Fatalf("got %q", out)
	}
}

// What is held back is bounded, also where nothing ever ends it; a known value is held to its end.
func TestStreamHoldsLittle(t *testing.T) {
	long := "KEY-" + strings.Repeat("k", 3*maxHeld)
	for name, c := range map[string]struct {
		piece string
		most  int
	}{
		"a word without an end":  {strings.Repeat("x", 20), maxHeld + 20},
		"a quote without an end": {`token: "`, maxHeld + 20},
		"words":                  {"word ", 64},
	} {
		s, most := New("CANARY-SECRET").Stream(), 0
		for range 400 {
			s.Write(c.piece)
			most = max(most, s.Held())
			if c.piece[0] == 't' {
				c.piece = "some words, more of "
			}
		}
		if most > c.most {
			t.Errorf("%s: %d bytes are held, want at most %d", name, most, c.most)
		}
	}
	if got := streamed(New(long), "a "+long+" b", []int{2, maxHeld, maxHeld, maxHeld}); got != "a "+Mask+" b" {
		t.Errorf("a long value: %.80q", got)
	}
}

// A text that is cut shows no part of what the whole would mask.
func TestHeadCutsNoSecret(t *testing.T) {
	r := New("CANARY SECRET VALUE")
	text := `a CANARY SECRET VALUE b Bearer CANARYabc c password: "CANARY two" d https://me:CANARYpw@host e api key=CANARY f`
	for n := range len(text) + 2 {
		got := r.Head(text, n)
		if strings.Contains(got, "CANARY") || strings.Contains(got, "SECRET") || len(strings.ReplaceAll(got, Mask, "")) > n {
			t.Errorf("%d bytes: %q", n, got)
		}
	}
	if got := r.Head(text, len(text)); got != r.Text(text) {
		t.Errorf("the whole is %q", got)
	}
}

func BenchmarkStream(b *testing.B) {
	s := New("CANARY-SECRET-VALUE", "another-secret-value-of-some-length").Stream()
	piece := strings.Repeat("some words of an agent's answer, ", 62)
	b.SetBytes(int64(len(piece)))
	for b.Loop() {
		s.Write(piece)
	}
}

// What is left out for speed would not have matched: ſ and K are an s and a k to a pattern.
func TestMentionsMissesNothing(t *testing.T) {
	pieces := []string{"pa", "ſſ", "ss", "SS", "word", "ſecret", "to", "\u212aen", "KEN", "api", " ", "\u212aey", "key", "author", "ization", "Bea", "rer", "=", ": ", "x", "é", "http", "://", "a:b@"}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(t, "pieces"), "")
		want := bearer.ReplaceAllString(text, "${1}"+Mask)
		want = assigned.ReplaceAllString(want, "${1}"+Mask)
		want = login.ReplaceAllString(want, "${1}"+Mask+"@")
		if got := New().Text(text); got != want {
			t.Fatalf("%q: got %q, want %q", text, got, want)
		}
	})
}

func BenchmarkText(b *testing.B) {
	r := New("CANARY-SECRET-VALUE", "another-secret-value-of-some-length")
	piece := strings.Repeat("some words of an agent's answer, ", 62)
	b.SetBytes(int64(len(piece)))
	for b.Loop() {
		r.Text(piece)
	}
}
