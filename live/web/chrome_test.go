package web

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/snarkline/snarkline/live"
	"github.com/snarkline/snarkline/live/internal/synth"
	"github.com/snarkline/snarkline/pipeline"
)

// browser is a headless Chromium: what it logs and asks for is kept.
type browser struct {
	ctx context.Context

	mu    sync.Mutex
	asked []string // URLs
	wrong []string // errors and warnings of the console, exceptions
}

// chromium starts one, or skips the test where there is none.
func chromium(t *testing.T) *browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "headless-shell"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		if os.Getenv("SNARKLINE_NEED_CHROMIUM") == "1" {
			t.Fatal("no chromium is found, and SNARKLINE_NEED_CHROMIUM=1 asks for it")
		}
		t.Skip("no chromium is found")
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-background-networking", true), chromedp.NoFirstRun, chromedp.UserDataDir(t.TempDir()))
	alloc, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, cancel := chromedp.NewContext(alloc)
	b := &browser{ctx: ctx}
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	var reading sync.WaitGroup
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Logf("end of the browser: %v", err)
		}
		cancel()
		stop()
		reading.Wait()
	})
	messages := chromedp.Console(ctx)
	reading.Go(func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			b.mu.Lock()
			if m.Type == "error" || m.Type == "warning" || m.IsException() {
				b.wrong = append(b.wrong, m.String())
			}
			b.mu.Unlock()
		}
	})
	if err := chromedp.Listen(ctx, func(ev any) {
		if ev, ok := ev.(*network.EventRequestWillBeSent); ok {
			b.mu.Lock()
			b.asked = append(b.asked, ev.Request.URL)
			b.mu.Unlock()
		}
	}); err != nil {
		t.Fatal(err)
	}
	b.do(t, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, network.Enable, network.EnableParams{})
		return err
	}))
	return b
}

func (b *browser) do(t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	run(t, b, chromedp.Steps(actions...))
}

func run[T any](t *testing.T, b *browser, a chromedp.Action[T]) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	v, err := chromedp.Run(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// read evaluates an expression in the page.
func read[T any](t *testing.T, b *browser, expr string) T {
	t.Helper()
	return run(t, b, chromedp.Evaluate[T](expr))
}

// look sets width and scheme and, where SNARKLINE_SHOTS names a folder, takes a
// picture of the whole page.
func (b *browser) look(t *testing.T, name string, width int64, scheme string) {
	t.Helper()
	b.do(t, chromedp.EmulateViewport(width, 900),
		chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
			_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
			return err
		}),
		chromedp.Sleep(600*time.Millisecond))
	if over := read[int](t, b, "document.documentElement.scrollWidth - document.documentElement.clientWidth"); over > 0 {
		t.Errorf("%s: at %d px the page is %d px too wide", name, width, over)
	}
	dir := os.Getenv("SNARKLINE_SHOTS")
	if dir == "" {
		return
	}
	png := run(t, b, chromedp.FullScreenshot(100))
	if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", name, width, scheme)), png, 0o600); err != nil {
		t.Fatal(err)
	}
}

// clean fails the test if the page complained or asked another origin.
func (b *browser) clean(t *testing.T, origin string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range b.wrong {
		t.Errorf("console: %s", w)
	}
	for _, url := range b.asked {
		if !strings.HasPrefix(url, origin) {
			t.Errorf("the page asks for %s", url)
		}
	}
	if len(b.asked) < 5 {
		t.Errorf("the page asked for %v alone: nothing is watched", b.asked)
	}
}

