package cuda

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize"
)

// method is what an operation is counted as.
type method int

const (
	mQuotient method = iota
	mSumH
	mSplit
	mOnes
	mOthers
	mMSM1
	mMSM2
	mKeep
	mEvaluate
	nbMethods
)

var methodNames = [nbMethods]string{"quotient", "sum of h", "split", "sums of ones", "sums of others", "msm g1", "msm g2", "keep", "evaluate"}

type stats struct {
	up, down atomic.Int64
	unpacked atomic.Int64 // bytes of what went up packed, before
	packed   atomic.Int64 // and after; up has these
	refused  atomic.Int64 // registrations
	again    atomic.Int64 // attempts

	uploads  atomic.Int64 // vectors that the uploader brought
	vectors  atomic.Int64 // their bytes, as they are
	bringing atomic.Int64 // ns that it worked on them
	awaited  atomic.Int64 // ns that jobs waited for them
	fastest  atomic.Int64 // bytes a second of the fastest

	busy busy

	mu    sync.Mutex
	calls [nbMethods]int64
	wait  [nbMethods]time.Duration
	ms    [nbMethods]float64
	most  [nbMethods]float64
}

// brought counts a vector of n bytes that the uploader worked on for d.
func (s *stats) brought(n int64, d time.Duration) {
	s.uploads.Add(1)
	s.vectors.Add(n)
	s.bringing.Add(int64(d))
	rate := int64(float64(n) / max(d, 1).Seconds())
	for old := s.fastest.Load(); rate > old && !s.fastest.CompareAndSwap(old, rate); old = s.fastest.Load() {
	}
}

func (s *stats) add(m method, ms float64) {
	s.mu.Lock()
	s.calls[m]++
	s.ms[m] += ms
	s.most[m] = max(s.most[m], ms)
	s.mu.Unlock()
}

// waited counts what an operation waited for memory and a worker.
func (s *stats) waited(m method, d time.Duration) {
	s.mu.Lock()
	s.wait[m] += d
	s.mu.Unlock()
}

// Stats is what an Engine has done since it was made.
type Stats struct {
	Device   string        `json:"device"`
	Up       int64         `json:"up"`       // bytes from the host to the card
	Down     int64         `json:"down"`     // bytes back
	Unpacked int64         `json:"unpacked"` // bytes of scalars that went to the card packed, before they were
	Packed   int64         `json:"packed"`   // and after; of Up
	Resident int64         `json:"resident"` // bytes of keys on the card now
	Tables   int64         `json:"tables"`   // bytes of the transforms' tables on the card now
	Refused  int64         `json:"refused"`  // registrations of host memory that were refused
	Again    int64         `json:"again"`    // attempts at operations that failed and were made again
	Resets   int           `json:"resets"`   // of the card
	Uploads  UploadStats   `json:"uploads"`
	Methods  []MethodStats `json:"methods"` // those that were called
	// BusyMS is the time in which operations were under way on the card, in which
	// they may have waited for uploads; where several were, once.
	BusyMS float64 `json:"busyMS"`

	// Lost is why the card is lost to this process; empty while it is not.
	Lost string `json:"lost,omitempty"`
}

// UploadStats are the vectors that were brought while operations ran.
type UploadStats struct {
	Vectors int64   `json:"vectors"`
	Bytes   int64   `json:"bytes"`  // of them, before packing
	BusyMS  float64 `json:"busyMS"` // that the host worked on them, one after another
	WaitMS  float64 `json:"waitMS"` // that jobs waited for them
	// Fastest is the bytes a second, before packing, of the vector that was brought
	// fastest. The mean also has the first ones, which wait for kernels to be loaded.
	Fastest int64 `json:"fastest"`
}

// MethodStats is the time that operations of a kind took on the card, from the
// first thing queued to the last one done.
type MethodStats struct {
	Name    string  `json:"name"`
	Calls   int64   `json:"calls"`
	TotalMS float64 `json:"totalMS"`
	MaxMS   float64 `json:"maxMS"`
	WaitMS  float64 `json:"waitMS"` // that they waited for memory and a stream, in all
}

