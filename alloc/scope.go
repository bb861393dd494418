package alloc

import "context"

// Scope says who allocates, in which space, and against which reservation. It
// does not change, so any number of goroutines may share one. A nil *Scope is
// the unowned scope in host memory.
type Scope struct {
	tracker *Tracker
	stage   Stage
	space   Space
	res     *Reservation
	tag     uint64
}

var unowned = &Scope{tracker: std}

// NewScope makes a scope. r may be nil: then nothing but the machine bounds
// what is allocated in the scope.
func NewScope(stage Stage, space Space, r *Reservation) *Scope {
	return &Scope{tracker: std, stage: stage, space: space, res: r}
}

func (s *Scope) orUnowned() *Scope {
	if s == nil {
		return unowned
	}
	return s
}

// In is the same scope in another space. The reservation is kept: it covers
// several spaces.
func (s *Scope) In(space Space) *Scope {
	t := *s.orUnowned()
	t.space = space
	return &t
}

// Tagged is the same scope with a tag, which observers see in what is made in the
// scope: it says for which call of a stage that was, say. See [Tracker.NextTag].
func (s *Scope) Tagged(tag uint64) *Scope {
	t := *s.orUnowned()
	t.tag = tag
	return &t
}

// Tag is what Tagged was given; 0 if it was not called.
func (s *Scope) Tag() uint64 { return s.orUnowned().tag }

// Stage is who allocates.
func (s *Scope) Stage() Stage { return s.orUnowned().stage }

// Space is where.
func (s *Scope) Space() Space { return s.orUnowned().space }

// Reservation is what bounds the scope; nil if nothing does.
func (s *Scope) Reservation() *Reservation { return s.orUnowned().res }

type scopeKey struct{}

// WithScope is ctx carrying s.
func WithScope(ctx context.Context, s *Scope) context.Context {
	return context.WithValue(ctx, scopeKey{}, s)
}

// ScopeOf is the scope that ctx carries, or the unowned scope in host memory;
// never nil.
func ScopeOf(ctx context.Context) *Scope {
	if s, ok := ctx.Value(scopeKey{}).(*Scope); ok && s != nil {
		return s
	}
	return unowned
}
