package bls12381

import (
	"context"
	"math/bits"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/snarkline/snarkline/cpu/internal/par"
)

// Number-theoretic transforms with one table for all levels: the first half of
// the powers of the root, in bit-reversed order. At the level with 2^l blocks,
// block j multiplies by table[j] alone, so a level is a few long vector
// operations.
//
// scatter takes natural order to bit-reversed order, collect, its transpose,
// takes bit-reversed order to natural. Both compute Σ a_i·root^(ik) and scale
// nothing.
type transform struct {
	log     int
	table   fr.Vector // 2^(log−1), at least 1
	workers int
	buf     []fr.Vector // columnLen elements a worker
}

const (
	// leafLog is the size of a block that a worker transforms in its cache.
	leafLog = 13
	// passLog is the most levels that one pass over larger blocks does, and
	// tile the width of the columns that it copies to a buffer for that.
	passLog = 5
	tile    = 64

	columnLen = tile << passLog
	pieceLen  = 256 // elements of one vector operation inside a leaf
	bufLen    = columnLen + columnLen/2
)

// build fills the table for root, a primitive 2^log-th root of unity.
func (t *transform) build(root fr.Element) {
	// table[2^k + j] = table[j]·root^(n/2^(k+2))
	var powers [64]fr.Element // root^(2^i)
	powers[0] = root
	for i := 1; i < t.log; i++ {
		powers[i].Square(&powers[i-1])
	}
	t.table[0].SetOne()
	for k := 0; k < t.log-1; k++ {
		m := 1 << k
		p := &powers[t.log-2-k]
		workers := max(1, min(t.workers, m/blockLen))
		// nothing here can fail
		_ = par.Ranges(workers, m, func(_, from, to int) error {
			dst := t.table[m+from : m+to]
			dst.ScalarMul(t.table[from:to], p)
			return nil
		})
	}
}

// scatter transforms a from natural to bit-reversed order.
func (t *transform) scatter(ctx context.Context, a fr.Vector) error {
	level := 0
	for t.log-level > leafLog {
		k := min(passLog, t.log-level-leafLog)
		if err := t.pass(ctx, a, level, k, t.scatterColumns); err != nil {
			return err
		}
		level += k
	}
	size := 1 << (t.log - level)
	return par.Blocks(ctx, t.workers, 1<<level, 1, func(worker, j, _ int) error {
		t.scatterLeaf(a[j*size:(j+1)*size], j, t.buf[worker])
		return nil
	})
}

// collect transforms a from bit-reversed to natural order.
func (t *transform) collect(ctx context.Context, a fr.Vector) error {
	level := max(0, t.log-leafLog)
	size := 1 << (t.log - level)
	err := par.Blocks(ctx, t.workers, 1<<level, 1, func(worker, j, _ int) error {
		t.collectLeaf(a[j*size:(j+1)*size], j, t.buf[worker])
		return nil
	})
	for err == nil && level > 0 {
		k := min(passLog, level)
		level -= k
		err = t.pass(ctx, a, level, k, t.collectColumns)
	}
	return err
}

// pass does the levels [level, level+k) in one pass over memory. The rows of a
// column lie far apart at distances that share cache sets, so each column of
// tiles is copied to a buffer and back.
func (t *transform) pass(ctx context.Context, a fr.Vector, level, k int, columns func(buf fr.Vector, j, k int)) error {
	size := 1 << (t.log - level)
	stride := size >> k
	width := min(tile, stride)
	per := stride / width
	return par.Blocks(ctx, t.workers, per<<level, 1, func(worker, i, _ int) error {
		j, c := i/per, i%per
		block := a[j*size:]
		buf := t.buf[worker]
		for r := range 1 << k {
			at := r*stride + c*width
			copy(buf[r*width:(r+1)*width], block[at:at+width])
		}
		columns(buf[:width<<k:len(buf)], j, k)
		for r := range 1 << k {
			at := r*stride + c*width
			copy(block[at:at+width], buf[r*width:(r+1)*width])
		}
		return nil
	})
}

