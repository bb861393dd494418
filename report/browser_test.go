package report

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/snarkline/snarkline/report/internal/browser"
)

// openBrowser starts a Chromium for a test. Without one the test is skipped,
// unless SNARKLINE_NEED_CHROMIUM says that there has to be one.
func openBrowser(t *testing.T) *browser.Browser {
	t.Helper()
	if testing.Short() {
		t.Skip("starting a browser takes seconds")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	b, err := browser.Open(ctx)
	if errors.Is(err, browser.ErrNone) && os.Getenv("SNARKLINE_NEED_CHROMIUM") != "1" {
		cancel()
		t.Skip(err)
	}
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close(); cancel() })
	return b
}

// writePages writes the pages that the tests look at.
func writePages(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	pages := map[string]string{
		"sample": pageText(t, sample(16)), "hostile": pageText(t, hostile()), "known": pageText(t, known()),
		"large": pageText(t, sample(2000)), "sweep": sweepText(t, sampleSweep(t)),
	}
	for name, text := range pages {
		pages[name] = filepath.Join(dir, name+".html")
		if err := os.WriteFile(pages[name], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return pages
}

// look is what a page is like in a window.
type look struct {
	Overflow   float64  // how far the page reaches over the window's edge
	Background string   // of the body
	Text       string   // all of it
	Cut        []string // texts of drawings that reach over the drawing's edge
	Clash      []string // texts of one drawing that overlap
	Faint      []string // texts whose colour is too near the background's
	Scripts    int
	Images     int
}

const lookScript = `(() => {
	const seen = e => e.getClientRects().length > 0 && e.getBoundingClientRect().width > 0;
	const out = {Overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
		Background: getComputedStyle(document.body).backgroundColor, Text: document.body.innerText,
		Cut: [], Clash: [], Faint: [], Scripts: document.scripts.length, Images: document.images.length};
	for (const svg of document.querySelectorAll("svg.plot, svg.graph, svg.heatmap")) {
		if (!seen(svg)) continue;
		const frame = svg.getBoundingClientRect();
		const boxes = Array.from(svg.querySelectorAll("text")).map(t => ({t: t.textContent, r: t.getBoundingClientRect()}));
		for (const b of boxes) {
			if (b.r.left < frame.left - 1 || b.r.right > frame.right + 1 || b.r.top < frame.top - 2 || b.r.bottom > frame.bottom + 2) out.Cut.push(b.t);
		}
		for (let i = 0; i < boxes.length; i++) for (let k = i + 1; k < boxes.length; k++) {
			const a = boxes[i].r, b = boxes[k].r;
			if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 4 && b.top < a.bottom - 4) out.Clash.push(boxes[i].t + " / " + boxes[k].t);
		}
	}
	const lum = c => { const v = c.match(/[\d.]+/g).slice(0, 3).map(x => x / 255).map(x => x <= 0.03928 ? x / 12.92 : Math.pow((x + 0.055) / 1.055, 2.4)); return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
	const bg = lum(out.Background);
	for (const e of document.querySelectorAll("p, dt, dd, td, th, h1, h2, figcaption, li, svg.plot text, svg.graph text, svg.names text, svg.axis text")) {
		if (!seen(e) || !e.textContent.trim()) continue;
		const s = getComputedStyle(e), l = lum(e instanceof SVGElement ? s.fill : s.color);
		if ((Math.max(l, bg) + 0.05) / (Math.min(l, bg) + 0.05) < 4.5) out.Faint.push(e.textContent);
	}
	return out;
})()`

// TestInABrowser looks at the pages with one Chromium.
func TestInABrowser(t *testing.T) {
	b := openBrowser(t)
	pages := writePages(t)
	t.Run("looks", func(t *testing.T) { testLooks(t, b, pages) })
	t.Run("tells", func(t *testing.T) { testTells(t, b, pages) })
	t.Run("use", func(t *testing.T) { testUse(t, b, pages) })
}

// testLooks: the pages are whole in both schemes, wide and narrow.
func testLooks(t *testing.T, b *browser.Browser, pages map[string]string) {
	for _, c := range []struct {
		page   string
		width  int64
		scheme browser.Scheme
	}{
		{"sample", 1280, browser.Light}, {"sample", 400, browser.Dark}, {"sample", 700, browser.Light},
		{"hostile", 1280, browser.Dark}, {"hostile", 400, browser.Light},
		{"large", 1280, browser.Light}, {"sweep", 1280, browser.Dark}, {"sweep", 400, browser.Light},
	} {
		t.Run(fmt.Sprintf("%s %d %s", c.page, c.width, c.scheme), func(t *testing.T) {
			p, err := b.Show(pages[c.page], c.width, 900, c.scheme)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			l, err := chromedp.Run(p.Ctx, chromedp.Evaluate[look](lookScript))
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Problems(); len(got) > 0 {
				t.Errorf("the console has %q", got)
			}
			if got := p.Requests(); len(got) > 0 {
				t.Errorf("the page asks for %q", got)
			}
			if l.Overflow > 0 {
				t.Errorf("the page reaches %v pixels over the edge", l.Overflow)
			}
			if want := map[browser.Scheme]string{browser.Light: "rgb(253, 253, 252)", browser.Dark: "rgb(21, 23, 27)"}[c.scheme]; l.Background != want {
				t.Errorf("the background is %s, want %s", l.Background, want)
			}
			if l.Scripts != 2 || l.Images != 0 {
				t.Errorf("%d scripts and %d images", l.Scripts, l.Images)
			}
			for what, list := range map[string][]string{"are cut": l.Cut, "overlap": l.Clash, "are too faint": l.Faint} {
				if len(list) > 0 {
					t.Errorf("%d texts %s: %q", len(list), what, list[:min(8, len(list))])
				}
			}
		})
	}
}

// testTells: lanes, charts and points say what they are.
func testTells(t *testing.T, b *browser.Browser, pages map[string]string) {
	for _, c := range []struct {
		page, selector string
		x, y           float64 // in the element, as parts of it
		want           []string
	}{
		// The first cell of the first lane is item 0 in synthesize, from 1 s to 10 s of 20.
		{"known", "svg.lanes", 0.2, 0, []string{"sector", "synthesize, worker 1", "from 1 s to 10 s, 9 s at work"}},
		{"known", `[data-chart="stage-host"] svg.wide`, 0.3, 0.5, []string{"synthesize", "2.0 GiB"}},
		{"known", `[data-chart="state-host"] svg.wide`, 0.64, 0.5, []string{"held by a stage", "3.1 GiB", "waiting in a queue", "2.0 GiB"}},
		{"known", `svg.graph.wide .node[data-tip^="synthesize"]`, 0.5, 0.5, []string{"synthesize (stage)", "4 workers", "6 calls"}},
		{"sweep", `svg.plot.wide circle.pt.f-real`, 0.5, 0.5, []string{"synthesize.workers=", "predicted: ", "measured: "}},
		{"sweep", `svg.heatmap rect.hit`, 0.5, 0.5, []string{"synthesize.workers=1"}},
	} {
		t.Run(c.page+" "+c.selector, func(t *testing.T) {
			p, err := b.Show(pages[c.page], 1280, 900, browser.Light)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			box, err := chromedp.Run(p.Ctx, chromedp.Evaluate[struct{ X, Y, W, H float64 }](fmt.Sprintf(
				`(() => {
					const all = Array.from(document.querySelectorAll(%q));
					all[0].scrollIntoView({block: "center"});
					const free = e => { const r = e.getBoundingClientRect(); return e.contains(document.elementFromPoint(r.left + r.width/2, r.top + r.height/2)); };
					const e = all.find(free) || all[0], r = e.getBoundingClientRect(); 
					return {X: r.left, Y: r.top, W: r.width, H: r.height};
				})()`, c.selector)))
			if err != nil {
				t.Fatal(err)
			}
			x, y := box.X+c.x*box.W, box.Y+c.y*box.H
			if c.selector == "svg.lanes" {
				y = box.Y + 12
			}
			time.Sleep(100 * time.Millisecond) // scrolling hides the tip
			if err := chromedp.Do(p.Ctx, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x, y)); err != nil {
				t.Fatal(err)
			}
			text, err := chromedp.Run(p.Ctx, chromedp.Evaluate[string](`document.getElementById("tip").hidden ? "" : document.getElementById("tip").innerText`))
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
					t.Errorf("at %.0f, %.0f the page tells %q, want %q in it", x, y, text, want)
				}
			}
		})
	}
}

