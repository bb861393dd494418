package main

import (
	"bytes"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestHeadersAreCurrent generates the headers again.
func TestHeadersAreCurrent(t *testing.T) {
	for _, f := range fields() {
		name := filepath.Join("..", "..", "kernels", f.file+".cuh")
		got, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, []byte(f.header())) {
			t.Errorf("%s is not what frgen writes: run go generate in cuda/kernels", name)
		}
	}
}

// run interprets a routine.
func run(t *testing.T, r *routine, in map[string]*big.Int) *big.Int {
	t.Helper()
	reg := map[string]uint32{}
	for _, p := range r.ins {
		for k, name := range words(p) {
			reg[name] = uint32(new(big.Int).Rsh(in[p], uint(32*k)).Uint64())
		}
	}
	val := func(s string) uint64 {
		if v, ok := reg[s]; ok {
			return uint64(v)
		}
		v, err := strconv.ParseUint(s, 0, 32)
		if err != nil {
			t.Fatalf("%s reads %q, which nothing has written", r.name, s)
		}
		return v
	}
	var cc uint64
	p := false
	for _, i := range r.code {
		if i.pred && !p {
			continue
		}
		op, out := strings.CutSuffix(i.op, ".cc")
		c := uint64(0)
		switch strings.SplitN(op, ".", 2)[0] {
		case "addc", "subc", "madc":
			c = cc
		}
		var v uint64
		switch op {
		case "wide":
			v = val(i.a) * val(i.b)
			reg[i.d2] = uint32(v >> 32)
			v &= 1<<32 - 1
		case "mov":
			v = val(i.a)
		case "add", "addc":
			v = val(i.a) + val(i.b) + c
		case "sub", "subc":
			v = val(i.a) - val(i.b) - c
		case "mul.lo":
			v = val(i.a) * val(i.b) & (1<<32 - 1)
		case "mad.lo", "madc.lo":
			v = val(i.a)*val(i.b)&(1<<32-1) + val(i.c) + c
		case "madc.hi":
			v = val(i.a)*val(i.b)>>32 + val(i.c) + c
		case "shl":
			v = (val(i.b)<<32 | val(i.a)) << val(i.c) >> 32
		case "sel":
			if v = val(i.b); p {
				v = val(i.a)
			}
		case "setp.ne":
			p = val(i.a) != val(i.b)
		case "setp.gt":
			p = val(i.a) > val(i.b)
		case "setp.gt.or":
			p = val(i.a) > val(i.b) || p
		default:
			t.Fatalf("%s: unknown operation %s", r.name, i.op)
		}
		if i.d != "" {
			reg[i.d] = uint32(v)
		}
		if out {
			cc = v >> 32 & 1
		}
	}
	sum := new(big.Int)
	for k := 7; k >= 0; k-- {
		sum.Lsh(sum, 32).Add(sum, new(big.Int).SetUint64(val(fmt.Sprint("t", k))))
	}
	return sum
}

// below draws a number in [0, n), often at an end of it or with words of ones.
func below(rng *rand.Rand, n *big.Int) *big.Int {
	v := new(big.Int)
	switch rng.IntN(6) {
	case 0:
		v.SetUint64(rng.Uint64N(4))
	case 1:
		v.Sub(n, new(big.Int).SetUint64(1+rng.Uint64N(4)))
	default:
		for range 9 {
			w := rng.Uint32()
			switch rng.IntN(4) {
			case 0:
				w = 0
			case 1:
				w = ^uint32(0)
			}
			v.Lsh(v, 32).Or(v, new(big.Int).SetUint64(uint64(w)))
		}
	}
	return v.Mod(v, n)
}

func TestRoutines(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	all := new(big.Int).Lsh(big.NewInt(1), 256)
	for _, f := range fields() {
		two := f.twice()
		lazy := new(big.Int).Add(two, new(big.Int).Lsh(big.NewInt(1), 224))
		rInv := new(big.Int).ModInverse(all, f.r)
		by := map[string]*routine{}
		for _, r := range f.routines() {
			by[r.name] = r
		}
		// check wants the result congruent to want and below bound.
		check := func(name string, want, bound *big.Int, in map[string]*big.Int) {
			t.Helper()
			got := run(t, by[name], in)
			if new(big.Int).Mod(got, f.r).Cmp(new(big.Int).Mod(want, f.r)) != 0 || got.Cmp(bound) >= 0 {
				t.Fatalf("%v: %s of %v is %v", f.id, name, in, got)
			}
		}
		num := func() *big.Int { return new(big.Int) }
		for range 2000 {
			x, w := below(rng, all), below(rng, f.r)
			v := num().Div(num().Lsh(w, 256), f.r)
			bound := num().Add(all, x)
			bound.Add(bound, num().Lsh(big.NewInt(1), 228)).Mul(bound, f.r).Rsh(bound, 256)
			check("fr_shoup", num().Mul(w, x), bound.Add(bound, big.NewInt(1)), map[string]*big.Int{"x": x, "w": w, "v": v})

			a, b := below(rng, all), below(rng, f.r)
			bound = num().Rsh(num().Mul(a, b), 256)
			bound.Add(bound, f.r).Add(bound, big.NewInt(1))
			want := num().Mul(a, b)
			check("fr_mont", want.Mul(want, rInv), bound, map[string]*big.Int{"a": a, "b": b})

			a, b = below(rng, lazy), below(rng, two)
			check("fr_add_lazy", num().Add(a, b), lazy, map[string]*big.Int{"a": a, "b": b})
			check("fr_sub_2r", num().Sub(a, b), lazy, map[string]*big.Int{"a": a, "b": b})
			check("fr_cut_2r", a, two, map[string]*big.Int{"a": a})
			a = below(rng, two)
			check("fr_sub_2r", num().Sub(a, b), two, map[string]*big.Int{"a": a, "b": b})
			check("fr_add_2r", num().Add(a, b), two, map[string]*big.Int{"a": a, "b": b})
			check("fr_cut_r", a, f.r, map[string]*big.Int{"a": a})
			a, b = below(rng, f.r), below(rng, f.r)
			check("fr_sub_r", num().Sub(a, b), f.r, map[string]*big.Int{"a": a, "b": b})
		}
	}
}
