package pipeline

import (
	"context"
	"errors"
	"testing"
)

// An item whose sinks were done with it without an error counts as answered, if
// the run was stopped meanwhile or not; what the stop ended counts as stopped.
func TestStoppedCounts(t *testing.T) {
	cause := errors.New("enough")
	for _, c := range []struct {
		name                   string
		twoSinks               bool  // the other one does not get to its end
		fails                  error // of the sink
		items, failed, stopped int64
	}{
		{"sink done", false, nil, 1, 0, 1},
		{"one sink of two done", true, nil, 0, 0, 2},
		{"sink heard of it", false, context.Canceled, 0, 0, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			clean(t)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			g := New("stopped")
			src := FromSlice(g, count0(2), intKey)
			held, at := make(chan struct{}), make(chan struct{})
			// The second item is held up until the stop ends it.
			via := Via(src, NewStage("hold", func(ctx context.Context, n int) (int, error) {
				if n == 0 {
					return n, nil
				}
				close(held)
				<-ctx.Done()
				return 0, ctx.Err()
			}), Workers(2))
			ToFunc(via, func(ctx context.Context, _ Key, _ int) error {
				close(at)
				<-ctx.Done()
				return c.fails
			})
			if c.twoSinks {
				ToFunc(via, func(ctx context.Context, _ Key, _ int) error {
					<-ctx.Done()
					return ctx.Err()
				})
			}
			go func() {
				<-held
				<-at
				cancel(cause)
			}()
			rep, err := runFor(t, g, ctx)
			if !errors.Is(err, cause) {
				t.Fatal(err)
			}
			if rep.Items != c.items || rep.Failed != c.failed || rep.Stopped != c.stopped {
				t.Errorf("%d answered, %d failed, %d stopped, want %d, %d, %d", rep.Items, rep.Failed, rep.Stopped, c.items, c.failed, c.stopped)
			}
		})
	}
}

// Under StopAll the item whose error stopped the run is the one that failed.
func TestStopAllCounts(t *testing.T) {
	clean(t)
	g := New("first error")
	at := make(chan struct{})
	src := FromSlice(g, count0(2), intKey)
	ToFunc(src, func(ctx context.Context, _ Key, n int) error {
		if n == 0 {
			close(at)
			<-ctx.Done() // the file is written all the same
			return nil
		}
		<-at
		return errOdd
	}, Workers(2))
	rep, err := runFor(t, g, t.Context())
	if !errors.Is(err, errOdd) {
		t.Fatal(err)
	}
	if rep.Items != 1 || rep.Failed != 1 || rep.Stopped != 0 {
		t.Errorf("%d answered, %d failed, %d stopped", rep.Items, rep.Failed, rep.Stopped)
	}
}
