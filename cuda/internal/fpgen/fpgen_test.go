package main

import (
	"bytes"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/snarkline/snarkline/curve"
)

func TestHeadersAreCurrent(t *testing.T) {
	for _, id := range curve.All() {
		have, err := os.ReadFile(filepath.Join("../../kernels", fileName(id)))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(have, []byte(header(id))) {
			t.Errorf("%s is not what fpgen writes: go generate ./cuda/internal/fpgen", fileName(id))
		}
	}
}

// machine runs the PTX of an asm block as it is printed.
type machine struct {
	reg map[string]uint64
	cc  uint64
}

func (m *machine) get(t *testing.T, s string) uint64 {
	if v, ok := m.reg[s]; ok {
		return v
	}
	v, err := strconv.ParseUint(s, 0, 32)
	if err != nil {
		t.Fatalf("%q is read before it is written", s)
	}
	return v
}

var (
	quoted = regexp.MustCompile(`"([^"]*) "\n`)
	unpack = regexp.MustCompile(`^mov\.b64 \{(\S+?),(\S+?)\},w$`)
)

func (m *machine) run(t *testing.T, ptx string) {
	const mask = 1<<32 - 1
	for _, s := range strings.Split(ptx, ";") {
		s = strings.Trim(strings.TrimSpace(s), " ")
		s = strings.TrimSpace(strings.TrimPrefix(s, "{ "))
		if s == "" || s == "{" || s == "}" || strings.HasPrefix(s, ".reg") {
			continue
		}
		if u := unpack.FindStringSubmatch(s); u != nil {
			m.reg[u[1]], m.reg[u[2]] = m.reg["w"]&mask, m.reg["w"]>>32
			continue
		}
		op, rest, _ := strings.Cut(s, " ")
		a := strings.Split(rest, ",")
		v := func(i int) uint64 { return m.get(t, a[i]) }
		cc := strings.HasSuffix(op, ".cc.u32")
		base := strings.TrimSuffix(strings.TrimSuffix(op, ".u32"), ".cc")
		var sum uint64
		carry := m.cc
		if !strings.HasPrefix(base, "addc") && !strings.HasPrefix(base, "subc") && !strings.HasPrefix(base, "madc") {
			carry = 0
		}
		switch base {
		case "mul.wide":
			m.reg["w"] = v(1) * v(2)
			continue
		case "mov.b32":
			m.reg[a[0]] = v(1)
			continue
		case "and.b32":
			m.reg[a[0]] = v(1) & v(2)
			continue
		case "setp.ne":
			m.reg["p"] = 0
			if v(1) != 0 {
				m.reg["p"] = 1
			}
			continue
		case "selp":
			if m.reg["p"] == 1 {
				m.reg[a[0]] = v(1)
			} else {
				m.reg[a[0]] = v(2)
			}
			continue
		case "mul.lo":
			m.reg[a[0]] = v(1) * v(2) & mask
			continue
		case "add", "addc":
			sum = v(1) + v(2) + carry
		case "sub", "subc":
			sum = v(1) - v(2) - carry
			if cc {
				m.cc = sum >> 63
			}
			m.reg[a[0]] = sum & mask
			continue
		case "mad.lo", "madc.lo":
			sum = v(1)*v(2)&mask + v(3) + carry
		case "mad.hi", "madc.hi":
			sum = v(1)*v(2)>>32 + v(3) + carry
		default:
			t.Fatalf("unknown instruction %q", s)
		}
		if cc {
			m.cc = sum >> 32
		}
		m.reg[a[0]] = sum & mask
	}
}

// call runs a routine as it is printed and gives its results.
func call(t *testing.T, r *routine, args map[string]*big.Int) map[string]*big.Int {
	var w strings.Builder
	r.printPTX(&w)
	var ptx strings.Builder
	for _, q := range quoted.FindAllStringSubmatch(w.String(), -1) {
		ptx.WriteString(q[1] + " ")
	}
	m := &machine{reg: map[string]uint64{}}
	k := 0
	place := map[string][]string{}
	take := func(p param) {
		for range p.n {
			place[p.name] = append(place[p.name], fmt.Sprintf("%%%d", k))
			k++
		}
	}
	for _, p := range r.outs {
		take(p)
	}
	for _, p := range append(append([]param{}, r.mods...), r.ins...) {
		take(p)
		for i, l := range literals(args[p.name], p.n) {
			m.reg[place[p.name][i]] = m.get(t, l)
		}
	}
	m.run(t, ptx.String())
	out := map[string]*big.Int{}
	for _, p := range append(append([]param{}, r.outs...), r.mods...) {
		v := new(big.Int)
		for i, s := range place[p.name] {
			v.Or(v, new(big.Int).Lsh(new(big.Int).SetUint64(m.get(t, s)), uint(32*i)))
		}
		out[p.name] = v
	}
	return out
}