// testUse zooms, sorts, reads the sentence of the peak, and tries to fetch.
func testUse(t *testing.T, b *browser.Browser, pages map[string]string) {
	var asked atomic.Int32
	network := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer network.Close()
	p, err := b.Show(pages["known"], 1280, 900, browser.Light)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	got, err := chromedp.Run(p.Ctx, chromedp.Evaluate[struct {
		Peak, Before, Zoomed, All, First, Sorted string
		Forbidden                                bool
	}](`(async () => {
		const lanes = document.querySelector("svg.lanes"), click = s => document.querySelector(s).click(), rows = () => document.querySelector("#stages tbody th").textContent;
		const out = {Peak: document.querySelector(".memory strong").textContent, Before: lanes.getAttribute("viewBox"), First: rows()};
		click("[data-zoom=in]"); out.Zoomed = lanes.getAttribute("viewBox");
		click("[data-zoom=all]"); out.All = lanes.getAttribute("viewBox");
		Array.from(document.querySelectorAll("#stages thead th")).find(h => h.textContent === "Held ≤").click(); out.Sorted = rows();
		out.Forbidden = await new Promise(done => { document.addEventListener("securitypolicyviolation", () => done(true)); const i = new Image(); i.src = "`+network.URL+`/x.png"; document.body.append(i); setTimeout(() => done(false), 2000); });
		await fetch("`+network.URL+`").catch(() => 0);
		return out;
	})()`, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
	if got.Peak != knownPeak {
		t.Errorf("the peak is told as %q, want %q", got.Peak, knownPeak)
	}
	if got.Before == got.Zoomed || !strings.HasPrefix(got.Zoomed, "250000 0 500000 ") || !strings.HasPrefix(got.All, "0 0 1000000 ") {
		t.Errorf("the lanes show %q, zoomed %q, all %q", got.Before, got.Zoomed, got.All)
	}
	if got.First != "jobs" || got.Sorted != "synthesize" {
		t.Errorf("the first row is %q, sorted by what is held %q", got.First, got.Sorted)
	}
	if !got.Forbidden {
		t.Error("the page may fetch a picture from the network")
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("%d requests reached the network", n)
	}
}
