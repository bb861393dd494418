package web

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/live"
	"github.com/snarkline/snarkline/live/internal/synth"
	"github.com/snarkline/snarkline/pipeline"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// served is a page on a free port that is closed with the test.
func served(t *testing.T, state *live.State, o Options) *Server {
	t.Helper()
	s, err := Listen("127.0.0.1:0", state, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeNow(t, s) })
	return s
}

func closeNow(t *testing.T, s *Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
}

// answer is what a request got.
type answer struct {
	code   int
	header http.Header
	body   string
}

// fetch sends a request over a connection of its own.
func fetch(t *testing.T, method, url, host string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	tr := &http.Transport{DisableKeepAlives: true}
	defer tr.CloseIdleConnections()
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(body)}
}

func TestReadOnlyAndOwnNameAlone(t *testing.T) {
	s := served(t, live.New(live.Options{}), Options{})
	url := s.URL()
	port := url[strings.LastIndex(url, ":")+1 : len(url)-1]
	for _, c := range []struct {
		method, path, host string
		code               int
	}{
		{"GET", "", "", 200}, {"HEAD", "", "", 200}, {"GET", "page.js", "", 200}, {"GET", "state.json", "", 200},
		{"GET", "", "localhost:" + port, 200}, {"GET", "", "LOCALHOST", 200}, {"GET", "", "127.0.0.1", 200}, {"GET", "", "[::1]:8080", 200},
		{"POST", "", "", 405}, {"PUT", "state.json", "", 405}, {"DELETE", "", "", 405}, {"OPTIONS", "", "", 405},
		{"GET", "", "evil.example:" + port, 421}, {"GET", "state.json", "evil.example", 421}, {"GET", "events", "127.0.0.1.evil.example", 421},
		{"GET", "state.json", "10.0.0.1", 421}, {"GET", "", "localhost.evil.example", 421},
		{"GET", "nothing", "", 404}, {"GET", "assets/", "", 404}, {"GET", "..%2fserver.go", "", 404},
	} {
		resp := fetch(t, c.method, url+c.path, c.host)
		if resp.code != c.code {
			t.Errorf("%s /%s of %q: %d, want %d: %s", c.method, c.path, c.host, resp.code, c.code, resp.body)
		}
		if resp.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s /%s lets other origins read", c.method, c.path)
		}
		if csp := resp.header.Get("Content-Security-Policy"); c.code == 200 && !strings.Contains(csp, "default-src 'none'") {
			t.Errorf("/%s: policy %q", c.path, csp)
		}
	}
}

func TestBindsToTheGivenAddressAlone(t *testing.T) {
	s := served(t, live.New(live.Options{}), Options{})
	at := s.http.Addr().(*net.TCPAddr)
	if !at.IP.Equal(net.IPv4(127, 0, 0, 1)) {
		t.Errorf("it listens on %v", at)
	}
	if _, err := Listen(at.String(), live.New(live.Options{}), Options{}); err == nil || !strings.Contains(err.Error(), at.String()) || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second one on the same port: %v", err)
	}
	for _, addr := range []string{"9500", "", "127.0.0.1", "127.0.0.1:http:1"} {
		if _, err := Listen(addr, live.New(live.Options{}), Options{}); err == nil {
			t.Errorf("%q is taken for an address", addr)
		}
	}
}

// viewer reads the stream as a browser does.
type viewer struct {
	mu    sync.Mutex
	names []string
	last  update
	ended bool
	done  chan struct{}
}

func (v *viewer) state() (update, int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.last, len(v.names)
}

// watch opens the stream. wait is done before each read.
func watch(t *testing.T, url string, wait func()) *viewer {
	t.Helper()
	v := &viewer{done: make(chan struct{})}
	req, err := http.NewRequestWithContext(t.Context(), "GET", url+"events", nil)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{}
	resp, err := tr.RoundTrip(req) //nolint:bodyclose // the goroutine below closes it
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 200 {
		_ = resp.Body.Close()
		t.Fatalf("stream: %s", resp.Status)
	}
	go func() {
		defer close(v.done)
		defer tr.CloseIdleConnections()
		defer func() { _ = resp.Body.Close() }()
		lines := bufio.NewReaderSize(resp.Body, 1<<16)
		name := ""
		for {
			wait()
			line, err := lines.ReadString('\n')
			if err != nil {
				v.mu.Lock()
				v.ended = true
				v.mu.Unlock()
				return
			}
			if s, ok := strings.CutPrefix(line, "event: "); ok {
				name = strings.TrimSpace(s)
			}
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				var u update
				if err := json.Unmarshal([]byte(data), &u); err != nil {
					t.Error(err)
					return
				}
				v.mu.Lock()
				v.names, v.last = append(v.names, name), u
				v.mu.Unlock()
			}
		}
	}()
	return v
}

// eventually waits until ok, and reports how long that took.
func eventually(t *testing.T, within time.Duration, what string, ok func() bool) time.Duration {
	t.Helper()
	begin := time.Now()
	for !ok() {
		if time.Since(begin) > within {
			t.Fatalf("%s: not within %v", what, within)
		}
		time.Sleep(2 * time.Millisecond)
	}
	return time.Since(begin)
}

