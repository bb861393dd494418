package report

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"gonum.org/v1/plot"
)

// ticker puts about n labelled ticks at round values.
type ticker struct {
	n    int
	step func(rough, hi float64) float64 // the round step that is at least rough, up to hi
	text func(v, step float64) string
}

// Ticks is for gonum/plot.
func (t ticker) Ticks(lo, hi float64) (out []plot.Tick) {
	if !(hi > lo) || math.IsInf(hi-lo, 0) {
		return []plot.Tick{{Value: lo, Label: t.text(lo, 1)}}
	}
	step := t.step((hi-lo)/float64(max(t.n, 1)), hi)
	for i := math.Ceil(lo/step - 1e-9); i*step <= hi*(1+1e-9); i++ {
		v := i * step
		if v == 0 {
			v = 0 // not −0
		}
		out = append(out, plot.Tick{Value: v, Label: t.text(v, step)})
		if len(out) > 100 {
			break
		}
	}
	return out
}

// decimalStep is 1, 2 or 5 times a power of ten.
func decimalStep(rough float64) float64 {
	base := math.Pow(10, math.Floor(math.Log10(rough)))
	for _, m := range []float64{1, 2, 5} {
		if m*base >= rough*(1-1e-9) {
			return m * base
		}
	}
	return 10 * base
}

// wholeStep is a decimalStep that is no less than 1.
func wholeStep(rough float64) float64 { return max(1, decimalStep(rough)) }

func plainText(v, _ float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// byteUnits are the units of sizes; the first is not used below 1 byte.
var byteUnits = [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}

// byteStep is a round number of the unit that the labels near hi have, or a half, a
// quarter and so on of it, which are round in the unit below too: 500 KiB would read
// 13.672 MiB, and 0.2 GiB 204.8 MiB.
func byteStep(rough, hi float64) float64 {
	unit := 1.0
	for range len(byteUnits) - 1 {
		if hi < unit*1024 {
			break
		}
		unit *= 1024
	}
	if rough < unit {
		return max(1, math.Exp2(math.Ceil(math.Log2(rough/unit)-1e-9))*unit)
	}
	return decimalStep(rough/unit) * unit
}

func byteText(v, step float64) string {
	if v == 0 {
		return "0"
	}
	u := 0
	for v >= 1024 && u < len(byteUnits)-1 {
		v, step, u = v/1024, step/1024, u+1
	}
	places := 0
	for s := step; places < 3 && math.Abs(s-math.Round(s)) > 1e-6*s; places++ {
		s *= 10
	}
	return strconv.FormatFloat(v, 'f', places, 64) + " " + byteUnits[u]
}

// timeStep is a round number of seconds: decimal below a minute, parts of the
// hour and of the day above.
func timeStep(rough float64) float64 {
	if rough <= 10 {
		return decimalStep(rough)
	}
	for _, s := range []float64{15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400} {
		if s >= rough {
			return s
		}
	}
	return 86400 * wholeStep(rough/86400)
}

func timeText(v, step float64) string {
	switch {
	case v == 0:
		return "0"
	case step >= 3600:
		return digits(v/3600) + " h"
	case step >= 15 && v >= 60:
		d := time.Duration(math.Round(v)) * time.Second
		return fmt.Sprintf("%d:%02d min", int(d.Minutes()), int(d.Seconds())%60)
	case step >= 1:
		return strconv.FormatFloat(v, 'f', 0, 64) + " s"
	case step >= 0.1:
		return strconv.FormatFloat(v, 'f', 1, 64) + " s"
	case step >= 1e-3:
		return strconv.FormatFloat(v*1e3, 'f', 0, 64) + " ms"
	case step >= 1e-4:
		return strconv.FormatFloat(v*1e3, 'f', 1, 64) + " ms"
	}
	return strconv.FormatFloat(v*1e6, 'g', 4, 64) + " µs"
}

func timeTicker(n int) ticker { return ticker{n, whatever(timeStep), timeText} }
func byteTicker(n int) ticker { return ticker{n, byteStep, byteText} }
func wholeTicker(n int) ticker {
	return ticker{n, whatever(wholeStep), plainText}
}

// whatever is a step that does not depend on the end of the axis.
func whatever(step func(rough float64) float64) func(rough, hi float64) float64 {
	return func(rough, _ float64) float64 { return step(rough) }
}
