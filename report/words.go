package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/snarkline/snarkline/alloc"
)

// noValue is what a field says that has nothing to say.
const noValue = "–"

// sizeText is a number of bytes for people: "3.1 GiB".
func sizeText(n int64) string {
	if n < 0 {
		return "−" + humanize.IBytes(uint64(-n))
	}
	return humanize.IBytes(uint64(n))
}

// sizeOrDash leaves cells of tables empty where there is nothing.
func sizeOrDash(n int64) string {
	if n <= 0 {
		return noValue
	}
	return sizeText(n)
}

// spanText is a duration with about three digits that matter: "12.4 s".
func spanText(d time.Duration) string {
	switch s := d.Seconds(); {
	case d <= 0:
		return "0 s"
	case d < time.Microsecond:
		return fmt.Sprintf("%d ns", d.Nanoseconds())
	case s < 999.5e-6:
		return digits(s*1e6) + " µs"
	case s < 999.5e-3:
		return digits(s*1e3) + " ms"
	case d < 2*time.Minute:
		return digits(s) + " s"
	case d < 2*time.Hour:
		m := int(math.Round(s)) / 60
		return fmt.Sprintf("%d min %d s", m, int(math.Round(s))-60*m)
	}
	m := int(math.Round(d.Minutes()))
	return fmt.Sprintf("%d h %d min", m/60, m%60)
}

func spanOrDash(d time.Duration) string {
	if d <= 0 {
		return noValue
	}
	return spanText(d)
}

// digits is v with three digits, or as many as stand before the point.
func digits(v float64) string {
	switch a := math.Abs(v); {
	case a >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 9.995:
		return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
	}
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(v, 'f', 2, 64), "0"), ".")
}

// share is a fraction in percent.
func share(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return noValue
	}
	return fmt.Sprintf("%.0f%%", 100*v)
}

// mean is a small number on average: "0.3".
func mean(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

// count is "1 item", "1,200 items".
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return humanize.Comma(int64(n)) + " " + many
}

// rate is items in a time, in the unit that reads best.
func rate(n int, d time.Duration) string {
	if n == 0 || d <= 0 {
		return "none"
	}
	per := float64(n) / d.Seconds()
	switch {
	case per >= 1:
		return digits(per) + " a second"
	case per*60 >= 1:
		return digits(per*60) + " a minute"
	case per*3600 >= 1:
		return digits(per*3600) + " an hour"
	}
	return digits(per*86400) + " a day"
}

// listed joins names as a sentence does: "a, b and c".
func listed(names []string) string {
	switch n := len(names); n {
	case 0:
		return ""
	case 1:
		return names[0]
	default:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
}

// spaceText names a space for people.
func spaceText(s alloc.Space) string {
	switch s {
	case alloc.Host:
		return "host memory"
	case alloc.Pinned:
		return "pinned memory"
	}
	return fmt.Sprintf("memory of device %d", s.DeviceIndex())
}
