package ifma

// number is what the code below asks of a gnark-crypto field element.
type number[E any] interface {
	*E
	Mul(x, y *E) *E
	Square(x *E) *E
	Double(x *E) *E
	Add(x, y *E) *E
	Inverse(x *E) *E
	IsZero() bool
	SetOne() *E
}

// lanes works on single lanes of coordinates, by way of gnark-crypto.
type lanes interface {
	// invert replaces the eight elements of v by their inverses and reports
	// whether none was zero; if one was, v is left alone.
	invert(v []uint64) bool
	isZero(v []uint64, lane int) bool
	setOne(v []uint64, lane int)
	// tangent sets dx = 2y and dy = 3x² in a lane: then dy/dx is the slope of
	// the doubling. It reports false, and sets nothing, when y is zero.
	tangent(dx, dy, x, y []uint64, lane int) bool
}

// laneOps is lanes over gnark-crypto's element type E.
type laneOps[E any, P number[E]] struct {
	get func(v []uint64, lane int) E
	put func(v []uint64, lane int, e E)
}

func (o *laneOps[E, P]) invert(v []uint64) bool {
	var x, pre [8]E
	var acc E
	P(&acc).SetOne()
	for i := range x {
		x[i] = o.get(v, i)
		pre[i] = acc
		P(&acc).Mul(&acc, &x[i])
	}
	if P(&acc).IsZero() {
		return false
	}
	P(&acc).Inverse(&acc)
	for i := 7; i >= 0; i-- {
		P(&pre[i]).Mul(&pre[i], &acc)
		P(&acc).Mul(&acc, &x[i])
		o.put(v, i, pre[i])
	}
	return true
}

func (o *laneOps[E, P]) isZero(v []uint64, lane int) bool {
	e := o.get(v, lane)
	return P(&e).IsZero()
}

func (o *laneOps[E, P]) setOne(v []uint64, lane int) {
	var e E
	P(&e).SetOne()
	o.put(v, lane, e)
}

func (o *laneOps[E, P]) tangent(dx, dy, x, y []uint64, lane int) bool {
	ey := o.get(y, lane)
	if P(&ey).IsZero() {
		return false
	}
	ex := o.get(x, lane)
	var t E
	P(&ex).Square(&ex)
	P(&t).Double(&ex)
	P(&ex).Add(&ex, &t)
	P(&ey).Double(&ey)
	o.put(dx, lane, ey)
	o.put(dy, lane, ex)
	return true
}
