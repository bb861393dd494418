package ifma

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/snarkline/snarkline/cpu/internal/par"
	"github.com/snarkline/snarkline/curve"
)

// Order says which side of a transform is in bit-reversed order.
type Order uint8

// The orders, after the input: gnark-crypto's DIF and DIT.
const (
	Natural  Order = 1 // natural in, reversed out
	Reversed Order = 2 // reversed in, natural out
)

// NTT holds the tables of the transforms over one domain. It does not change
// after it was made; any number of goroutines may use it.
type NTT struct {
	shape
	k *nttKernels

	plain, coset, inverse *nttTables

	// What the results of an inverse transform are multiplied by: 1/n, and on
	// a coset element i also by shift^−i, the product of two factors.
	scale    []byte // 1/n
	byPlace  []byte // reversed out: by place in the row, C entries in blocks' order
	byRow    []byte // and by row, R entries
	byColumn []byte // natural out: by column, C entries
	byStep   []byte // and by row, R elements
}

// NTTBytes is the size in bytes of the memory for the tables of a transform of
// 2^log elements; it grows with the square root of the size.
func NTTBytes(log int) int {
	s := shapeOf(log)
	return 3*s.tableBytes() + frVec*(1+vecs(s.rows())+2*vecs(s.cols())) + align(40*(s.rows()+2)) + 64
}

// NewNTT makes the tables of the transforms over d in mem, which has
// NTTBytes(d.Log) and belongs to the NTT from then on. It returns nil and no
// error where the kernels cannot run or d.Log is not from MinNTT to MaxNTT.
func NewNTT(id curve.ID, d curve.Domain, mem []byte) (*NTT, error) {
	if !Available() || d.Log < MinNTT || d.Log > MaxNTT {
		return nil, nil
	}
	var f frField
	t := &NTT{shape: shapeOf(d.Log)}
	switch id {
	case curve.BLS12381:
		t.k, f = nttKernels381(), field381()
	case curve.BN254:
		t.k, f = nttKernels254(), field254()
	default:
		return nil, fmt.Errorf("transform tables: %v", id)
	}
	if need := NTTBytes(d.Log); len(mem) < need {
		return nil, fmt.Errorf("transform tables: memory of %d bytes, needs %d", len(mem), need)
	}
	s := newScratch(mem)
	unit := f.small(1)
	b := newTableBuilder(t.shape, f, d.Generator)
	if b.root[0] != unit || b.root[1] == unit {
		return nil, fmt.Errorf("transform tables: the generator is not of order 2^%d", d.Log)
	}
	t.plain, t.coset = b.build(unit, s), b.build(d.Shift, s)
	t.inverse = newTableBuilder(t.shape, f, f.inverse(d.Generator)).build(unit, s)

	r, c := t.rows(), t.cols()
	t.scale, t.byRow = s.bytes(frVec), s.bytes(frVec*vecs(r))
	t.byPlace, t.byColumn, t.byStep = s.bytes(frVec*vecs(c)), s.bytes(frVec*vecs(c)), s.bytes(40*(r+2))
	for _, m := range [][]byte{t.scale, t.byRow, t.byPlace, t.byColumn, t.byStep} {
		clear(m)
	}
	perN, u := f.inverse(f.small(uint64(1)<<d.Log)), f.inverse(d.Shift)
	putEntry(t.scale, 0, f.limbs(perN, b.sixteen))
	b.powers(perN, u, r, func(j int, l [5]uint64) { putEntry(t.byRow, reverse(j, t.l1), l) })
	b.powers(unit, f.squares(u, t.l1), c, func(j int, l [5]uint64) {
		i := reverse(j, t.l2) // element 64g + 8e + o is in lane e of vector 8g + o
		putEntry(t.byPlace, i&^63+8*(i%8)+i%64/8, l)
	})
	b.powers(unit, u, c, func(j int, l [5]uint64) { putEntry(t.byColumn, j, l) })
	b.powers(perN, f.squares(u, t.l2), r, func(j int, l [5]uint64) { putElement(t.byStep, j, l) })
	return t, nil
}

// NTTScratch is the size in bytes of the scratch of a transform of 2^log
// elements by so many workers.
func NTTScratch(log, workers int) int {
	return max(workers, 1)*shapeOf(log).workerBytes() + 64
}

// lines is the longest of a column and a row, in vectors.
func (s shape) lines() int { return max(s.rows(), s.cols()/8) }

