// Package limb is arithmetic on plain limbs that the compiler can inline or
// that must not branch: which way a subtraction of random numbers borrows
// cannot be predicted, and a wrong guess costs as much as half a product.
package limb

import "math/bits"

// Sub4 is z = x − y modulo q, for x and y below q.
func Sub4(z, x, y, q *[4]uint64) {
	var b, c uint64
	t0, b := bits.Sub64(x[0], y[0], 0)
	t1, b := bits.Sub64(x[1], y[1], b)
	t2, b := bits.Sub64(x[2], y[2], b)
	t3, b := bits.Sub64(x[3], y[3], b)
	m := -b
	z[0], c = bits.Add64(t0, q[0]&m, 0)
	z[1], c = bits.Add64(t1, q[1]&m, c)
	z[2], c = bits.Add64(t2, q[2]&m, c)
	z[3], _ = bits.Add64(t3, q[3]&m, c)
}

// Sub6 is z = x − y modulo q, for x and y below q.
func Sub6(z, x, y, q *[6]uint64) {
	var b, c uint64
	t0, b := bits.Sub64(x[0], y[0], 0)
	t1, b := bits.Sub64(x[1], y[1], b)
	t2, b := bits.Sub64(x[2], y[2], b)
	t3, b := bits.Sub64(x[3], y[3], b)
	t4, b := bits.Sub64(x[4], y[4], b)
	t5, b := bits.Sub64(x[5], y[5], b)
	m := -b
	z[0], c = bits.Add64(t0, q[0]&m, 0)
	z[1], c = bits.Add64(t1, q[1]&m, c)
	z[2], c = bits.Add64(t2, q[2]&m, c)
	z[3], c = bits.Add64(t3, q[3]&m, c)
	z[4], c = bits.Add64(t4, q[4]&m, c)
	z[5], _ = bits.Add64(t5, q[5]&m, c)
}