// Stats is the state now.
func (e *Engine) Stats() Stats {
	out := Stats{
		Device: e.card.name, Up: e.stats.up.Load(), Down: e.stats.down.Load(),
		Unpacked: e.stats.unpacked.Load(), Packed: e.stats.packed.Load(), Refused: e.stats.refused.Load(), Again: e.stats.again.Load(),
		Resident: e.keys.bytes(), Tables: e.tables.bytes(), Resets: e.card.Resets(), BusyMS: e.stats.busy.ms(),
	}
	ms := func(n int64) float64 { return float64(n) / float64(time.Millisecond) }
	out.Uploads = UploadStats{
		Vectors: e.stats.uploads.Load(), Bytes: e.stats.vectors.Load(),
		BusyMS: ms(e.stats.bringing.Load()), WaitMS: ms(e.stats.awaited.Load()), Fastest: e.stats.fastest.Load(),
	}
	if err := e.Lost(); err != nil {
		out.Lost = err.Error()
	}
	e.stats.mu.Lock()
	defer e.stats.mu.Unlock()
	for m := range nbMethods {
		if e.stats.calls[m] > 0 {
			out.Methods = append(out.Methods, MethodStats{Name: methodNames[m], Calls: e.stats.calls[m], TotalMS: e.stats.ms[m], MaxMS: e.stats.most[m], WaitMS: ms(int64(e.stats.wait[m]))})
		}
	}
	return out
}

// String is the statistics for people, one line a kind of operation.
func (s Stats) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s to the card, %s back, %s of keys and %s of tables on it", s.Device,
		humanize.IBytes(uint64(s.Up)), humanize.IBytes(uint64(s.Down)), humanize.IBytes(uint64(s.Resident)), humanize.IBytes(uint64(s.Tables)))
	if s.Unpacked > 0 {
		fmt.Fprintf(&b, "; %s of scalars packed to %s", humanize.IBytes(uint64(s.Unpacked)), humanize.IBytes(uint64(s.Packed)))
	}
	if s.Again > 0 {
		fmt.Fprintf(&b, ", %d operations tried again", s.Again)
	}
	if s.Resets > 0 {
		fmt.Fprintf(&b, ", reset %d times", s.Resets)
	}
	if s.Lost != "" {
		fmt.Fprintf(&b, "\n  %s", s.Lost)
	}
	if u := s.Uploads; u.Vectors > 0 {
		n := float64(u.Vectors)
		fmt.Fprintf(&b, "\n  %-15s %5d × %.3f ms, %.1f GB/s; jobs waited %.3f ms for each", "uploads", u.Vectors, u.BusyMS/n, float64(u.Bytes)/max(u.BusyMS, 1e-3)/1e6, u.WaitMS/n)
	}
	for _, m := range s.Methods {
		n := float64(m.Calls)
		fmt.Fprintf(&b, "\n  %-15s %5d × %.3f ms, at most %.3f; %.3f ms in the queue", m.Name, m.Calls, m.TotalMS/n, m.MaxMS, m.WaitMS/n)
	}
	return b.String()
}

// Description is an engine and its card, for people.
type Description struct {
	Device   string `json:"device"`   // "cuda:0"
	Card     string `json:"card"`     // "NVIDIA H200"
	Free     int64  `json:"free"`     // bytes that nobody has
	Total    int64  `json:"total"`    // bytes
	Resident int64  `json:"resident"` // bytes of keys on the card
	Streams  int    `json:"streams"`
	Tier     string `json:"tier"` // where the last job's vectors were put; empty before the first
}

// Describe says what the engine is on, and how much room there is.
func (e *Engine) Describe() (Description, error) {
	info := e.card.Info()
	d := Description{Device: e.card.name, Card: info.Name, Total: info.Total, Resident: e.keys.bytes(), Streams: e.o.streams}
	if t := e.lastTier.Load(); t != nil {
		d.Tier = *t
	}
	var err error
	if d.Free, d.Total, err = e.card.Memory(); err != nil {
		return d, fmt.Errorf("describe %s: %w", e.card.name, err)
	}
	return d, nil
}

// String is one line: "cuda:0: NVIDIA H200, 137 GiB of 140 GiB free, 12 GiB of keys on it".
func (d Description) String() string {
	s := fmt.Sprintf("%s: %s, %s of %s free", d.Device, d.Card, humanize.IBytes(uint64(d.Free)), humanize.IBytes(uint64(d.Total)))
	if d.Resident > 0 {
		s += fmt.Sprintf(", %s of keys on it", humanize.IBytes(uint64(d.Resident)))
	}
	if d.Tier != "" {
		s += "; " + d.Tier
	}
	return s
}
