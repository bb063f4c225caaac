package runstore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// The codec writes and reads our structs as JSON objects with sorted keys, exact names and
// every unknown member kept in the struct's Members. encoding/json cannot do the last two:
// it ignores case, and it drops what it does not know.
//
// Field tags are those of encoding/json: a name and omitempty; the tag store:"omitnil" leaves out
// a nil slice but writes an empty one.

// field is one known member of a struct.
type field struct {
	name      string
	index     int
	omitEmpty bool
	omitNil   bool
}

type structInfo struct {
	fields []field // sorted by name
	extra  int     // index of the Members, -1 where there is none
	nulls  bool    // the type is a nuller
}

var structs sync.Map // reflect.Type to *structInfo

var (
	membersType = reflect.TypeFor[Members]()
	rawType     = reflect.TypeFor[json.RawMessage]()
	nullerType  = reflect.TypeFor[nuller]()
)

func infoOf(t reflect.Type) *structInfo {
	if known, ok := structs.Load(t); ok {
		return known.(*structInfo)
	}
	info := &structInfo{extra: -1, nulls: reflect.PointerTo(t).Implements(nullerType)}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Type == membersType {
			info.extra = i
			continue
		}
		tag, ok := f.Tag.Lookup("json")
		if !ok || tag == "-" {
			continue
		}
		name, opts, _ := strings.Cut(tag, ",")
		info.fields = append(info.fields, field{name: name, index: i,
			omitEmpty: opts == "omitempty", omitNil: f.Tag.Get("store") == "omitnil"})
	}
	sort.Slice(info.fields, func(a, b int) bool { return info.fields[a].name < info.fields[b].name })
	structs.Store(t, info)
	return info
}

// find returns the known field of a name.
func (s *structInfo) find(name string) (field, bool) {
	i := s.search(name)
	if i < len(s.fields) && s.fields[i].name == name {
		return s.fields[i], true
	}
	return field{}, false
}

// search returns the first field whose name is not below name.
func (s *structInfo) search(name string) int {
	return sort.Search(len(s.fields), func(i int) bool { return s.fields[i].name >= name })
}

// encode returns v as compact JSON with sorted keys. Values that have no JSON form, such as
// NaN, are our own fault: everything that enters a transaction is checked there.
func encode(v any) json.RawMessage { return appendValue(nil, reflect.ValueOf(v)) }

func appendValue(dst []byte, v reflect.Value) []byte {
	if v.IsValid() && v.Type() == rawType {
		if v.Len() == 0 {
			return append(dst, "null"...)
		}
		return append(dst, v.Bytes()...)
	}
	switch v.Kind() {
	case reflect.Invalid:
		return append(dst, "null"...)
	case reflect.Pointer:
		if v.IsNil() {
			return append(dst, "null"...)
		}
		return appendValue(dst, v.Elem())
	case reflect.Struct:
		return appendStruct(dst, v)
	case reflect.Map:
		return appendMap(dst, v)
	case reflect.Slice:
		return appendSlice(dst, v)
	case reflect.String:
		return appendText(dst, v.String())
	case reflect.Bool:
		return strconv.AppendBool(dst, v.Bool())
	case reflect.Int, reflect.Int64:
		return strconv.AppendInt(dst, v.Int(), 10)
	case reflect.Uint64:
		return strconv.AppendUint(dst, v.Uint(), 10)
	case reflect.Float64:
		return appendFloat(dst, v.Float())
	}
	panic("runstore: no JSON form for " + v.Type().String())
}

// nuller is implemented by structs in which a nil member may have to be written as null
// rather than left out: nullMember names it, or is empty.
type nuller interface{ nullMember() string }