// TestPageKeepsUp: at some hundred events a second the page is at most a second
// behind, at the end as in the beginning, and keeps the last state when the
// server has gone.
func TestPageKeepsUp(t *testing.T) {
	b := chromium(t)
	state := live.New(live.Options{Total: 260})
	s := served(t, state, Options{})
	g := synth.Graph(synth.Options{Items: 260, Step: 12 * time.Millisecond, Bytes: 1 << 20, Budget: 20 << 20, FailAt: 40,
		Options: []pipeline.Option{pipeline.Listen(state)}})
	b.do(t, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(s.URL()), chromedp.WaitReady(`html[data-phase="waiting"]`))
	state.Watch(g)
	over := make(chan error, 1)
	var report *pipeline.Report
	go func() {
		r, err := g.Run(context.Background())
		report = r
		over <- err
	}()
	var lags []time.Duration
	var err error
	for running := true; running; {
		heard := state.Snapshot().Heard
		at := time.Now()
		for count(t, b) < heard {
			if time.Since(at) > 5*time.Second {
				t.Fatalf("the page shows %d events, %d were heard 5 s ago", count(t, b), heard)
			}
			time.Sleep(10 * time.Millisecond)
		}
		lags = append(lags, time.Since(at))
		select {
		case err = <-over:
			running = false
		case <-time.After(100 * time.Millisecond):
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	state.End(report, nil)
	closeNow(t, s)
	took := eventually(t, time.Second, "the page shows the end", func() bool {
		return read[string](t, b, "document.documentElement.dataset.phase") == "ended"
	})
	snap := state.Snapshot()
	perSecond := float64(snap.Heard) / snap.Wall.Seconds()
	if perSecond < 200 {
		t.Errorf("%.0f events a second are too few to tell anything", perSecond)
	}
	var worst time.Duration
	for _, l := range lags {
		worst = max(worst, l)
	}
	if worst > time.Second {
		t.Errorf("the page was %v behind", worst)
	}
	if n := count(t, b); n != snap.Heard {
		t.Errorf("the page shows %d events of %d", n, snap.Heard)
	}
	for sel, want := range map[string]string{"#t-done": "259", "#phase": "ended", "#banner": "The run has ended", "#failures": "row 17", "#stages": "h-msm"} {
		if text := read[string](t, b, fmt.Sprintf("document.querySelector(%q).textContent", sel)); !strings.Contains(text, want) {
			t.Errorf("%s says %q, want %q", sel, text, want)
		}
	}
	t.Logf("%.0f events a second over %v; the page was behind by %v at most in %d looks, the end was there after %v",
		perSecond, snap.Wall.Round(time.Millisecond), worst.Round(time.Millisecond), len(lags), took.Round(time.Millisecond))
	b.clean(t, s.URL())
}

func count(t *testing.T, b *browser) uint64 {
	return read[uint64](t, b, "Number(document.documentElement.dataset.heard || 0)")
}

// TestPageLooks goes through widths and schemes while a run goes on and after.
func TestPageLooks(t *testing.T) {
	b := chromium(t)
	state := live.New(live.Options{Total: 300, NameOf: func(k pipeline.Key) string { return fmt.Sprintf("witnesses/batch-<b>%03d</b>.wtns", k.Part) }})
	s := served(t, state, Options{})
	g := synth.Graph(synth.Options{Items: 300, Step: 60 * time.Millisecond, Bytes: 24 << 20, Budget: 400 << 20, FailAt: 5,
		Options: []pipeline.Option{pipeline.Listen(state)}})
	state.Watch(g)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	over := make(chan struct{})
	go func() {
		defer close(over)
		r, err := g.Run(ctx)
		state.End(r, err)
	}()
	b.do(t, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(s.URL()), chromedp.WaitReady(`html[data-phase="running"]`), chromedp.Sleep(6*time.Second))
	for _, scheme := range []string{"light", "dark"} {
		b.look(t, "running", 1280, scheme)
		b.look(t, "running", 400, scheme)
	}
	if n := read[int](t, b, "document.querySelectorAll('#items b, #events b').length"); n != 0 {
		t.Errorf("names of items are read as HTML: %d elements", n)
	}
	for _, stage := range []string{"synthesize", "prestage", "ntt", "h-msm", "batch-add", "tail-msm", "b_g2_msm", "assemble"} {
		if n := read[int](t, b, fmt.Sprintf("document.querySelectorAll('[data-stage=%q]').length", stage)); n != 2 {
			t.Errorf("%s is shown %d times, want in the graph and in the table", stage, n)
		}
	}
	if n := read[int](t, b, "document.querySelectorAll('#memory path[class^=f-c]').length"); n < 5 {
		t.Errorf("memory is stacked of %d stages", n)
	}
	if n := read[int](t, b, "document.querySelectorAll('#memory .limit').length"); n != 1 {
		t.Errorf("%d lines of a budget", n)
	}
	cancel()
	<-over
	closeNow(t, s)
	b.do(t, chromedp.WaitReady(`html[data-phase="ended"]`))
	b.look(t, "ended", 1280, "light")
	b.clean(t, s.URL())
}
