package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/snarkline/snarkline/live/spans"
)

// The spans that wait to be sent at most, and how long sending may take: of one
// batch, and of all that is left at the end.
const (
	spanQueue   = 16 << 10
	spanTimeout = 5 * time.Second
)

// tracing sends spans to a collector.
type tracing struct {
	listener *spans.Listener
	provider *sdk.TracerProvider
	sender   *sender
}

// traceTo makes spans for the collector at a URL. It does not try to reach it.
func traceTo(ctx context.Context, to string) (*tracing, error) {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("want a URL such as http://127.0.0.1:4318")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces" // as OTEL_EXPORTER_OTLP_ENDPOINT is read
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(u.String()), otlptracehttp.WithTimeout(spanTimeout),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: 200 * time.Millisecond, MaxInterval: time.Second, MaxElapsedTime: spanTimeout}))
	if err != nil {
		return nil, err
	}
	res, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", "snarkline"), attribute.String("service.version", buildVersion().Version)), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, err
	}
	t := &tracing{sender: &sender{to: u.Redacted(), exporter: exporter}}
	t.provider = sdk.NewTracerProvider(sdk.WithResource(res), sdk.WithSpanProcessor(&counting{sender: t.sender}),
		sdk.WithBatcher(t.sender, sdk.WithMaxQueueSize(spanQueue), sdk.WithMaxExportBatchSize(1024), sdk.WithBatchTimeout(time.Second), sdk.WithExportTimeout(spanTimeout)))
	t.listener = spans.New(t.provider)
	return t, nil
}

// close sends what is left. The error says how many spans did not arrive.
func (t *tracing) close(ctx context.Context) error {
	t.listener.Close()
	ctx, cancel := context.WithTimeout(ctx, spanTimeout)
	defer cancel()
	err := t.provider.Shutdown(ctx)
	return t.sender.outcome(err)
}

// sender is an exporter that keeps its errors to itself, and counts: the SDK
// would print them on its own.
type sender struct {
	to       string
	exporter sdk.SpanExporter

	mu          sync.Mutex
	ended, sent int
	err         error // the first
}

// ExportSpans sends a batch.
func (s *sender) ExportSpans(ctx context.Context, batch []sdk.ReadOnlySpan) error {
	err := s.exporter.ExportSpans(ctx, batch)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.sent += len(batch)
	} else if s.err == nil {
		s.err = err
	}
	return nil
}

// Shutdown ends the exporter.
func (s *sender) Shutdown(ctx context.Context) error { return s.exporter.Shutdown(ctx) }

func (s *sender) outcome(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		err = s.err
	}
	lost := s.ended - s.sent
	switch {
	case lost > 0 && err != nil:
		return fmt.Errorf("%d of %d spans did not get to %s: %s", lost, s.ended, s.to, strings.TrimSpace(err.Error()))
	case lost > 0:
		return fmt.Errorf("%d of %d spans did not get to %s: there were more than it took", lost, s.ended, s.to)
	}
	return err
}

// counting counts the spans that have ended.
type counting struct{ sender *sender }

// OnStart does nothing.
func (*counting) OnStart(context.Context, sdk.ReadWriteSpan) {}

// OnEnd counts.
func (c *counting) OnEnd(sdk.ReadOnlySpan) {
	c.sender.mu.Lock()
	c.sender.ended++
	c.sender.mu.Unlock()
}

// Shutdown does nothing.
func (*counting) Shutdown(context.Context) error { return nil }

// ForceFlush does nothing.
func (*counting) ForceFlush(context.Context) error { return nil }