func appendStruct(dst []byte, v reflect.Value) []byte {
	info := infoOf(v.Type())
	var extra []string
	var members Members
	if info.extra >= 0 {
		members = v.Field(info.extra).Interface().(Members)
		extra = sortedKeys(members)
	}
	null := ""
	if info.nulls && v.CanAddr() {
		null = v.Addr().Interface().(nuller).nullMember()
	}
	dst = append(dst, '{')
	comma := false
	emit := func(name string) {
		if comma {
			dst = append(dst, ',')
		}
		comma = true
		dst = append(appendText(dst, name), ':')
	}
	for _, f := range info.fields {
		for len(extra) > 0 && extra[0] < f.name {
			emit(extra[0])
			dst = append(dst, members[extra[0]]...)
			extra = extra[1:]
		}
		fv := v.Field(f.index)
		if f.name != null && (f.omitEmpty && isEmpty(fv) || f.omitNil && fv.IsNil()) {
			continue
		}
		emit(f.name)
		dst = appendValue(dst, fv)
	}
	for _, name := range extra {
		emit(name)
		dst = append(dst, members[name]...)
	}
	return append(dst, '}')
}

func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Map, reflect.Slice:
		return v.Len() == 0
	}
	return v.IsZero()
}

func appendMap(dst []byte, v reflect.Value) []byte {
	keys := v.MapKeys()
	sort.Slice(keys, func(a, b int) bool { return keys[a].String() < keys[b].String() })
	dst = append(dst, '{')
	for i, k := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendText(dst, k.String()), ':')
		dst = appendValue(dst, v.MapIndex(k))
	}
	return append(dst, '}')
}

func appendSlice(dst []byte, v reflect.Value) []byte {
	dst = append(dst, '[')
	for i := range v.Len() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendValue(dst, v.Index(i))
	}
	return append(dst, ']')
}

const hexDigits = "0123456789abcdef"

// appendText quotes s. Unlike the standard encoder it leaves < > & as they are, so that a
// person can read the file.
func appendText(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		case c < utf8.RuneSelf:
			dst = append(dst, c)
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			dst = utf8.AppendRune(dst, r) // invalid bytes become U+FFFD
			i += n
			continue
		}
		i++
	}
	return append(dst, '"')
}

// appendFloat writes a float so that it reads as one: 5 becomes 5.0.
func appendFloat(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		panic(fmt.Sprintf("runstore: %v has no JSON form", f))
	}
	format := byte('f')
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		format = 'e'
	}
	from := len(dst)
	dst = strconv.AppendFloat(dst, f, format, -1, 64)
	if format == 'f' && !bytes.ContainsRune(dst[from:], '.') {
		dst = append(dst, ".0"...)
	}
	return dst
}

// canonical returns a checked value in compact form with sorted keys. Strings and numbers keep
// their spelling.
func canonical(raw []byte) json.RawMessage {
	return appendCanonical(make([]byte, 0, len(raw)), raw)
}

func appendCanonical(dst, raw []byte) []byte {
	s, from := scanner{data: raw}, len(dst)
	if s.peek() == 0 {
		return dst
	}
	dst, sorted := s.compact(dst)
	if sorted {
		return dst
	}
	return appendSorted(dst[:from], raw)
}

// appendSorted is appendCanonical for an object or array that is not in order.
func appendSorted(dst, raw []byte) []byte {
	all := split(raw, 0)
	w := walk(raw, 0)
	if w.open == '{' {
		sort.SliceStable(all, func(a, b int) bool { return all[a].key < all[b].key })
	}
	dst = append(dst, w.open)
	for i, m := range all {
		if i > 0 {
			dst = append(dst, ',')
		}
		if w.open == '{' {
			dst = append(appendText(dst, m.key), ':')
		}
		dst = appendCanonical(dst, m.raw)
	}
	return append(dst, w.open+2)
}

// toRaw turns a value given by a caller into canonical JSON, or says why it cannot be stored.
func toRaw(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return checkRaw(b.Bytes())
}

// checkRaw turns raw JSON given by a caller into canonical JSON. It may nest less deeply than
// a document, in which it will stand some levels down.
func checkRaw(raw []byte) (json.RawMessage, error) {
	if err := checkNested(raw, maxDepth-maxRawDepth); err != nil {
		return nil, err
	}
	return canonical(raw), nil
}

// sortedKeys returns the keys of a map in order.
func sortedKeys[K ~string, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Slice(keys, func(a, b int) bool { return keys[a] < keys[b] })
	return keys
}