func (s shape) workerBytes() int {
	return frVec * (2*(s.lines()+2) + 2*(max(s.l1, s.l2)+1) + 2)
}

// Forward replaces a, 2^Log elements in Montgomery form, by the values of the
// polynomial with these coefficients on the domain or, when coset, on its
// coset.
func (t *NTT) Forward(ctx context.Context, a []curve.Scalar, in Order, coset bool, workers int, buf []byte) error {
	tab := t.plain
	if coset {
		tab = t.coset
	}
	return t.transform(ctx, a, in, tab, post{}, workers, buf)
}

// Inverse undoes Forward: from values to coefficients.
func (t *NTT) Inverse(ctx context.Context, a []curve.Scalar, in Order, coset bool, workers int, buf []byte) error {
	return t.transform(ctx, a, in, t.inverse, post{scale: true, coset: coset}, workers, buf)
}

// post is what is done to the results.
type post struct{ scale, coset bool }

func (t *NTT) transform(ctx context.Context, a []curve.Scalar, in Order, tab *nttTables, p post, workers int, buf []byte) error {
	workers = max(workers, 1)
	if len(a) != 1<<t.log() {
		return fmt.Errorf("transform of 2^%d: %d elements", t.log(), len(a))
	}
	if need := NTTScratch(t.log(), workers); len(buf) < need {
		return fmt.Errorf("transform of 2^%d: scratch of %d bytes, needs %d", t.log(), len(buf), need)
	}
	s := newScratch(buf)
	w := make([]*nttWorker, workers)
	for i := range w {
		w[i] = t.newWorker(tab, p, a, s)
	}
	first, second := (*nttWorker).splitColumns, (*nttWorker).splitRows
	n1, n2 := t.cols()/16, (t.rows()+7)/8
	if in == Reversed {
		first, second = (*nttWorker).joinRows, (*nttWorker).joinColumns
		n1, n2 = n2, n1
	}
	if err := each(ctx, w, n1, first); err != nil {
		return fmt.Errorf("transform of 2^%d: %w", t.log(), err)
	}
	if err := each(ctx, w, n2, second); err != nil {
		return fmt.Errorf("transform of 2^%d: %w", t.log(), err)
	}
	return nil
}

