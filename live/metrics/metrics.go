package metrics

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/snarkline/snarkline/live"
	"github.com/snarkline/snarkline/live/internal/serve"
	"github.com/snarkline/snarkline/pipeline"
)

// Metrics are the metrics of one run, in a registry of their own.
type Metrics struct {
	registry *prometheus.Registry
	calls    *prometheus.HistogramVec
	items    prometheus.Histogram

	mu       sync.Mutex
	admitted map[pipeline.Key]time.Duration
	observer map[string]prometheus.Observer // of a stage: looked up once
}

// New makes the metrics of what the state follows. They are a listener beside
// the state: pipeline.Listen(state, metrics).
func New(state *live.State) (*Metrics, error) {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "snarkline_stage_call_duration_seconds", Help: "How long one call of a stage took.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 16), // to 15 minutes
		}, []string{"stage"}),
		items: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "snarkline_item_duration_seconds", Help: "From an item's admission until nothing of it is in the graph any more, if it did not fail.",
			Buckets: prometheus.ExponentialBuckets(0.01, 2.5, 16), // to three hours
		}),
		admitted: make(map[pipeline.Key]time.Duration), observer: make(map[string]prometheus.Observer),
	}
	for _, c := range []prometheus.Collector{m.calls, m.items, &reader{state}, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})} {
		if err := m.registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Registry is where the metrics are registered: others may be added.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// Handler answers scrapes.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

// OnEvent is called by the pipeline.
func (m *Metrics) OnEvent(e pipeline.Event) {
	switch e.Kind {
	case pipeline.End:
		m.mu.Lock()
		o := m.observer[e.Stage]
		if o == nil {
			o = m.calls.WithLabelValues(e.Stage)
			m.observer[e.Stage] = o
		}
		m.mu.Unlock()
		o.Observe(e.Wait.Seconds())
	case pipeline.Admitted:
		m.mu.Lock()
		if _, again := m.admitted[e.Key]; !again && len(m.admitted) < live.MaxItems {
			m.admitted[e.Key] = e.At
		}
		m.mu.Unlock()
	case pipeline.Left:
		m.mu.Lock()
		since, ok := m.admitted[e.Key]
		delete(m.admitted, e.Key)
		m.mu.Unlock()
		if ok && e.Err == nil {
			m.items.Observe((e.At - since).Seconds())
		}
	}
}

// Server answers scrapes on an address.
type Server struct{ http *serve.Server }

// Listen serves /metrics on addr until Close.
func Listen(addr string, m *Metrics) (*Server, error) {
	mux := http.NewServeMux()
	mux.Handle("/metrics", m.Handler())
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/metrics", http.StatusFound) })
	s, err := serve.ListenAny(addr, mux)
	if err != nil {
		return nil, err
	}
	return &Server{s}, nil
}

// URL is the address of the metrics.
func (s *Server) URL() string { return s.http.URL() + "metrics" }

// Close ends the server when it has answered what it is asked, or with ctx.
func (s *Server) Close(ctx context.Context) error { return s.http.Close(ctx) }