func (t *transform) scatterColumns(buf fr.Vector, j, k int) {
	n := len(buf)
	tmp := buf[n : n+n/2]
	for l := range k {
		half := n >> (l + 1)
		for b := range 1 << l {
			v := buf[2*b*half : (2*b+2)*half]
			scatterStep(v[:half], v[half:], &t.table[j<<l+b], j<<l+b == 0, tmp)
		}
	}
}

func (t *transform) collectColumns(buf fr.Vector, j, k int) {
	n := len(buf)
	tmp := buf[n : n+n/2]
	for l := k - 1; l >= 0; l-- {
		half := n >> (l + 1)
		for b := range 1 << l {
			v := buf[2*b*half : (2*b+2)*half]
			collectStep(v[:half], v[half:], &t.table[j<<l+b], j<<l+b == 0, tmp)
		}
	}
}

// scatterStep is (x, y) ← (x + w·y, x − w·y).
func scatterStep(x, y fr.Vector, w *fr.Element, one bool, tmp fr.Vector) {
	tmp = tmp[:len(x)]
	if one {
		copy(tmp, y)
	} else {
		tmp.ScalarMul(y, w)
	}
	y.Sub(x, tmp)
	x.Add(x, tmp)
}

// collectStep is (x, y) ← (x + y, w·(x − y)).
func collectStep(x, y fr.Vector, w *fr.Element, one bool, tmp fr.Vector) {
	tmp = tmp[:len(x)]
	tmp.Sub(x, y)
	x.Add(x, y)
	if one {
		copy(y, tmp)
	} else {
		y.ScalarMul(tmp, w)
	}
}

func (t *transform) scatterLeaf(a fr.Vector, j int, tmp fr.Vector) {
	n := len(a)
	if n <= 16 {
		t.scatterSmall(a, j)
		return
	}
	half := n / 2
	for i := 0; i < half; i += pieceLen {
		end := min(i+pieceLen, half)
		scatterStep(a[i:end], a[half+i:half+end], &t.table[j], j == 0, tmp)
	}
	t.scatterLeaf(a[:half], 2*j, tmp)
	t.scatterLeaf(a[half:], 2*j+1, tmp)
}

func (t *transform) collectLeaf(a fr.Vector, j int, tmp fr.Vector) {
	n := len(a)
	if n <= 16 {
		t.collectSmall(a, j)
		return
	}
	half := n / 2
	t.collectLeaf(a[:half], 2*j, tmp)
	t.collectLeaf(a[half:], 2*j+1, tmp)
	for i := 0; i < half; i += pieceLen {
		end := min(i+pieceLen, half)
		collectStep(a[i:end], a[half+i:half+end], &t.table[j], j == 0, tmp)
	}
}

// scatterSmall is the last levels, too short for vectors.
func (t *transform) scatterSmall(a fr.Vector, j int) {
	n := len(a)
	for half := n / 2; half > 0; half /= 2 {
		for b := 0; b < n; b += 2 * half {
			w := &t.table[j]
			j++
			for i := b; i < b+half; i++ {
				a[i+half].Mul(&a[i+half], w)
				fr.Butterfly(&a[i], &a[i+half])
			}
		}
		j = (j - n/(2*half)) * 2
	}
}

// collectSmall is the first levels of collect.
func (t *transform) collectSmall(a fr.Vector, j int) {
	n := len(a)
	for half := 1; half < n; half *= 2 {
		k := j * (n / (2 * half))
		for b := 0; b < n; b += 2 * half {
			w := &t.table[k]
			k++
			for i := b; i < b+half; i++ {
				fr.Butterfly(&a[i], &a[i+half])
				a[i+half].Mul(&a[i+half], w)
			}
		}
	}
}

// powersReversed fills dst, whose length is a power of two, with base^(2^k's
// weights) in bit-reversed order: dst[i] = Π weights[b] over the bits b of i,
// times first.
func powersReversed(dst fr.Vector, weights []fr.Element, first fr.Element) {
	dst[0] = first
	for b := range bits.TrailingZeros(uint(len(dst))) {
		m := 1 << b
		v := dst[m : 2*m]
		v.ScalarMul(dst[:m], &weights[b])
	}
}
