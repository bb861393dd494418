package web

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"net/http"
	"time"

	"github.com/snarkline/snarkline/live"
	"github.com/snarkline/snarkline/live/internal/serve"
)

//go:embed assets
var assets embed.FS

// Options are the options of Listen. The zero value is good.
type Options struct {
	Interval time.Duration // between updates; 0: 250 ms
	Patience time.Duration // for a viewer that takes nothing; 0: 10 s
	Viewers  int           // at once at most; 0: 32
}

// Server is the page of one run.
type Server struct {
	state *live.State
	opt   Options
	hub   *hub
	http  *serve.Server
}

// Listen shows the state on addr, "127.0.0.1:0" for any free port. Whoever can
// reach the address can read the names of the items and the errors. Close ends
// it.
func Listen(addr string, state *live.State, o Options) (*Server, error) {
	if o.Interval <= 0 {
		o.Interval = 250 * time.Millisecond
	}
	if o.Patience <= 0 {
		o.Patience = 10 * time.Second
	}
	if o.Viewers <= 0 {
		o.Viewers = 32
	}
	s := &Server{state: state, opt: o, hub: newHub(state, o.Interval)}
	mux := http.NewServeMux()
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		return nil, fmt.Errorf("files of the page: %w", err)
	}
	static := http.FileServerFS(files)
	for _, name := range []string{"page.css", "page.js", "graph.js", "charts.js", "tables.js", "text.js"} {
		mux.Handle("/"+name, static)
	}
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, files, "page.html") })
	mux.HandleFunc("/palette.css", palette)
	mux.HandleFunc("/favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/state.json", s.snapshot)
	mux.HandleFunc("/events", s.stream)
	if s.http, err = serve.Listen(addr, secured(mux)); err != nil {
		return nil, err
	}
	s.hub.start()
	return s, nil
}

// URL is the address of the page.
func (s *Server) URL() string { return s.http.URL() }

// Close sends every viewer the last state, which their pages keep, and ends the
// server when they have it, or with ctx.
func (s *Server) Close(ctx context.Context) error {
	s.hub.stop()
	return s.http.Close(ctx)
}

// secured adds what the page may do: show itself and talk to where it came from.
func secured(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "+
			"base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		w.Header().Set("X-Frame-Options", "DENY")
		h.ServeHTTP(w, r)
	})
}

// palette is the style sheet of the stages' colours.
func palette(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	var light, dark string
	for i, hue := range live.Palette {
		light += fmt.Sprintf("--c%d:%s;", i, hue.Light)
		dark += fmt.Sprintf("--c%d:%s;", i, hue.Dark)
	}
	for name, hue := range map[string]live.Hue{"held": live.Held, "queued": live.Queued, "pending": live.Pending} {
		light += fmt.Sprintf("--%s:%s;", name, hue.Light)
		dark += fmt.Sprintf("--%s:%s;", name, hue.Dark)
	}
	_, _ = fmt.Fprintf(w, ":root{%s}\n@media (prefers-color-scheme:dark){:root{%s}}\n", light, dark)
	for i := range live.Palette {
		_, _ = fmt.Fprintf(w, ".f-c%d{fill:var(--c%d)}.b-c%d{background:var(--c%d)}\n", i, i, i, i)
	}
}
