// Shots makes pictures of pages, as in the README:
//
//	go run ./report/internal/shots -width 1280 -height 900 -scheme light report.html docs/img/report.png
//
// With -at SELECTOR the picture begins at that element; with -height 0 it is as
// high as the page.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/snarkline/snarkline/report/internal/browser"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "shots:", err)
		os.Exit(1)
	}
}

func run() error {
	width := flag.Int64("width", 1280, "of the window, in CSS pixels")
	height := flag.Int64("height", 0, "of the picture; 0: of the page")
	scheme := flag.String("scheme", "light", "light or dark")
	at := flag.String("at", "", "CSS selector of the element at the top")
	scale := flag.Float64("scale", 1, "picture's pixels by CSS pixel")
	flag.Parse()
	if flag.NArg() != 2 {
		return fmt.Errorf("want PAGE.html and PICTURE.png, got %d arguments", flag.NArg())
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	b, err := browser.Open(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	p, err := b.Show(flag.Arg(0), *width, 900, browser.Scheme(*scheme))
	if err != nil {
		return err
	}
	defer p.Close()
	look := fmt.Sprintf(`(() => { const s = %q, e = s && document.querySelector(s);
		return {Top: e ? e.getBoundingClientRect().top + scrollY - 20 : 0, Height: document.documentElement.scrollHeight}; })()`, *at)
	box, err := chromedp.Run(p.Ctx, chromedp.Evaluate[struct{ Top, Height float64 }](look))
	if err != nil {
		return fmt.Errorf("measure the page: %w", err)
	}
	h := box.Height - box.Top
	if *height > 0 {
		h = math.Min(h, float64(*height))
	}
	beyond := true
	png, err := chromedp.Run(p.Ctx, func(ctx context.Context, t *chromedp.Target) ([]byte, error) {
		r, err := cdp.Call(ctx, t, page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: &beyond,
			Clip: &page.Viewport{X: 0, Y: box.Top, Width: float64(*width), Height: h, Scale: *scale}})
		return r.Data, err
	})
	if err != nil {
		return fmt.Errorf("take the picture: %w", err)
	}
	if err := os.WriteFile(flag.Arg(1), png, 0o644); err != nil { //nolint:gosec // a picture for everybody
		return fmt.Errorf("write the picture: %w", err)
	}
	return nil
}
