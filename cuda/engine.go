package cuda

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cuda/kernels"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

// Host is what an Engine leaves to another arithmetic of the same curve, on the
// host. cpu.Engine is one.
type Host interface {
	Curve() curve.ID
	Evaluate(ctx context.Context, m curve.Matrix, w, out []curve.Scalar) error
	Hadamard(ctx context.Context, a, b, out []curve.Scalar) error
	Unsatisfied(ctx context.Context, a, b, c []curve.Scalar) (int, error)
	Classify(ctx context.Context, w []curve.Scalar, out []curve.Class) (curve.Counts, error)
	SumG1(ctx context.Context, sc *alloc.Scope, q curve.Query, classes []curve.Class) (curve.G1, error)
	Tail(ctx context.Context, q curve.Query, classes []curve.Class, out []uint32) (int, error)
	MSMScratch(g curve.Group, n int) alloc.Amount
}

// Engine is the arithmetic of one curve on one card. It is safe for concurrent
// use: operations run side by side on as many workers as there are, and wait
// for one another beyond that. Close it after the last call has returned.
type Engine struct {
	host Host
	card *Card
	mine bool // the card is this engine's, made by New
	id   curve.ID
	one  curve.Scalar
	o    options
	set  *kernels.Set

	packer *kernels.Packer

	pool pool
	up   *uploader // of evaluations, which jobs bring ahead of time
	wup  *uploader // of witnesses, which are waited for and do not queue behind them

	tables tableCache
	keys   keyCache
	wits   witnessCache
	stats  stats
	plans  msmPlans

	lastTier atomic.Pointer[string]

	mu     sync.Mutex
	closed bool
}

// New makes the arithmetic of a curve on a card of Open's. Any other device is
// taken as it is; it then belongs to this engine alone until Close. host must be
// of the same curve.
func New(dev gpu.Device, id curve.ID, host Host, opts ...Option) (*Engine, error) {
	if !id.Valid() {
		return nil, fmt.Errorf("arithmetic on a device: %v is not a known curve", id)
	}
	if host == nil || host.Curve() != id {
		return nil, fmt.Errorf("arithmetic on a device: the host's is not that of %v", id)
	}
	e := &Engine{host: host, id: id, one: oneOf(id), o: defaults()}
	for _, o := range opts {
		o(&e.o)
	}
	if err := e.o.check(); err != nil {
		return nil, fmt.Errorf("arithmetic on a device: %w", err)
	}
	card, ok := dev.(*Card)
	if !ok {
		providers, err := gpu.Use(dev)
		if err != nil {
			return nil, err
		}
		card = newCard(dev, gpu.CardOptions{Providers: providers})
		e.mine, card.providers = true, providers
	}
	e.card = card
	if err := e.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("arithmetic on %s: %w", card.name, err), e.Close())
	}
	return e, nil
}

func (e *Engine) start() (err error) {
	if err := e.card.Lost(); err != nil {
		return err
	}
	if e.o.margin >= 0 {
		e.card.mem.setMargin(e.o.margin)
	}
	if err := e.card.plan(); err != nil {
		return err
	}
	e.set, e.packer = kernels.NewSet(e.card, e.id), kernels.NewPacker(e.id)
	e.tables.e, e.keys.e, e.wits.e = e, e, e
	if err := e.pool.start(e, e.o.streams); err != nil {
		return err
	}
	if e.up, err = newUploader(e); err == nil {
		e.wup, err = newUploader(e)
	}
	if err != nil {
		return err
	}
	e.card.join(e)
	return nil
}

// Close gives everything back that the engine has. Helds of its making are of
// no use then. A second Close does nothing.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	e.mu.Unlock()
	var all []error
	if e.wup != nil {
		all = append(all, e.wup.close())
	}
	if e.up != nil {
		all = append(all, e.up.close())
	}
	all = append(all, e.pool.close())
	e.stats.busy.mu.Lock()
	e.stats.busy.end()
	e.stats.busy.mu.Unlock()
	e.forget()
	e.card.leave(e)
	if isSticky(e.card.Sticky()) {
		// Nobody has met the error yet. What it holds goes with the context, and
		// a card that is lost by it is no matter of who wants no more of it.
		_ = e.card.revive()
	}
	if e.set != nil {
		all = append(all, e.set.Close())
	}
	if e.mine {
		e.card.Reaper.Flush()
		all = append(all, e.card.end(), e.card.providers.Restore())
	}
	return errors.Join(all...)
}

// Flush waits until nothing is under way that nobody waits for: copies of jobs
// that have failed, say. What they held is free then.
func (e *Engine) Flush() {
	e.up.flush()
	e.wup.flush()
}

// forget gives up all tables and points on the card. They are made again when
// they are next needed.
func (e *Engine) forget() {
	e.tables.clear()
	e.keys.clear()
}

// giveUp frees about n bytes of tables and points that nobody uses.
func (e *Engine) giveUp(n int64) int64 {
	freed := e.keys.evict(n)
	if freed < n {
		freed += e.tables.evict(n - freed)
	}
	return freed
}

// Name is "cuda:0".
func (e *Engine) Name() string { return e.card.name }

// Curve is the curve whose arithmetic this is.
func (e *Engine) Curve() curve.ID { return e.id }

// Card is the card that the engine is on.
func (e *Engine) Card() *Card { return e.card }

// Evaluate is the host's.
func (e *Engine) Evaluate(ctx context.Context, m curve.Matrix, w, out []curve.Scalar) error {
	return e.host.Evaluate(ctx, m, w, out)
}

// Hadamard is the host's.
func (e *Engine) Hadamard(ctx context.Context, a, b, out []curve.Scalar) error {
	return e.host.Hadamard(ctx, a, b, out)
}

// Unsatisfied is the host's.
func (e *Engine) Unsatisfied(ctx context.Context, a, b, c []curve.Scalar) (int, error) {
	return e.host.Unsatisfied(ctx, a, b, c)
}

// Classify is the host's.
func (e *Engine) Classify(ctx context.Context, w []curve.Scalar, out []curve.Class) (curve.Counts, error) {
	return e.host.Classify(ctx, w, out)
}

// SumG1 is the host's. SumOnes runs on the device.
func (e *Engine) SumG1(ctx context.Context, sc *alloc.Scope, q curve.Query, classes []curve.Class) (curve.G1, error) {
	return e.host.SumG1(ctx, sc, q, classes)
}

// Tail is the host's.
func (e *Engine) Tail(ctx context.Context, q curve.Query, classes []curve.Class, out []uint32) (int, error) {
	return e.host.Tail(ctx, q, classes, out)
}

// oneOf is 1 in Montgomery form: 2^256 modulo the order of the groups.
func oneOf(id curve.ID) (s curve.Scalar) {
	one := montgomeryOne(id)
	for i, w := range one.Bits() {
		s[i] = uint64(w)
	}
	return s
}

// addressOf is where a slice begins.
func addressOf[T any](s []T) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(s))) }
