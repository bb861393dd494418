package progress

import (
	"fmt"
	"io"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// bar is the display on a terminal.
type bar struct {
	container *mpb.Progress
	bar       *mpb.Bar
	quit      chan struct{}
	done      chan struct{}
}

func newBar(m *Meter) (*bar, io.Writer) {
	p := mpb.New(mpb.WithOutput(m.opt.Out), mpb.WithAutoRefresh(), mpb.WithWidth(64), mpb.WithRefreshRate(100*time.Millisecond))
	count := func(decor.Statistics) string {
		done, total := m.counts()
		if total < 0 {
			return fmt.Sprintf("%d %s ", done, m.opt.Unit)
		}
		return fmt.Sprintf("%d/%d %s ", done, total, m.opt.Unit)
	}
	b := &bar{container: p, quit: make(chan struct{}), done: make(chan struct{})}
	b.bar = p.New(int64(max(m.opt.Total, 0)), mpb.BarStyle().Lbound("[").Filler("=").Tip(">").Padding(" ").Rbound("]"),
		mpb.BarWidth(24),
		mpb.PrependDecorators(decor.Any(count)),
		mpb.AppendDecorators(
			decor.Elapsed(decor.ET_STYLE_GO),
			decor.Any(func(decor.Statistics) string {
				if s := m.status(); s != "" {
					return ", " + s
				}
				return ""
			}),
		))
	go func() {
		defer close(b.done)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			b.update(m)
			select {
			case <-b.quit:
				b.update(m)
				return
			case <-tick.C:
			}
		}
	}()
	return b, p
}

// update moves the bar, but never completes it: stop does, so that messages
// can still be written above it.
func (b *bar) update(m *Meter) {
	done, total := m.counts()
	b.bar.SetTotal(int64(max(total, done)+1), false)
	b.bar.SetCurrent(int64(done))
}

func (b *bar) stop() {
	close(b.quit)
	<-b.done
	b.bar.Abort(false)
	b.container.Wait()
}