func TestRoutines(t *testing.T) {
	for _, id := range curve.All() {
		f := newField(id)
		one := big.NewInt(1)
		R := new(big.Int).Lsh(one, uint(32*f.n))
		RR := new(big.Int).Mul(R, R)
		inverse := new(big.Int).ModInverse(R, f.p)
		rng := rand.New(rand.NewPCG(1, uint64(id)))
		// number is below m, often at an end or full of ones and zeros.
		number := func(m *big.Int) *big.Int {
			v := new(big.Int)
			switch rng.IntN(5) {
			case 0:
				return v.Sub(m, big.NewInt(1+int64(rng.IntN(3))))
			case 1:
				return v.SetInt64(int64(rng.IntN(3)))
			case 2:
				for i := range 2 * f.n {
					if rng.IntN(2) == 1 {
						v.Or(v, new(big.Int).Lsh(big.NewInt(1<<32-1), uint(32*i)))
					}
				}
			default:
				for i := range f.n {
					v.Or(v, new(big.Int).Lsh(new(big.Int).SetUint64(rng.Uint64()), uint(64*i)))
				}
			}
			return v.Mod(v, m)
		}
		var k int64
		for _, r := range f.routines() {
			check := func(what string, got, want *big.Int, args map[string]*big.Int) {
				if got.Cmp(want) != 0 {
					t.Fatalf("%v %s: %s is %x, want %x for %x", id, r.name, what, got, want, args)
				}
			}
			for range 300 {
				a, b := number(R), number(R)
				switch {
				case r.name == "fp_wide", r.name == "fp_wide_school":
					args := map[string]*big.Int{"a": a, "b": b}
					check("t", call(t, r, args)["t"], new(big.Int).Mul(a, b), args)
				case r.name == "fp_wide_square":
					args := map[string]*big.Int{"a": a}
					check("t", call(t, r, args)["t"], new(big.Int).Mul(a, a), args)
				case r.name == "fp_reduce":
					// What is below (R − p)·R is reduced without a carry lost.
					top := new(big.Int).Mul(new(big.Int).Sub(R, f.p), R)
					x := number(top)
					args := map[string]*big.Int{"t": x}
					d := call(t, r, args)["d"]
					want := new(big.Int).Mul(x, inverse)
					check("d mod p", new(big.Int).Mod(d, f.p), want.Mod(want, f.p), args)
					if bound := new(big.Int).Add(f.p, new(big.Int).Div(x, R)); d.Cmp(bound) > 0 {
						t.Fatalf("%v %s: %x is beyond p + t/R for %x", id, r.name, d, x)
					}
				case strings.HasPrefix(r.name, "fp_wide_"):
					x, y := number(RR), number(RR)
					args := map[string]*big.Int{"t": x, "u": y}
					want := new(big.Int).Add(x, y)
					if r.name == "fp_wide_sub" {
						want.Sub(x, y)
					}
					check("t", call(t, r, args)["t"], want.Mod(want, RR), args)
				case r.name == "fp_add":
					args := map[string]*big.Int{"a": a, "b": b}
					want := new(big.Int).Add(a, b)
					check("d", call(t, r, args)["d"], want.Mod(want, R), args)
				case scan(r.name, "fp_sub%d", &k):
					args := map[string]*big.Int{"a": a, "b": b}
					want := new(big.Int).Sub(a, b)
					check("d", call(t, r, args)["d"], want.Add(want, f.times(k)).Mod(want, R), args)
				case scan(r.name, "fp_neg%d", &k):
					args := map[string]*big.Int{"a": a}
					want := new(big.Int).Sub(f.times(k), a)
					check("d", call(t, r, args)["d"], want.Mod(want, R), args)
				case scan(r.name, "fp_csub%d", &k):
					if rng.IntN(3) == 0 {
						a = new(big.Int).Add(f.times(k), big.NewInt(int64(rng.IntN(3)-1)))
					}
					args := map[string]*big.Int{"a": a}
					want := new(big.Int).Set(a)
					if a.Cmp(f.times(k)) >= 0 {
						want.Sub(a, f.times(k))
					}
					check("d", call(t, r, args)["d"], want, args)
				default:
					t.Fatalf("no test for %s", r.name)
				}
			}
		}
	}
}

func scan(s, format string, k *int64) bool {
	n, err := fmt.Sscanf(s, format, k)
	return n == 1 && err == nil
}
