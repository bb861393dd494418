package metrics

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/live"
	"github.com/snarkline/snarkline/live/internal/synth"
	"github.com/snarkline/snarkline/pipeline"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ran is a run that is over, and its metrics. Scrapes go on all the while.
func ran(t *testing.T) (*Metrics, *pipeline.Report) {
	t.Helper()
	state := live.New(live.Options{Total: 25})
	m, err := New(state)
	if err != nil {
		t.Fatal(err)
	}
	g := synth.Graph(synth.Options{Items: 25, Step: time.Millisecond, Bytes: 1 << 20, Budget: 20 << 20, FailAt: 4,
		Options: []pipeline.Option{pipeline.Listen(state, m)}})
	state.Watch(g)
	over := make(chan struct{})
	var r *pipeline.Report
	go func() {
		defer close(over)
		r, err = g.Run(context.Background())
	}()
	for running := true; running; {
		if _, err := m.Registry().Gather(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-over:
			running = false
		case <-time.After(2 * time.Millisecond):
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	state.End(r, nil)
	return m, r
}

func TestScrape(t *testing.T) {
	mark := alloc.Marked()
	m, r := ran(t)
	mark.CheckLeaks(t)
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	text := w.Body.String()
	for _, want := range []string{
		`snarkline_items_total{outcome="done"} 24`, `snarkline_items_total{outcome="failed"} 1`, "snarkline_items_in_flight 0", "snarkline_items_expected 25",
		`snarkline_stage_items_total{stage="ntt"} 25`, `snarkline_stage_failures_total{stage="h-msm"} 1`,
		`snarkline_stage_call_duration_seconds_count{stage="ntt"} 25`, `snarkline_stage_call_duration_seconds_bucket{stage="ntt",le="+Inf"} 25`,
		"snarkline_item_duration_seconds_count 24", `snarkline_stage_queue_capacity{stage="b_g2_msm"} 4`, `snarkline_stage_workers{stage="synthesize"} 4`,
		`snarkline_budget_limit_bytes{space="host"} 2.097152e+07`, `snarkline_budget_reserved_bytes{space="host"} 0`,
		`snarkline_stage_memory_bytes{space="host",stage="synthesize",state="made"} 0`, "snarkline_run_in_progress 0", "go_goroutines", "process_resident_memory_bytes",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in what is scraped", want)
		}
	}
	if n := r.Stage("ntt").Items; n != 25 {
		t.Errorf("the report counts %d", n)
	}
	if strings.Contains(text, `snarkline_stage_queue_length{stage="jobs"}`) {
		t.Error("a source has a queue")
	}
}

func TestNamesByConvention(t *testing.T) {
	m, _ := ran(t)
	problems, err := testutil.GatherAndLint(m.Registry())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	n, err := testutil.GatherAndCount(m.Registry(), "snarkline_stage_busy_seconds_total", "snarkline_stage_wait_seconds_total", "snarkline_memory_bytes")
	if err != nil || n < 9+10+1 {
		t.Errorf("%d series, %v", n, err)
	}
}

func TestServer(t *testing.T) {
	m, err := New(live.New(live.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	s, err := Listen("127.0.0.1:0", m)
	if err != nil {
		t.Fatal(err)
	}
	get := func(method, url, host string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		tr := &http.Transport{DisableKeepAlives: true}
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	if code, text := get("GET", s.URL(), ""); code != 200 || !strings.Contains(text, "snarkline_items_total") {
		t.Errorf("%d: %s", code, text)
	}
	if code, _ := get("POST", s.URL(), ""); code != 405 {
		t.Errorf("POST: %d", code)
	}
	// On the loopback address it is as deaf to other names as the page is.
	if code, _ := get("GET", s.URL(), "evil.example"); code != 421 {
		t.Errorf("by another name: %d", code)
	}
	if _, err := Listen(strings.TrimSuffix(strings.TrimPrefix(s.URL(), "http://"), "/metrics"), m); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("on the same port: %v", err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestManyItems: keys that never leave do not pile up.
func TestManyItems(t *testing.T) {
	m, err := New(live.New(live.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 * live.MaxItems {
		m.OnEvent(pipeline.Event{Kind: pipeline.Admitted, Key: pipeline.Key{Part: i}})
	}
	if len(m.admitted) != live.MaxItems {
		t.Errorf("%d are kept", len(m.admitted))
	}
	for i := range 2 * live.MaxItems {
		m.OnEvent(pipeline.Event{Kind: pipeline.Left, Key: pipeline.Key{Part: i}, Err: errors.New("x")})
	}
	if len(m.admitted) != 0 {
		t.Errorf("%d are left", len(m.admitted))
	}
}
