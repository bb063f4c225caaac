package tasks

// Field is one entry of an ordered mapping.
type Field struct {
	Key string
	// Value is a string, bool, int64, float64, nil, []any of such, or Fields.
	Value any
}

// Fields is a mapping that keeps its order. Keys are unique.
type Fields []Field

// Get returns the value of a key, nil where it is missing or null.
func (f Fields) Get(key string) any {
	v, _ := f.Lookup(key)
	return v
}

// Lookup returns the value of a key and whether the key is there.
func (f Fields) Lookup(key string) (any, bool) {
	for i := range f {
		if f[i].Key == key {
			return f[i].Value, true
		}
	}
	return nil, false
}

// Has reports whether the key is there, whatever its value.
func (f Fields) Has(key string) bool {
	_, ok := f.Lookup(key)
	return ok
}

// With returns a copy in which the key has this value: in its old place, or at the end.
func (f Fields) With(key string, value any) Fields {
	out := make(Fields, 0, len(f)+1)
	done := false
	for _, field := range f {
		if field.Key == key {
			field.Value, done = value, true
		}
		out = append(out, field)
	}
	if !done {
		out = append(out, Field{key, value})
	}
	return out
}

// Without returns a copy that lacks these keys.
func (f Fields) Without(keys ...string) Fields {
	out := make(Fields, 0, len(f))
next:
	for _, field := range f {
		for _, key := range keys {
			if field.Key == key {
				continue next
			}
		}
		out = append(out, field)
	}
	return out
}
