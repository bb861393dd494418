package meter

import (
	"sync"
	"time"

	"github.com/snarkline/snarkline/alloc"
)

// AnonWatch samples the anonymous resident memory of the process: the kernel
// keeps a peak of all that is resident, but not of this part.
type AnonWatch struct {
	end  chan struct{}
	wg   sync.WaitGroup
	peak int64
	err  error
}

// WatchAnon begins to sample, every other millisecond.
func WatchAnon() *AnonWatch {
	w := &AnonWatch{end: make(chan struct{})}
	w.wg.Add(1)
	go func() {
		defer w.wg.Done()
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			r, err := alloc.ResidentNow()
			if err != nil {
				w.err = err
				return
			}
			w.peak = max(w.peak, r.Anon)
			select {
			case <-w.end:
				return
			case <-tick.C:
			}
		}
	}()
	return w
}

// Stop ends the sampling and gives the largest sample, in bytes.
func (w *AnonWatch) Stop() (int64, error) {
	close(w.end)
	w.wg.Wait()
	return w.peak, w.err
}
