package groth16

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
)

// SetupOptions say which key UnsafeSetup makes. The zero value gives an
// unfolded key of the coset basis.
type SetupOptions struct {
	Basis  curve.Basis // 0 means Coset
	Folded bool        // fold the C matrix into L
	Rand   io.Reader   // where the toxic waste comes from; nil means crypto/rand

	// Domain, if its generator is not zero, is taken instead of NewDomain's: one
	// with other roots of unity (snarkjs's on BLS12-381), of the size NewDomain
	// gives.
	Domain curve.Domain

	// Progress, if set, hears of the points computed so far. It is called from
	// several goroutines, and not after UnsafeSetup has returned.
	Progress func(done, total int)
}

// toxic is what nobody may know after a set-up. It lives in a secret buffer.
type toxic struct {
	tau, alpha, beta, gamma, delta curve.Scalar
	gammaInv, deltaInv             curve.Scalar
	base, sigma                    curve.Scalar // of the Pedersen keys: G's logarithm, the last σ

	z, x, factor, acc, inv, c, power curve.Scalar // what is being computed of them
}

// UnsafeSetup makes a proving and a verifying key of r, for development: whoever
// runs it could have kept the toxic waste τ, α, β, γ, δ and then prove anything.
// Here they, the scalars of the points and what is computed between are kept in
// buffers that are wiped before it returns. Not wiped are the operands of single
// field operations, of which Go leaves copies in registers and on the stacks of
// the goroutines that computed. r needs all three matrices. Buffers come from
// the scope of ctx; the keys' own stay until the proving key's Close.
//
// Folded keys hold L'ᵢ = (β·Aᵢ + α·Bᵢ + Cᵢ)/δ − Cᵢ·Z/((gⁿ−1)·δ), all at τ, the
// first part only for wires of L, the second for every wire; H then takes the
// products a·b alone.
func UnsafeSetup(ctx context.Context, r *R1CS, opts SetupOptions) (*ProvingKey, *VerifyingKey, error) {
	s, err := newSetup(ctx, r, opts)
	if err != nil {
		return nil, nil, fmt.Errorf("set-up: %w", err)
	}
	err = s.run()
	s.close()
	if err != nil {
		_ = s.key.Close()
		return nil, nil, fmt.Errorf("set-up: %w", err)
	}
	return s.key, s.vk, nil
}

// setup is the state of one UnsafeSetup.
type setup struct {
	ctx  context.Context
	sc   *alloc.Scope
	f    backend
	r    *R1CS
	opts SetupOptions
	w    *toxic
	d    curve.Domain
	n    int
	key  *ProvingKey
	vk   *VerifyingKey

	base1, base2 fixedBase
	done         atomic.Int64
	total        int
	temps        []alloc.Ref
}

func newSetup(ctx context.Context, r *R1CS, opts SetupOptions) (*setup, error) {
	f, err := backendOf(r.ID)
	if err != nil {
		return nil, err
	}
	if err := r.Validate(); err != nil {
		return nil, err
	}
	if len(r.C.Rows) == 0 && r.rows() > 0 {
		return nil, errors.New("the circuit has no C matrix")
	}
	if r.NbConstraints() == 0 {
		return nil, errors.New("the circuit has no constraints")
	}
	if opts.Basis == 0 {
		opts.Basis = curve.Coset
	}
	if opts.Basis != curve.Coset && opts.Basis != curve.Monomial {
		return nil, fmt.Errorf("there is no key in %v", opts.Basis)
	}
	d, err := NewDomain(r.ID, r.NbConstraints(), opts.Basis)
	if err != nil {
		return nil, err
	}
	if own := opts.Domain; !own.Generator.IsZero() {
		if own.Log != d.Log {
			return nil, fmt.Errorf("the domain is 2^%d, the circuit needs 2^%d", own.Log, d.Log)
		}
		if err := CheckDomain(r.ID, own); err != nil {
			return nil, err
		}
		d = own
	}
	s := &setup{
		ctx: ctx, sc: alloc.ScopeOf(ctx), f: f, r: r, opts: opts, d: d, n: d.Size(),
		key: &ProvingKey{
			Curve: r.ID, Domain: d, Basis: opts.Basis, Folded: opts.Folded,
			NbConstraints: r.NbConstraints(), NbWires: r.Wires, NbPublic: r.Public,
		},
		vk: &VerifyingKey{Curve: r.ID},
	}
	return s, nil
}

// close wipes and releases everything but the keys.
func (s *setup) close() {
	for _, t := range s.temps {
		t.Release()
	}
	if s.base1 != nil {
		s.base1.Close()
	}
	if s.base2 != nil {
		s.base2.Close()
	}
}

// temp is a zeroed secret vector that lives until close.
func (s *setup) temp(n int) ([]curve.Scalar, error) {
	b, err := alloc.Make[curve.Scalar](s.sc, n, alloc.Scratch, alloc.Secret)
	if err != nil {
		return nil, err
	}
	s.temps = append(s.temps, b)
	return b.Slice(), nil
}

