// Package redact masks secrets in text and JSON before they are kept or shown.
//
// It is best effort on content that an agent wrote: known values, sensitive field names and
// bearer tokens are masked, vendor metadata is dropped. It never lengthens its input without
// bound and never fails open: what cannot be parsed is masked as text.
package redact

// Mask replaces what was secret.
const Mask = "[redacted]"

// Redactor masks one set of known secrets. It is immutable and safe for concurrent use.
type Redactor struct{ secrets []string }

// New returns a redactor for these secret values; empty and very short ones are ignored.
func New(secrets ...string) *Redactor { return &Redactor{secrets: secrets} }
