package main

// school is the product of two numbers of n words (n even), row by row, with
// the products at even and at odd places added up apart, so that each row is
// one chain of multiply-add pairs, which the hardware fuses.
func (r *routine) school(d, a, b words) {
	n := len(a)
	e, o := r.temps(2*n+1), r.temps(2*n+1)
	for k := 0; k < n; k += 2 {
		r.wide(e[k], e[k+1], a[k], b[0])
	}
	for k := 0; k < n; k += 2 {
		r.wide(o[k], o[k+1], a[k+1], b[0])
	}
	e[n] = "0"
	// same adds a row to n words and puts its carry in the next; shift adds one
	// whose highest word is new, so that there is no carry.
	same := func(acc words, a words, b string) {
		for k := 0; k < n; k += 2 {
			r.pair(acc[k], acc[k+1], a[k], b, acc[k], acc[k+1], k > 0, true)
		}
		r.emit("addc", acc[n], "0", "0")
	}
	shift := func(acc words, at int, a words, b string) {
		for k := 0; k < n; k += 2 {
			lo := acc[at+k]
			if lo == "0" {
				acc[at+k] = r.temp()
			}
			hi := acc[at+k+1]
			if k == n-2 {
				hi = "0"
			}
			r.pair(acc[at+k], acc[at+k+1], a[k], b, lo, hi, k > 0, k < n-2)
		}
	}
	for i := 1; i < n; i += 2 {
		shift(e, i+1, a[1:], b[i])
		same(o[i-1:], a, b[i])
		if i+1 < n {
			same(e[i+1:], a, b[i+1])
			shift(o, i+1, a[1:], b[i+1])
		}
	}
	r.emit("mov", d[0], e[0], "")
	r.add("add", d[1:], e[1:2*n], o[:2*n-1], false)
}

// karatsuba is the product of n words (n/2 even) from three of n/2 words.
func (r *routine) karatsuba(d, a, b words) {
	n := len(a)
	h := n / 2
	lo, hi, mid := r.temps(n), r.temps(n), r.temps(n)
	r.school(lo, a[:h], b[:h])
	r.school(hi, a[h:], b[h:])
	sa, sb := r.temps(h), r.temps(h)
	ca := r.add("add", sa, a[:h], a[h:], true)
	cb := r.add("add", sb, b[:h], b[h:], true)
	r.school(mid, sa, sb)
	// The carries of the two sums are worth 2^(32h) each.
	ma, mb, x := r.temp(), r.temp(), r.temps(h)
	r.emit("sub", ma, "0", ca)
	r.emit("sub", mb, "0", cb)
	for i := range x {
		r.emit("and", x[i], sb[i], ma)
	}
	c1 := r.add("add", mid[h:], mid[h:], x, true)
	for i := range x {
		r.emit("and", x[i], sa[i], mb)
	}
	c2 := r.add("add", mid[h:], mid[h:], x, true)
	top := r.temp()
	r.emit("and", top, ca, cb)
	r.emit("add", top, top, c1)
	r.emit("add", top, top, c2)
	r.merge(d, lo, hi, join(mid, words{top}))
}

// merge puts the three products of Karatsuba together.
func (r *routine) merge(d, lo, hi, mid words) {
	n := len(lo)
	h := n / 2
	r.add("sub", mid, mid, lo, false)
	r.add("sub", mid, mid, hi, false)
	r.copy(d[:h], lo[:h])
	r.add("add", d[h:], join(lo[h:], hi), mid, false)
}

func join(a, b words) words { return append(append(words{}, a...), b...) }

