package plan

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/snarkline/snarkline/alloc"
)

// SweepResult is what a sweep found. It is what pages and tables are made of,
// and its JSON holds all of it.
type SweepResult struct {
	Space   Space             `json:"space"`
	Meaning map[string]string `json:"meaning,omitempty"` // what all rows share
	Within  alloc.Amount      `json:"within"`            // the memory that a best setting may take; 0 in a space: any
	Rows    []Row             `json:"rows"`              // a row for each point, in the order of the space
	Ran     int               `json:"ran"`               // runs made by this call
	Known   int               `json:"known"`             // runs taken from the results file
	Elapsed time.Duration     `json:"elapsed_ns"`
}

// Row is a point and what came of it; either outcome may be missing.
type Row struct {
	Point
	Simulated *Outcome `json:"simulated,omitempty"`
	Measured  *Outcome `json:"measured,omitempty"`
}

// Outcome is the measured outcome where there is one, else the simulated one,
// else nil.
func (r *Row) Outcome() *Outcome {
	if r.Measured != nil {
		return r.Measured
	}
	return r.Simulated
}

// Progress tells how far a sweep is.
type Progress struct {
	Done, Total int           // runs, those known from the file among them
	Left        time.Duration // that the rest will take at the speed so far; 0 while unknown
	Simulated   bool
	Row         Row // the last one that changed
}

// SearchOption is an option of Sweep and Tune.
type SearchOption func(*sweeping)

// ResultsFile makes a sweep resumable: each outcome is appended to the file, and
// points that are in it are not run again. If the file is of a sweep with another
// Meaning, Sweep fails with a *MeaningError.
func ResultsFile(path string) SearchOption { return func(s *sweeping) { s.path = path } }

// Verify makes real runs of the best n simulated points: those of the Pareto
// front first, the fastest before the others, then the fastest of the rest. Tune
// makes one real run, of its choice.
func Verify(n int, real Runner) SearchOption {
	return func(s *sweeping) { s.verify, s.real = n, real }
}

// Within is the memory that a setting may take to count as one of the best; 0 in
// a space is no limit.
func Within(limit alloc.Amount) SearchOption { return func(s *sweeping) { s.within = limit } }

// Repeat makes every real run n times and keeps the one of median wall time,
// with the largest peak.
func Repeat(n int) SearchOption { return func(s *sweeping) { s.repeat = n } }

// MaxRuns is how many runs Tune makes at most to find its choice, where it starts
// and the least and the most of everything besides; 0 is 500.
func MaxRuns(n int) SearchOption { return func(s *sweeping) { s.most = n } }

// OnProgress calls fn after each run, one call at a time. Tune does not know the
// Total before its end, and gives 0.
func OnProgress(fn func(Progress)) SearchOption { return func(s *sweeping) { s.progress = fn } }

type sweeping struct {
	path     string
	verify   int
	real     Runner
	within   alloc.Amount
	repeat   int
	most     int
	progress func(Progress)

	out  *SweepResult
	file *results

	mu   sync.Mutex
	done int
}

// Sweep runs every point of the space. A point that fails is a row with a
// Failure; an error of the runner, of the results file, or the end of ctx end the
// sweep, and what was found by then is returned beside the error.
func Sweep(ctx context.Context, space Space, run Runner, opts ...SearchOption) (_ *SweepResult, err error) {
	s := &sweeping{repeat: 1}
	for _, o := range opts {
		o(s)
	}
	begin := time.Now()
	if err := s.begin(ctx, space, run); err != nil {
		return nil, fmt.Errorf("sweep: %w", err)
	}
	defer func() {
		s.out.Elapsed = time.Since(begin)
		if e := s.file.close(); err == nil && e != nil {
			err = fmt.Errorf("sweep: %w", e)
		}
	}()
	all := make([]int, len(s.out.Rows))
	for i := range all {
		all[i] = i
	}
	if err := s.phase(ctx, run, all); err != nil {
		return s.out, fmt.Errorf("sweep: %w", err)
	}
	if s.real == nil {
		return s.out, nil
	}
	if err := s.phase(ctx, s.real, s.out.best(s.verify)); err != nil {
		return s.out, fmt.Errorf("sweep: verify the best: %w", err)
	}
	return s.out, nil
}

// MaxPoints is how large the space of a sweep can be: its rows are kept in memory.
const MaxPoints = 1_000_000

