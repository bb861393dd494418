package report

import (
	"fmt"
	"image/color"
)

// ink is a colour that the style sheet decides: the name after which the
// classes "f-NAME" (fill) and "s-NAME" (stroke) are called. It is a color.Color
// so that gonum/plot carries it to the canvas.
type ink string

// RGBA is black: nothing but the canvas of this package is meant to draw it.
func (ink) RGBA() (r, g, b, a uint32) { return color.Black.RGBA() }

// The inks that are not of a series.
const (
	inkText   ink = "text"
	inkFaint  ink = "faint" // axes' labels
	inkGrid   ink = "grid"
	inkLimit  ink = "limit" // budgets and other lines not to cross
	inkMark   ink = "mark"  // the moment of the peak
	inkOther  ink = "other" // what belongs to nobody
	inkHeld   ink = "held"
	inkQueued ink = "queued"
	inkWaits  ink = "pending"
)

// nbSeries is how many colours of series the style sheet has: those of Paul
// Tol's muted scheme, which readers with any of the common colour deficiencies
// tell apart.
const nbSeries = 9

// seriesInk is the colour of the i-th stage, or of the i-th item.
func seriesInk(i int) ink {
	if i < 0 {
		return inkOther
	}
	return ink(fmt.Sprintf("c%d", i%nbSeries))
}

// inkName is the class's part of a colour that came back from gonum/plot.
func inkName(c color.Color) string {
	if i, ok := c.(ink); ok {
		return string(i)
	}
	return string(inkText)
}