func (s *setup) run() error {
	if err := s.draw(); err != nil {
		return err
	}
	var err error
	if s.base1, err = newBase(s.ctx, s.sc, s.r.ID, curve.InG1, 3*s.r.Wires+s.n); err != nil {
		return err
	}
	if s.base2, err = newBase(s.ctx, s.sc, s.r.ID, curve.InG2, s.r.Wires); err != nil {
		return err
	}
	lag, err := s.lagrange()
	if err != nil {
		return err
	}
	at := make([][]curve.Scalar, 3)
	for i, m := range []curve.Matrix{s.r.A, s.r.B, s.r.C} {
		if at[i], err = s.temp(s.r.Wires); err != nil {
			return err
		}
		s.combine(m, lag, at[i])
		if err := s.ctx.Err(); err != nil {
			return err
		}
	}
	if s.r.InputRows {
		for i := range s.r.Public + 1 {
			at[0][i] = s.f.Add(at[0][i], lag[s.r.rows()+i])
		}
	}
	k, err := s.wires(at[0], at[1], at[2])
	if err != nil {
		return err
	}
	if s.total = s.n + count(at[0]) + 2*count(at[1]) + count(k); s.opts.Progress != nil {
		s.opts.Progress(0, s.total)
	}
	if s.key.A, err = s.query(at[0], curve.InG1); err != nil {
		return fmt.Errorf("points of A: %w", err)
	}
	if s.key.B1, err = s.query(at[1], curve.InG1); err != nil {
		return fmt.Errorf("points of B in G1: %w", err)
	}
	if s.key.B2, err = s.query(at[1], curve.InG2); err != nil {
		return fmt.Errorf("points of B in G2: %w", err)
	}
	if s.key.L, err = s.query(k, curve.InG1); err != nil {
		return fmt.Errorf("points of L: %w", err)
	}
	if err := s.quotient(); err != nil {
		return fmt.Errorf("points of H: %w", err)
	}
	return nil
}

// draw samples the toxic waste and computes the key's single points.
func (s *setup) draw() error {
	b, err := alloc.Make[toxic](s.sc, 1, alloc.Scratch, alloc.Secret)
	if err != nil {
		return err
	}
	s.temps = append(s.temps, b)
	s.w = &b.Slice()[0]
	for _, x := range []*curve.Scalar{&s.w.tau, &s.w.alpha, &s.w.beta, &s.w.gamma, &s.w.delta} {
		if *x, err = s.f.Random(s.opts.Rand); err != nil {
			return err
		}
	}
	// Z(τ) must not be zero; the odds are n in 2^254.
	if pow(s.f, s.w.tau, uint64(s.n)) == s.f.One() {
		return errors.New("the random source gave a point of the domain for τ")
	}
	s.w.gammaInv, s.w.deltaInv = s.f.Inverse(s.w.gamma), s.f.Inverse(s.w.delta)
	g1, g2 := s.f.Generators()
	k, vk := s.key, s.vk
	k.Alpha1, k.Beta1, k.Delta1 = s.f.TimesG1(g1, s.w.alpha), s.f.TimesG1(g1, s.w.beta), s.f.TimesG1(g1, s.w.delta)
	k.Beta2, k.Delta2 = s.f.TimesG2(g2, s.w.beta), s.f.TimesG2(g2, s.w.delta)
	vk.Alpha1, vk.Beta1, vk.Delta1 = k.Alpha1, k.Beta1, k.Delta1
	vk.Beta2, vk.Delta2, vk.Gamma2 = k.Beta2, k.Delta2, s.f.TimesG2(g2, s.w.gamma)
	return nil
}

// lagrangeAt writes to out the Lagrange polynomials of ⟨ω⟩ at x, which is off
// it: ℓ_j(x) = ω^j·(xⁿ−1)/(n·(x−ω^j)), times factor. x and factor are those of
// s.w.
func (s *setup) lagrangeAt(out []curve.Scalar) error {
	f, k := s.f, s.w
	prefix, err := s.temp(len(out))
	if err != nil {
		return err
	}
	// One inversion for all x − ω^j.
	w := f.One()
	k.acc = f.One()
	for j := range out {
		out[j] = f.Sub(k.x, w)
		prefix[j] = k.acc
		k.acc = f.Mul(k.acc, out[j])
		w = f.Mul(w, s.d.Generator)
	}
	k.inv = f.Inverse(k.acc)
	k.c = f.Sub(pow(f, k.x, uint64(s.n)), f.One())
	k.c = f.Mul(f.Mul(k.c, f.Inverse(f.FromUint64(uint64(s.n)))), k.factor)
	back := f.Inverse(s.d.Generator)
	for j := len(out) - 1; j >= 0; j-- {
		w = f.Mul(w, back)
		k.acc = f.Mul(k.inv, prefix[j])
		k.inv = f.Mul(k.inv, out[j])
		out[j] = f.Mul(f.Mul(k.acc, w), k.c)
	}
	return s.ctx.Err()
}

// lagrange is ℓ_j(τ) for every row.
func (s *setup) lagrange() ([]curve.Scalar, error) {
	out, err := s.temp(s.n)
	if err != nil {
		return nil, err
	}
	s.w.x, s.w.factor = s.w.tau, s.f.One()
	return out, s.lagrangeAt(out)
}

// combine adds Σ_row m[row, i]·lag[row] to out[i].
func (s *setup) combine(m curve.Matrix, lag, out []curve.Scalar) {
	for row := range m.NumRows() {
		for _, t := range m.Terms[m.Rows[row]:m.Rows[row+1]] {
			out[t.Wire] = s.f.Add(out[t.Wire], s.f.Mul(m.Coeffs[t.Coeff], lag[row]))
		}
	}
}

// count is how many of v are not zero.
func count(v []curve.Scalar) int {
	n := 0
	for i := range v {
		if !v[i].IsZero() {
			n++
		}
	}
	return n
}