func (s *sweeping) begin(ctx context.Context, space Space, run Runner) error {
	if n := space.Size(); n > MaxPoints {
		return fmt.Errorf("the space has %d points, more than %d", n, MaxPoints)
	}
	meaning, err := s.prepare(space, run)
	if err != nil {
		return err
	}
	s.out = &SweepResult{Space: space, Meaning: meaning, Within: s.within, Rows: make([]Row, space.Size())}
	for i := range s.out.Rows {
		if i%1024 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		p, err := space.At(i)
		if err != nil {
			return err
		}
		s.out.Rows[i].Point = p
	}
	s.file, err = openResults(s.path, meaning)
	return err
}

// prepare checks the space and the runners, and says what runs of them share.
func (s *sweeping) prepare(space Space, run Runner) (map[string]string, error) {
	if err := space.check(); err != nil {
		return nil, err
	}
	if s.real != nil && (!run.Simulates() || s.real.Simulates()) {
		return nil, fmt.Errorf("verifying takes a runner that simulates and one that does not")
	}
	if s.repeat < 1 {
		return nil, fmt.Errorf("repeat every run %d times: want 1 at least", s.repeat)
	}
	meaning := make(map[string]string)
	for _, r := range []Runner{run, s.real} {
		if r == nil {
			continue
		}
		if c, ok := r.(interface{ Check(Space) error }); ok {
			if err := c.Check(space); err != nil {
				return nil, err
			}
		}
		if m, ok := r.(interface{ Meaning() map[string]string }); ok {
			maps.Copy(meaning, m.Meaning())
		}
	}
	return meaning, nil
}

// phase makes the runs of the rows that the file does not know.
func (s *sweeping) phase(ctx context.Context, run Runner, rows []int) error {
	simulated := run.Simulates()
	var todo []int
	for _, i := range rows {
		if o := s.file.get(s.out.Rows[i].Point, simulated); o != nil {
			s.out.Rows[i].set(simulated, o)
			s.out.Known++
			continue
		}
		todo = append(todo, i)
	}
	s.done = len(rows) - len(todo)
	begin, known, total := time.Now(), s.done, len(rows)

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(parallel(run), max(len(todo), 1)) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range next {
				o, err := s.one(ctx, run, s.out.Rows[i].Point)
				if err == nil {
					err = s.note(i, simulated, o, func() Progress {
						ran := s.done - known
						left := time.Duration(float64(time.Since(begin)) / float64(ran) * float64(total-s.done))
						return Progress{Done: s.done, Total: total, Left: left, Simulated: simulated, Row: s.out.Rows[i]}
					})
				}
				if err != nil {
					cancel(err)
					return
				}
			}
		}()
	}
	seen := make(map[string]int) // points that mean the same run
	var same [][2]int
feed:
	for _, i := range todo {
		if ctx.Err() != nil { // a select would as soon feed on
			break
		}
		if first, ok := seen[s.out.Rows[i].Key()]; ok {
			same = append(same, [2]int{i, first})
			continue
		}
		seen[s.out.Rows[i].Key()] = i
		select {
		case next <- i:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	wg.Wait()
	for _, p := range same {
		if r := &s.out.Rows[p[1]]; simulated {
			s.out.Rows[p[0]].set(true, r.Simulated)
		} else {
			s.out.Rows[p[0]].set(false, r.Measured)
		}
	}
	return context.Cause(ctx)
}

func (s *sweeping) one(ctx context.Context, run Runner, p Point) (*Outcome, error) {
	n := s.repeat
	if run.Simulates() {
		n = 1
	}
	var list []*Outcome
	for range n {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		o, err := run.Run(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("run %s: %w", p.Key(), err)
		}
		list = append(list, o)
		if !o.OK() {
			break
		}
	}
	return middle(list), nil
}

// note puts an outcome into the row and the file.
func (s *sweeping) note(i int, simulated bool, o *Outcome, progress func() Progress) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.Rows[i].set(simulated, o)
	s.out.Ran++
	s.done++
	if err := s.file.put(s.out.Rows[i].Point, simulated, o); err != nil {
		return err
	}
	if s.progress != nil {
		s.progress(progress())
	}
	return nil
}

func (r *Row) set(simulated bool, o *Outcome) {
	if simulated {
		r.Simulated = o
	} else {
		r.Measured = o
	}
}

func parallel(run Runner) int {
	if p, ok := run.(interface{ Parallel() int }); ok {
		return max(p.Parallel(), 1)
	}
	return 1
}

// best are the rows whose simulated outcomes are worth a real run, n of them.
func (r *SweepResult) best(n int) []int {
	front := r.Pareto(0)
	rest := r.ranked()
	rest = slices.DeleteFunc(rest, func(i int) bool { return slices.Contains(front, i) })
	slices.SortStableFunc(front, func(a, b int) int {
		return cmp.Compare(r.Rows[b].Outcome().Throughput, r.Rows[a].Outcome().Throughput)
	})
	list := append(front, rest...)
	return list[:min(n, len(list))]
}
