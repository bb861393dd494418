package main

import (
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// watchedVault are the arguments of a proof whose results go to dir.
func watchedVault(t *testing.T, dir string, more ...string) []string {
	t.Helper()
	wtns := filepath.Join(dir, "w.wtns")
	sl(t, codeOK, "export", "witness", "-q", "--wasm", bundled("bn128/vault.wasm"), "--input", bundled("vault.json"), wtns)
	return append([]string{"prove", "--key", bundled("bn128/vault.zkey"), "--witness", wtns,
		"--proof", filepath.Join(dir, "proof.json"), "--public", filepath.Join(dir, "public.json")}, more...)
}

// TestLiveWithoutTerminal: one line says so, and all else is as without the flag.
func TestLiveWithoutTerminal(t *testing.T) {
	dir := t.TempDir()
	r := sl(t, codeOK, watchedVault(t, dir, "--live", "-q")...)
	if n := strings.Count(r.stderr, "\n"); n != 1 || !strings.Contains(r.stderr, "--live: standard error is no terminal") {
		t.Errorf("it says %q", r.stderr)
	}
	if r.stdout != filepath.Join(dir, "proof.json")+"\n" {
		t.Errorf("standard output: %q", r.stdout)
	}
}

// TestServersOfARun: with all that can watch a run, the JSON stays alone on
// standard output, the addresses are told, and they are free again afterwards.
func TestServersOfARun(t *testing.T) {
	got := collector(t, http.StatusOK)
	r := sl(t, codeOK, watchedVault(t, t.TempDir(), "--json", "--live", "--live-web", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--otlp", got.URL)...)
	if res := decode[proveResult](t, r.stdout); !res.OK || res.Proofs != 1 {
		t.Errorf("%+v", res)
	}
	for _, flag := range []string{"live", "metrics"} {
		_, rest, ok := strings.Cut(r.stderr, "snarkline: "+flag+": http://")
		if !ok {
			t.Fatalf("the address of %s is not told in %q", flag, r.stderr)
		}
		addr, _, _ := strings.Cut(rest, "/")
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Errorf("%s is still served: %v", flag, err)
			continue
		}
		_ = l.Close()
	}
	spans := got.names()
	for _, want := range []string{"item", "synthesize", "prestage", "ntt", "h-msm", "batch-add", "tail-msm", "b_g2_msm", "assemble"} {
		if spans[want] != 1 {
			t.Errorf("%d spans of %s arrive at the collector", spans[want], want)
		}
	}
	if got.service() != "snarkline" {
		t.Errorf("the service is %q", got.service())
	}
}

// TestLostSpans: a collector that is not there, or does not want the spans,
// costs a warning and a bounded time, not the proof.
func TestLostSpans(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + l.Addr().String()
	_ = l.Close()
	for name, url := range map[string]string{"nobody": nobody, "refused": collector(t, http.StatusForbidden).URL} {
		begin := time.Now()
		r := sl(t, codeOK, watchedVault(t, t.TempDir(), "-q", "--otlp", url)...)
		if !strings.Contains(r.stderr, "--otlp: ") || !strings.Contains(r.stderr, "spans did not get to "+url) {
			t.Errorf("%s: it says %q", name, r.stderr)
		}
		if took := time.Since(begin); took > 3*spanTimeout {
			t.Errorf("%s: it took %v", name, took)
		}
	}
}

// TestWatchingWrongly: what cannot be opened is wrong usage, tells its flag, and
// is noticed before anything is proved.
func TestWatchingWrongly(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	taken := l.Addr().String()
	for _, c := range [][3]string{
		{"--live-web", taken, "in use"}, {"--metrics", taken, "in use"},
		{"--live-web", "9000", "HOST:PORT"}, {"--metrics", "localhost", "HOST:PORT"},
		{"--otlp", "127.0.0.1:4318", "want a URL"}, {"--otlp", "ftp://x", "want a URL"}, {"--otlp", "http://", "want a URL"},
	} {
		dir := t.TempDir()
		r := sl(t, codeUsage, watchedVault(t, dir, c[0], c[1])...)
		if !strings.Contains(r.stderr, c[0]) || !strings.Contains(r.stderr, c[2]) {
			t.Errorf("%s %s: it says %q", c[0], c[1], r.stderr)
		}
		if got := files(t, dir); len(got) != 1 {
			t.Errorf("%s %s: it leaves %v", c[0], c[1], got)
		}
	}
}

// TestPageWhileItProves: the page and the metrics are there from before the key
// is read, and the page's stream brings the end.
func TestPageWhileItProves(t *testing.T) {
	pr, pw := io.Pipe()
	var out strings.Builder
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args := []string{"prove", "--key", bundled("bn128/vault.zkey"), "--live-web", "127.0.0.1:0", "-q", "--witness", "-", "--proof", t.TempDir(), "--public", t.TempDir()}
	stdin, list := io.Pipe()
	code := make(chan int, 1)
	go func() {
		c := run(ctx, args, stdin, &out, pw)
		_ = pw.Close()
		code <- c
	}()
	buf := make([]byte, 4096)
	n, err := pr.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	_, url, ok := strings.Cut(string(buf[:n]), "snarkline: live: ")
	if !ok {
		t.Fatalf("it says %q", buf[:n])
	}
	go func() { _, _ = io.Copy(io.Discard, pr) }()
	req, err := http.NewRequestWithContext(ctx, "GET", strings.TrimSpace(url)+"events", nil)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	_ = list.Close() // no input: the run ends
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if c := <-code; c != codeInput {
		t.Errorf("code %d", c)
	}
	if s := string(text); !strings.Contains(s, `"phase":"ended"`) || !strings.Contains(s, `"closed":true`) {
		t.Errorf("the stream ends without the end: %q", s[max(len(s)-300, 0):])
	}
}

// otlp is a collector that keeps what it is sent.
type otlp struct {
	*httptest.Server
	mu   sync.Mutex
	sent []*coltrace.ExportTraceServiceRequest
}

func collector(t *testing.T, code int) *otlp {
	t.Helper()
	o := &otlp{}
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(body)
			if err != nil {
				t.Error(err)
				return
			}
			body = z
		}
		data, err := io.ReadAll(body)
		if err != nil || r.URL.Path != "/v1/traces" || r.Method != http.MethodPost {
			t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
		}
		req := new(coltrace.ExportTraceServiceRequest)
		if err := proto.Unmarshal(data, req); err != nil {
			t.Error(err)
		}
		o.mu.Lock()
		o.sent = append(o.sent, req)
		o.mu.Unlock()
		w.Header().Set("Content-Type", "application/x-protobuf")
		w.WriteHeader(code)
	}))
	t.Cleanup(o.Close)
	return o
}

// names counts the spans by name.
func (o *otlp) names() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := map[string]int{}
	for _, req := range o.sent {
		for _, r := range req.GetResourceSpans() {
			for _, s := range r.GetScopeSpans() {
				for _, span := range s.GetSpans() {
					out[span.GetName()]++
				}
			}
		}
	}
	return out
}

func (o *otlp) service() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, req := range o.sent {
		for _, r := range req.GetResourceSpans() {
			for _, kv := range r.GetResource().GetAttributes() {
				if kv.GetKey() == "service.name" {
					return kv.GetValue().GetStringValue()
				}
			}
		}
	}
	return ""
}
