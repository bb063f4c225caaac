//go:build testclock

package clock

import (
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"
)

func wall(getenv func(string) string) func() time.Time {
	file := getenv(Env)
	if file == "" {
		return time.Now
	}
	return func() time.Time { return shift(time.Now(), seconds(file)) }
}

// seconds reads the shift. It is read at every look at the clock, since a test moves it meanwhile.
func seconds(file string) int64 {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// shift moves the wall reading of t alone. Time.Add would move the monotonic one too, and a time
// without one would make all differences jump: neither happens when a machine's clock is set. The
// package time has no way to say it, so this writes where it keeps the seconds of a time with both
// readings: in bits 30 to 62 of its first word.
func shift(t time.Time, seconds int64) time.Time {
	if seconds == 0 {
		return t
	}
	moved := t
	word := (*uint64)(unsafe.Pointer(&moved))
	*word += uint64(seconds) << 30
	if got := moved.Round(0).Sub(t.Round(0)); got != time.Duration(seconds)*time.Second || moved.Sub(t) != 0 {
		panic("clock: time.Time is laid out in another way than this test clock expects")
	}
	return moved
}
