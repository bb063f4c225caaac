package runstore

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"

	"greatminds/internal/refusal"
)

// normal returns a deep copy of an entity that a caller has filled in, with its raw JSON in
// canonical form; so the caller keeps nothing through which it could change what is published.
// Numbers without a JSON form and raw JSON that does not parse are errors.
func normal[T any](v *T) (*T, error) {
	c := new(T)
	err := normalInto(reflect.ValueOf(c).Elem(), reflect.ValueOf(v).Elem())
	return c, err
}

func normalInto(dst, src reflect.Value) error {
	switch src.Kind() {
	case reflect.Pointer:
		return normalPointer(dst, src)
	case reflect.Struct:
		dst.Set(src) // unexported members too
		if err := checkExtra(src); err != nil {
			return err
		}
		for i := range src.NumField() {
			if !src.Type().Field(i).IsExported() {
				continue
			}
			if err := normalInto(dst.Field(i), src.Field(i)); err != nil {
				return fmt.Errorf("%s: %w", src.Type().Field(i).Name, err)
			}
		}
	case reflect.Slice:
		return normalSlice(dst, src)
	case reflect.Map:
		return normalMap(dst, src)
	case reflect.String:
		dst.SetString(strings.ToValidUTF8(src.String(), "\uFFFD"))
	case reflect.Float64:
		if f := src.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("%v is no JSON number", f)
		}
		dst.Set(src)
	default:
		dst.Set(src)
	}
	return nil
}

// checkExtra refuses unknown members that have the name of a known one: written, they would
// be a second one.
func checkExtra(v reflect.Value) error {
	info := infoOf(v.Type())
	if info.extra < 0 {
		return nil
	}
	members := v.Field(info.extra).Interface().(Members)
	for name := range members {
		_, known := info.find(name)
		if _, isRun := v.Interface().(Run); known || isRun && (name == inReceipts || name == inReservations) {
			return fmt.Errorf("the unknown members hold a known one, %q", name)
		}
	}
	return nil
}

func normalPointer(dst, src reflect.Value) error {
	if src.IsNil() {
		dst.SetZero()
		return nil
	}
	fresh := reflect.New(src.Type().Elem())
	dst.Set(fresh)
	return normalInto(fresh.Elem(), src.Elem())
}

func normalSlice(dst, src reflect.Value) error {
	if src.Type() == rawType {
		if src.Len() == 0 {
			dst.SetZero()
			return nil
		}
		raw, err := checkRaw(json.RawMessage(src.Bytes()))
		dst.SetBytes(raw)
		return err
	}
	if src.IsNil() {
		dst.SetZero()
		return nil
	}
	fresh := reflect.MakeSlice(src.Type(), src.Len(), src.Len())
	dst.Set(fresh)
	for i := range src.Len() {
		if err := normalInto(fresh.Index(i), src.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

func normalMap(dst, src reflect.Value) error {
	if src.IsNil() {
		dst.SetZero()
		return nil
	}
	fresh := reflect.MakeMapWithSize(src.Type(), src.Len())
	dst.Set(fresh)
	for it := src.MapRange(); it.Next(); {
		item := reflect.New(src.Type().Elem()).Elem()
		if err := normalInto(item, it.Value()); err != nil {
			return fmt.Errorf("%s: %w", it.Key(), err)
		}
		fresh.SetMapIndex(it.Key(), item)
	}
	return nil
}

func unstorable(kind, id string, err error) error {
	return refusal.New(refusal.CodeRecordInvalid, "this is a fault of the program: report it", "%s %s cannot be stored: %v", kind, id, err)
}
