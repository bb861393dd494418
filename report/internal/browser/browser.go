// Package browser drives a headless Chromium for the tests and the pictures of
// pages.
package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// ErrNone is the error of Open where there is no Chromium.
var ErrNone = errors.New("no chromium was found (looked for chromium, chromium-browser and google-chrome)")

// Browser is a Chromium that keeps to itself: a profile of its own, thrown away
// with it, and nothing fetched in the background.
type Browser struct {
	ctx   context.Context
	close func()
}

// Open starts a Chromium. Close ends it.
func Open(ctx context.Context) (*Browser, error) {
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		return nil, ErrNone
	}
	dir, err := os.MkdirTemp("", "snarkline-browser-")
	if err != nil {
		return nil, fmt.Errorf("make a profile for the browser: %w", err)
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.UserDataDir(dir),
		chromedp.NoSandbox, chromedp.NoFirstRun, chromedp.DisableGPU, chromedp.Flag("disable-background-networking", true))
	actx, endAllocator := chromedp.NewExecAllocator(ctx, opts...)
	bctx, endBrowser := chromedp.NewContext(actx)
	b := &Browser{ctx: bctx, close: func() {
		endBrowser()
		endAllocator()
		_ = os.RemoveAll(dir) // what it leaves in the temporary folder harms nobody
	}}
	if err := chromedp.Do(bctx); err != nil {
		b.close()
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	return b, nil
}

// Close ends the browser.
func (b *Browser) Close() { b.close() }

// Scheme is what the reader prefers.
type Scheme string

// The schemes.
const (
	Light Scheme = "light"
	Dark  Scheme = "dark"
)

// Page is a page that is open.
type Page struct {
	Ctx   context.Context
	close func()

	mu       sync.Mutex
	problems []string
	requests []string
}

// Show opens a file in a window of some width and height, in CSS pixels.
func (b *Browser) Show(file string, width, height int64, scheme Scheme) (*Page, error) {
	file, err := filepath.Abs(file)
	if err != nil {
		return nil, fmt.Errorf("open a page: %w", err)
	}
	p := &Page{}
	p.Ctx, p.close = chromedp.NewContext(b.ctx, chromedp.WithListener(p.hear))
	err = chromedp.Do(p.Ctx,
		chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
			for _, enable := range []cdp.Command[cdp.Empty, cdp.Empty]{log.Enable, runtime.Enable} {
				if _, err := cdp.Call(ctx, t, enable, cdp.Empty{}); err != nil {
					return err
				}
			}
			if _, err := cdp.Call(ctx, t, network.Enable, network.EnableParams{}); err != nil {
				return err
			}
			_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: string(scheme)}}})
			return err
		}),
		chromedp.EmulateViewport(width, height),
		chromedp.Navigate("file://"+file),
	)
	if err != nil {
		p.close()
		return nil, fmt.Errorf("open %s: %w", file, err)
	}
	return p, nil
}

// hear notes what the page complains of and asks for.
func (p *Page) hear(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			text += " " + x.Description
		}
		p.problems = append(p.problems, text)
	case *runtime.EventConsoleAPICalled:
		for _, a := range e.Args {
			p.problems = append(p.problems, string(e.Type)+": "+string(a.Value)+a.Description)
		}
	case *log.EventEntryAdded:
		p.problems = append(p.problems, string(e.Entry.Level)+": "+e.Entry.Text)
	case *network.EventRequestWillBeSent:
		if u := e.Request.URL; !strings.HasPrefix(u, "file:") && !strings.HasPrefix(u, "data:") {
			p.requests = append(p.requests, u)
		}
	}
}

// Problems are what the console has of the page: errors, warnings and messages.
func (p *Page) Problems() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.problems...)
}

// Requests are what the page asked for beyond its own file.
func (p *Page) Requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.requests...)
}

// Close closes the page.
func (p *Page) Close() { p.close() }