// TestViewers: several see the run go on, each the whole history once, and at
// the end the last state; then their streams end.
func TestViewers(t *testing.T) {
	mark := alloc.Marked()
	state := live.New(live.Options{Total: 30, Interval: 10 * time.Millisecond})
	s := served(t, state, Options{Interval: 10 * time.Millisecond})
	early := watch(t, s.URL(), func() {})
	eventually(t, 2*time.Second, "a state before the run", func() bool { u, _ := early.state(); return u.Snapshot != nil && u.Phase == "waiting" })
	g := synth.Graph(synth.Options{Items: 30, Step: 2 * time.Millisecond, Bytes: 1 << 20, FailAt: 7, Budget: 64 << 20,
		Options: []pipeline.Option{pipeline.Listen(state)}})
	state.Watch(g)
	type ended struct {
		r   *pipeline.Report
		err error
	}
	over := make(chan ended, 1)
	go func() {
		r, err := g.Run(context.Background())
		over <- ended{r, err}
	}()
	eventually(t, 5*time.Second, "some items", func() bool { u, _ := early.state(); return u.Done >= 5 })
	late := watch(t, s.URL(), func() {})
	e := <-over
	if e.err != nil {
		t.Fatal(e.err)
	}
	state.End(e.r, nil)
	closeNow(t, s)
	for name, v := range map[string]*viewer{"early": early, "late": late} {
		<-v.done
		u, n := v.state()
		if !u.Closed || u.Phase != "ended" || u.Done != 29 || u.Failed != 1 || u.InFlight != 0 {
			t.Errorf("%s: the last of %d states: closed %v, %s, %d done, %d failed", name, n, u.Closed, u.Phase, u.Done, u.Failed)
		}
		if len(u.Failures) != 1 || !strings.Contains(u.Failures[0].Error, "row 17") {
			t.Errorf("%s: failures %v", name, u.Failures)
		}
		if v.names[0] != "whole" {
			t.Errorf("%s: the first event is %q", name, v.names[0])
		}
	}
	mark.CheckLeaks(t)
}

// TestDeadViewer: one that reads nothing is dropped, and the run does not notice.
func TestDeadViewer(t *testing.T) {
	state := live.New(live.Options{Interval: 5 * time.Millisecond, History: 2000})
	g := synth.Graph(synth.Options{Items: 200, Step: time.Millisecond, Options: []pipeline.Option{pipeline.Listen(state)}})
	s := served(t, state, Options{Interval: 5 * time.Millisecond, Patience: 300 * time.Millisecond})
	var d net.Dialer
	dead, err := d.DialContext(t.Context(), "tcp", s.http.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dead.Close() }()
	if err := dead.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(dead, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	eventually(t, 2*time.Second, "the dead viewer is there", func() bool { s.hub.mu.Lock(); defer s.hub.mu.Unlock(); return s.hub.viewers == 1 })
	state.Watch(g)
	began := time.Now()
	r, err := g.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	// What no viewer can be the reason for: the longest stage makes 200 items in
	// 200 times 2 ms, if the sleeps are exact.
	if took > 4*time.Second {
		t.Errorf("the run took %v beside a viewer that reads nothing", took)
	}
	for i := range 4000 { // more than the socket's buffers take
		state.Note(fmt.Sprintf("note %d %s", i, strings.Repeat("x", 2000)))
		time.Sleep(time.Millisecond)
		s.hub.mu.Lock()
		gone := s.hub.viewers == 0
		s.hub.mu.Unlock()
		if gone {
			break
		}
	}
	eventually(t, 10*time.Second, "the dead viewer is dropped", func() bool { s.hub.mu.Lock(); defer s.hub.mu.Unlock(); return s.hub.viewers == 0 })
	state.End(r, nil)
	t.Logf("200 items in %v", took)
}

// TestSlowViewer: one that reads slowly misses states in between, and has the
// newest all the same.
func TestSlowViewer(t *testing.T) {
	state := live.New(live.Options{Interval: 2 * time.Millisecond})
	s := served(t, state, Options{Interval: 2 * time.Millisecond})
	g := synth.Graph(synth.Options{Items: 400, Step: 2 * time.Millisecond, Options: []pipeline.Option{pipeline.Listen(state)}})
	slow := watch(t, s.URL(), func() { time.Sleep(40 * time.Millisecond) })
	state.Watch(g)
	r, err := g.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	state.End(r, nil)
	begin := time.Now()
	closeNow(t, s)
	<-slow.done
	u, n := slow.state()
	if !u.Closed || u.Phase != "ended" || u.Done != 400 {
		t.Errorf("the slow viewer's last state: closed %v, %s, %d done", u.Closed, u.Phase, u.Done)
	}
	if made := int(r.Wall / (2 * time.Millisecond)); n > made/2 {
		t.Errorf("the slow viewer got %d of about %d states: none was left out", n, made)
	}
	t.Logf("it got %d states of a run of %v, and the end %v after it", n, r.Wall, time.Since(begin))
}

func TestTooManyViewers(t *testing.T) {
	s := served(t, live.New(live.Options{}), Options{Viewers: 1})
	v := watch(t, s.URL(), func() {})
	resp := fetch(t, "GET", s.URL()+"events", "")
	if resp.code != http.StatusServiceUnavailable || resp.header.Get("Retry-After") == "" {
		t.Errorf("the second viewer of one: %d", resp.code)
	}
	closeNow(t, s)
	<-v.done
}
