package runstore

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
)

// decode reads a checked value that stands at off in its document into the struct, map or
// scalar that ptr points to. A wrong type is a *fault with the place.
func decode(raw []byte, off int, ptr any) error {
	return decodeValue(raw, off, reflect.ValueOf(ptr).Elem())
}

func decodeValue(raw []byte, off int, v reflect.Value) error {
	if v.Type() == rawType {
		v.SetBytes(canonical(raw))
		return nil
	}
	if v.Kind() == reflect.Pointer {
		if isNull(raw) {
			v.SetZero()
			return nil
		}
		v.Set(reflect.New(v.Type().Elem()))
		return decodeValue(raw, off, v.Elem())
	}
	switch v.Kind() {
	case reflect.Struct:
		return decodeStruct(raw, off, v)
	case reflect.Map:
		return decodeMap(raw, off, v)
	case reflect.Slice:
		return decodeSlice(raw, off, v)
	case reflect.String:
		if isNull(raw) { // the original writes null where nothing is known
			v.SetZero()
			return nil
		}
		if raw[0] != '"' {
			return wrongType(raw, off, "a string")
		}
		v.SetString(unquote(raw))
	case reflect.Bool:
		if raw[0] != 't' && raw[0] != 'f' {
			return wrongType(raw, off, "true or false")
		}
		v.SetBool(raw[0] == 't')
	default:
		return decodeNumber(raw, off, v)
	}
	return nil
}

func isNull(raw []byte) bool { return len(raw) > 0 && raw[0] == 'n' }

func wrongType(raw []byte, off int, want string) error {
	shown := raw
	if len(shown) > 40 {
		shown = shown[:40]
	}
	return faultAt(off, "%s expected, found %q", want, shown)
}

func decodeNumber(raw []byte, off int, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(string(raw), 10, 64)
		if err != nil || v.OverflowInt(n) {
			return wrongType(raw, off, "an integer")
		}
		v.SetInt(n)
	case reflect.Uint64:
		n, err := strconv.ParseUint(string(raw), 10, 64)
		if err != nil {
			return wrongType(raw, off, "an integer from 0")
		}
		v.SetUint(n)
	case reflect.Float64:
		f, err := strconv.ParseFloat(string(raw), 64)
		if err != nil || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
			return wrongType(raw, off, "a number")
		}
		v.SetFloat(f)
	default:
		panic("runstore: no JSON form for " + v.Type().String())
	}
	return nil
}

func decodeStruct(raw []byte, off int, v reflect.Value) error {
	if raw[0] != '{' {
		return wrongType(raw, off, "an object")
	}
	info := infoOf(v.Type())
	var extra Members
	i := 0 // our own documents are sorted, as the fields are
	for w := walk(raw, off); w.next(); {
		name := w.key[1 : len(w.key)-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			name = []byte(unquote(w.key))
		}
		for i < len(info.fields) && info.fields[i].name < string(name) {
			i++
		}
		if i > 0 && info.fields[i-1].name >= string(name) {
			i = info.search(string(name))
		}
		if i == len(info.fields) || info.fields[i].name != string(name) {
			if extra == nil {
				extra = Members{}
			}
			extra[string(name)] = canonical(w.raw)
			continue
		}
		if err := decodeValue(w.raw, w.off, v.Field(info.fields[i].index)); err != nil {
			return err
		}
	}
	if extra != nil && info.extra >= 0 {
		v.Field(info.extra).Set(reflect.ValueOf(extra))
	}
	return nil
}

func decodeMap(raw []byte, off int, v reflect.Value) error {
	if raw[0] != '{' {
		return wrongType(raw, off, "an object")
	}
	all := split(raw, off)
	v.Set(reflect.MakeMapWithSize(v.Type(), len(all)))
	for _, m := range all {
		item := reflect.New(v.Type().Elem()).Elem()
		if err := decodeValue(m.raw, m.off, item); err != nil {
			return err
		}
		v.SetMapIndex(reflect.ValueOf(m.key).Convert(v.Type().Key()), item)
	}
	return nil
}

func decodeSlice(raw []byte, off int, v reflect.Value) error {
	if isNull(raw) {
		v.SetZero()
		return nil
	}
	if raw[0] != '[' {
		return wrongType(raw, off, "an array")
	}
	all := split(raw, off)
	v.Set(reflect.MakeSlice(v.Type(), len(all), len(all)))
	for i, m := range all {
		if err := decodeValue(m.raw, m.off, v.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

// unmarshal reads one JSON object given from outside into ptr.
func unmarshal(data []byte, ptr any) error {
	if err := checkJSON(data); err != nil {
		return err
	}
	s := scanner{data: data}
	s.space()
	return decode(bytes.TrimRight(data[s.pos:], " \t\r\n"), s.pos, ptr)
}

var (
	_ json.Marshaler   = (*Run)(nil)
	_ json.Unmarshaler = (*Run)(nil)
)

// MarshalJSON writes the run as operators see it: sorted keys, unknown members kept, without
// the credential's hash.
func (r *Run) MarshalJSON() ([]byte, error) {
	public := *r
	public.TokenSHA256 = ""
	return encode(&public), nil
}

// UnmarshalJSON reads a run and keeps the members it does not know.
func (r *Run) UnmarshalJSON(b []byte) error { return unmarshal(b, (*Run)(r)) }

// MarshalJSON writes the receipt with sorted keys and its unknown members.
func (r *Result) MarshalJSON() ([]byte, error) { return encode(r), nil }

// UnmarshalJSON reads a receipt and keeps the members it does not know.
func (r *Result) UnmarshalJSON(b []byte) error { return unmarshal(b, r) }

// MarshalJSON writes the receipt with sorted keys and its unknown members.
func (c *Command) MarshalJSON() ([]byte, error) { return encode(c), nil }

// UnmarshalJSON reads a receipt and keeps the members it does not know.
func (c *Command) UnmarshalJSON(b []byte) error { return unmarshal(b, c) }

// MarshalJSON writes the request with sorted keys and its unknown members.
func (p *Permission) MarshalJSON() ([]byte, error) { return encode(p), nil }

// UnmarshalJSON reads a request and keeps the members it does not know.
func (p *Permission) UnmarshalJSON(b []byte) error { return unmarshal(b, p) }

// MarshalJSON writes the record with sorted keys and its unknown members.
func (o *Operation) MarshalJSON() ([]byte, error) { return encode(o), nil }

// UnmarshalJSON reads a record and keeps the members it does not know.
func (o *Operation) UnmarshalJSON(b []byte) error { return unmarshal(b, o) }

// MarshalJSON writes the event with sorted keys and its unknown members.
func (e *Event) MarshalJSON() ([]byte, error) { return encode(e), nil }

// UnmarshalJSON reads an event and keeps the members it does not know.
func (e *Event) UnmarshalJSON(b []byte) error { return unmarshal(b, e) }

// MarshalJSON writes the control with sorted keys and its unknown members.
func (c *Control) MarshalJSON() ([]byte, error) { return encode(c), nil }

// UnmarshalJSON reads a control and keeps the members it does not know.
func (c *Control) UnmarshalJSON(b []byte) error { return unmarshal(b, c) }