// each runs f on the numbers below n, shared out among the workers.
func each(ctx context.Context, w []*nttWorker, n int, f func(w *nttWorker, i int)) error {
	var next atomic.Int64
	return par.Run(min(len(w), n), func(j int) error {
		for {
			i := int(next.Add(1)) - 1
			if i >= n {
				return nil
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			f(w[j], i)
		}
	})
}

// nttWorker is what one goroutine works in.
type nttWorker struct {
	*NTT
	tab  *nttTables
	post post
	a    []byte

	v     []byte // a column or a row
	w     []byte // its twiddles
	pow   []byte // two vectors a level
	mixed []byte // two vectors
}

func (t *NTT) newWorker(tab *nttTables, p post, a []curve.Scalar, s *scratch) *nttWorker {
	return &nttWorker{
		NTT: t, tab: tab, post: p, a: curve.Bytes(a),
		v: s.bytes(frVec * (t.lines() + 2)), w: s.bytes(frVec * (t.lines() + 2)),
		pow: s.bytes(frVec * 2 * (max(t.l1, t.l2) + 1)), mixed: s.bytes(frVec * 2),
	}
}

// vec is vector i of a table.
func vec(t []byte, i int) *byte { return &t[frVec*i] }

// entry is entry i of a table in vectors.
func entry(t []byte, i int) *byte { return &t[frVec*(i/8)+8*(i%8)] }

// split does all levels of splitting on n vectors.
func (w *nttWorker) split(table []byte, n, levels int) {
	h, q := 1, n/4
	if levels%2 == 1 {
		w.k.splitR2(&w.v[0], entry(table, 1), n/2)
		h, q = 2, n/8
	}
	for ; q > 0; h, q = 4*h, q/4 {
		w.k.splitR4(&w.v[0], &table[0], h, h, q)
	}
}

// join does all levels of joining on n vectors.
func (w *nttWorker) join(table []byte, n int) {
	q := 1
	for ; 4*q <= n; q *= 4 {
		w.k.joinR4(&w.v[0], &table[0], n/(4*q), q)
	}
	if q < n {
		w.k.joinR2(&w.v[0], &table[0], q)
	}
}

// splitColumns is the first pass of splitting, on 16 columns.
func (w *nttWorker) splitColumns(i int) {
	r, step := w.rows(), 32*w.cols()
	for c := 2 * i; c < 2*i+2; c++ {
		w.k.loadElements(&w.v[0], &w.a[256*c], r, step)
		w.split(w.tab.splitCol, r, w.l1)
		w.k.storeWords(&w.v[0], &w.a[256*c], r, step)
	}
}

// splitRows is the second pass of splitting, on 8 rows.
func (w *nttWorker) splitRows(i int) {
	n, step := w.cols()/8, 32*w.cols()
	w.squares(&w.tab.gamma[frVec*i], w.l2-1, 1)
	for k := 8 * i; k < min(8*i+8, w.rows()); k++ {
		w.rowTwiddles(k % 8)
		w.k.loadWords(&w.v[0], &w.a[step*k], n, 256)
		w.split(w.w, n, w.l2-3)
		w.k.splitLast(&w.v[0], vec(w.w, n/8), vec(w.w, n/4), vec(w.w, n/2), n/8)
		switch {
		case w.post.coset:
			w.k.mulOne(&w.w[0], &w.byPlace[0], entry(w.byRow, k), n)
			w.k.mulVec(&w.v[0], &w.v[0], &w.w[0], n)
		case w.post.scale:
			w.k.mulOne(&w.v[0], &w.v[0], &w.scale[0], n)
		}
		w.k.storeBlocks(&w.v[0], &w.a[step*k], n/8)
	}
}

// squares puts n vectors from x at level top of pow, and their squares at the
// levels below; n is 1 or 2.
func (w *nttWorker) squares(x *byte, top, n int) {
	copy(w.pow[2*frVec*top:][:n*frVec], bytesAt(x, n*frVec))
	for l := top - 1; l >= 0; l-- {
		up := vec(w.pow, 2*l+2)
		w.k.mulVec(vec(w.pow, 2*l), up, up, 2)
	}
}

// rowTwiddles sets w to the twiddles of the row whose γ is in a lane of pow:
// level l is multiplied by γ to the power of half the block.
func (w *nttWorker) rowTwiddles(lane int) {
	f := words(w.mixed, 0, frVec/8)
	for h := 1; h < 8; h++ {
		l := 0
		for h>>l > 1 {
			l++
		}
		p := words(w.pow, 2*frVec*l, frVec/8)
		for j := range 5 {
			f[8*j+h] = p[8*j+lane]
		}
	}
	w.k.mulVec(&w.w[0], &w.tab.splitRow[0], &w.mixed[0], 2)
	for l := 3; l < w.l2; l++ {
		at := w.rowEntry(l, 0) / 8
		w.k.mulOne(vec(w.w, at), vec(w.tab.splitRow, at), entry(w.pow[2*frVec*l:], lane), max(2, 1<<l/8))
	}
}

// joinRows is the first pass of joining, on 8 rows.
func (w *nttWorker) joinRows(i int) {
	n, step := w.cols()/8, 32*w.cols()
	for k := 8 * i; k < min(8*i+8, w.rows()); k++ {
		w.k.loadBlocks(&w.v[0], &w.a[step*k], n/8)
		w.k.joinFirst(&w.v[0], &w.tab.joinRow[0], n/8)
		w.join(w.tab.joinRow, n)
		w.k.storeWords(&w.v[0], &w.a[step*k], n, 256)
	}
}

// joinColumns is the second pass of joining, on 16 columns.
func (w *nttWorker) joinColumns(i int) {
	r, step := w.rows(), 32*w.cols()
	w.squares(vec(w.tab.h, 2*i), w.l1-1, 2)
	for c := 2 * i; c < 2*i+2; c++ {
		for l := range w.l1 {
			w.k.expand(vec(w.w, 1<<l), vec(w.pow, 2*l+c%2), &w.tab.joinCol[40<<l], max(2, 1<<l))
		}
		w.k.loadWords(&w.v[0], &w.a[256*c], r, step)
		w.join(w.w, r)
		switch {
		case w.post.coset:
			w.k.expand(&w.w[0], vec(w.byColumn, c), &w.byStep[0], r)
			w.k.mulVec(&w.v[0], &w.v[0], &w.w[0], r)
		case w.post.scale:
			w.k.mulOne(&w.v[0], &w.v[0], &w.scale[0], r)
		}
		w.k.storeElements(&w.v[0], &w.a[256*c], r, step)
	}
}