// square is the square of n words (n even): products of different words once,
// doubled, and the squares of the words added.
func (r *routine) square(d, a words) {
	n := len(a)
	s, o := r.temps(2*n), r.temps(2*n)
	def := map[string]bool{}
	// columns[c] are the pairs i < j with i + j = c, lowest i first.
	for parity, acc := range []words{s, o} {
		columns := map[int][][2]int{}
		first, last := -1, 0
		for c := 2 - parity; c <= 2*n-3; c += 2 {
			for i := 0; i < n; i++ {
				if j := c - i; j > i && j < n {
					columns[c] = append(columns[c], [2]int{i, j})
				}
			}
			if first < 0 {
				first = c
			}
			last = c
		}
		// Chains start at each column in turn and take one product of every
		// column, up to the first that no chain has reached.
		for start := first; start <= last; start += 2 {
			for len(columns[start]) > 0 {
				carry := false
				for c := start; c <= last && len(columns[c]) > 0; c += 2 {
					if start == first && c >= n {
						break // the first chain has the products of word 0
					}
					p := columns[c][0]
					columns[c] = columns[c][1:]
					fresh := !def[acc[c]]
					switch {
					case fresh && !carry:
						r.wide(acc[c], acc[c+1], a[p[0]], a[p[1]])
					case fresh:
						r.pair(acc[c], acc[c+1], a[p[0]], a[p[1]], "0", "0", true, false)
					default:
						r.pair(acc[c], acc[c+1], a[p[0]], a[p[1]], acc[c], acc[c+1], carry, true)
						carry = true
					}
					def[acc[c]], def[acc[c+1]] = true, true
					if fresh && carry {
						carry = false
						break
					}
				}
				if carry {
					panic("square: a chain ends with a carry")
				}
			}
		}
	}
	r.add("add", s[2:2*n-1], join(s[2:2*n-2], o[2*n-2:2*n-1]), o[2:2*n-2], false)
	// Twice, and the squares.
	s[1] = o[1]
	t := r.temps(2 * n)
	for i := 1; i < 2*n-1; i++ {
		op := "addc.cc"
		if i == 1 {
			op = "add.cc"
		}
		r.emit(op, t[i], s[i], s[i])
	}
	r.emit("addc", t[2*n-1], "0", "0")
	x := r.temp()
	r.wide(d[0], x, a[0], a[0])
	r.emit("add.cc", d[1], t[1], x)
	for i := 1; i < n; i++ {
		r.pair(d[2*i], d[2*i+1], a[i], a[i], t[2*i], t[2*i+1], true, i < n-1)
	}
}

// karatsubaSquare is the square of n words from three squares of n/2 words.
func (r *routine) karatsubaSquare(d, a words) {
	n := len(a)
	h := n / 2
	lo, hi, mid := r.temps(n), r.temps(n), r.temps(n)
	r.square(lo, a[:h])
	r.square(hi, a[h:])
	sa := r.temps(h)
	c := r.add("add", sa, a[:h], a[h:], true)
	r.square(mid, sa)
	// (c·2^(32h) + s)² = s² + c·2s·2^(32h) + c·2^(64h)
	m, x := r.temp(), r.temps(h+1)
	r.emit("sub", m, "0", c)
	for i := range h {
		r.emit("and", x[i], sa[i], m)
	}
	k := r.add("add", x[:h], x[:h], x[:h], true)
	r.emit("add", x[h], k, c)
	top := r.temp()
	r.add("add", join(mid[h:], words{top}), join(mid[h:], words{"0"}), x, false)
	r.merge(d, lo, hi, join(mid, words{top}))
}

// reduce is Montgomery's reduction of 2n words by the prime p: d = t/2^(32n)
// modulo p, d < p + t/2^(32n), with no last subtraction (P. L. Montgomery,
// "Modular multiplication without trial division", 1985). Word by word; the
// multiples of p at even and odd places are added up apart, as in school, and
// change their parts at each word.
func (r *routine) reduce(d, t, p words, inv string) {
	n := len(p)
	e := join(t[:n], r.temps(1))
	o := r.temps(n)
	m := r.temp()
	for i := range n {
		if i > 0 {
			x := e[1]
			e, o = join(o, r.temps(1)), join(e[2:], r.temps(1))
			f := r.temp()
			r.emit("add.cc", f, e[0], x)
			e[0] = f
		}
		r.emit("mul.lo", m, e[0], inv)
		for k := 0; k < n; k += 2 {
			switch {
			case i == 0:
				r.wide(o[k], o[k+1], m, p[k+1])
			case k < n-2:
				r.pair(o[k], o[k+1], m, p[k+1], o[k], o[k+1], true, true)
			default:
				r.pair(o[k], o[k+1], m, p[k+1], o[k], "0", true, false)
			}
		}
		for k := 0; k < n; k += 2 {
			ne, nf := e[k], e[k+1]
			if i == 0 { // the words of t are not ours to write
				ne, nf = r.temp(), r.temp()
			}
			r.pair(ne, nf, m, p[k], e[k], e[k+1], k > 0, true)
			e[k], e[k+1] = ne, nf
		}
		r.emit("addc", e[n], "0", "0")
	}
	s := r.temps(n)
	r.add("add", s, e[1:], o, false)
	r.add("add", d, s, t[n:], false)
}
