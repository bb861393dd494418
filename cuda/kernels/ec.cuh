// Points of the curve over F (fp for G1, fp2 for G2) and their sums, in
// extended Jacobian coordinates (XYZZ): x = X/ZZ, y = Y/ZZZ, ZZ³ = ZZZ²; the
// identity has ZZ = 0. Formulas: Bernstein and Lange, Explicit-Formulas
// Database, shortw/xyzz: madd-2008-s, add-2008-s, dbl-2008-s-1. All that is
// stored is below 2p.
//
// Operands stay in memory (shared memory, mostly), and each addition has one
// rolled copy of the product, one of the square and one of the sum of two
// products: code that fits the instruction cache and few live registers are
// worth more than the loads cost.
#pragma once
#include "fp2.cuh"

namespace CURVE_NS {

// affine is a point as keys have it: canonical, (0, 0) for the identity. No
// point has y = 0, since the groups have odd order.
template <class F> struct affine {
  F x, y;
};
template <class F> struct xyzz {
  F x, y, zz, zzz;
};

// scratch_of is how many elements add_to needs beside its operands.
template <class F> constexpr u32 scratch_of = sizeof(F) == sizeof(fp) ? 2 : 3;

template <class F> FN void copy_point(xyzz<F>* d, const xyzz<F>* a) {
  const uint4* q = reinterpret_cast<const uint4*>(a);
  uint4* o = reinterpret_cast<uint4*>(d);
  UNROLL for (u32 i = 0; i < sizeof(xyzz<F>) / 16; i++) o[i] = q[i];
}
template <class F> FN void set_identity(xyzz<F>* d) {
  uint4* o = reinterpret_cast<uint4*>(d);
  UNROLL for (u32 i = 0; i < sizeof(xyzz<F>) / 16; i++) o[i] = make_uint4(0, 0, 0, 0);
}
template <class F> FN bool is_identity(const xyzz<F>* a) { return is_raw_zero(load(&a->zz)); }

// double_to is d = 2·d, for the rare case that two summands are equal; s: two
// elements of scratch.
template <class F> CALLED void double_to(xyzz<F>* d, F* s) {
  F t = load(&d->y);
  store(s + 1, add_tight(t, t));          // U = 2Y
  store(&d->y, neg2(t));
  sqr_to(s, s + 1);                       // V = U²
  mul_to(&d->zz, &d->zz, s);
  mul_to(s + 1, s + 1, s);                // W = U·V
  mul_to(&d->zzz, &d->zzz, s + 1);
  mul_to(&d->y, &d->y, s + 1);            // −W·Y
  mul_to(s, s, &d->x);                    // S = X·V
  sqr_to(&d->x, &d->x);
  t = load(&d->x);
  store(&d->x, add_tight(add_tight(t, t), t));  // M = 3X²
  sqr_to(s + 1, &d->x);
  F u = load(s);
  t = sub_tight(sub_tight(load(s + 1), u), u);  // X' = M² − 2S
  store(s, sub_tight(u, t));
  mul_to(s, s, &d->x);                    // M·(S − X')
  store(&d->x, t);
  store(&d->y, add_tight(load(&d->y), load(s)));
}

// What the formulas need beside products, for fp2.
FN fp2 difference(const fp2& a, const fp2& b) { return sub_tight(a, b); }
FN fp2 new_x(const fp2& r2, const fp2& q, const fp2& ppp) {
  return {new_x_tight(r2.c0, q.c0, ppp.c0), new_x_tight(r2.c1, q.c1, ppp.c1)};
}
// factor_of may be below 4p, on BN254 below 2p: see fp2_dot.
FN fp2 factor_of(const fp2& q, const fp2& x) {
#if CURVE == 381
  return {sub2(q.c0, x.c0), sub2(q.c1, x.c1)};
#else
  return sub_tight(q, x);
#endif
}

// add_to is d += b in G1. b may be anywhere, but not d; s: two elements.
FN void add_to(xyzz<fp>* d, const xyzz<fp>* b, fp* s) {
  if (is_identity(b)) return;
  if (is_identity(d)) {
    copy_point(d, b);
    return;
  }
  bool zp = false, zr = false;
  // For (x, zz) and then (y, zzz): U = x·zz', P = x'·zz − U, zz·zz'.
  ROLLED for (u32 i = 0; i < 2; i++) {
    fp *dc = &d->x + i, *dz = &d->zz + i;
    const fp *bc = &b->x + i, *bz = &b->zz + i;
    ROLLED for (u32 k = 0; k < 3; k++) {
      fp a = fp_load(k == 0 ? dc : k == 1 ? bc : dz), c = fp_load(k == 1 ? dz : bz);
      a = mul(a, c);
      if (k == 1) {
        a = difference(a, fp_load(dc));
        zp = zr;
        zr = is_zero(a);
      }
      fp_store(k == 0 ? dc : k == 1 ? s + i : dz, a);
    }
  }
  if (zp) {
    if (zr) {
      copy_point(d, b);
      double_to(d, s);
    } else {
      set_identity(d);
    }
    return;
  }
  fp pp, r2;
  ROLLED for (u32 i = 0; i < 2; i++) {
    fp a = sqr(fp_load(s + i));
    if (i == 0)
      pp = a;
    else
      r2 = a;
  }
  // ZZ·PP, PPP = P·PP, Q = U1·PP, ZZZ·PPP.
  ROLLED for (u32 i = 0; i < 4; i++) {
    fp* at = i == 0 ? &d->zz : i == 1 ? s : i == 2 ? &d->x : &d->zzz;
    fp a = fp_load(at), c = pp;
    if (i == 3) c = fp_load(s);
    fp_store(at, mul(a, c));
  }
  fp q = fp_load(&d->x);
  fp x = new_x(r2, q, fp_load(s));
  fp_store(&d->x, x);
  q = factor_of(q, x);
  fp_store(&d->y, neg2(fp_load(&d->y)));
  u32 t[2 * FP_WORDS];
  UNROLL for (u32 k = 0; k < 2 * FP_WORDS; k++) t[k] = 0;
  // Y = R·(Q − X) − S1·PPP
  ROLLED for (u32 i = 0; i < 2; i++) {
    fp a = fp_load(i ? &d->y : s + 1), c = q;
    if (i) c = fp_load(s);
    u32 w[2 * FP_WORDS];
    fp_wide(w, a.v, c.v);
    fp_wide_add(t, w);
  }
  fp y;
  fp_reduce(y.v, t);
  fp_store(&d->y, csub2(y));
}

// finish ends an addition in G2 from P, R, and Q's and S1's factors: x holds U1
// (or X), y S1 (or Y), zz and zzz their products so far. p becomes PPP, t is
// scratch.
CALLED void finish(fp2* x, fp2* y, fp2* zz, fp2* zzz, fp2* p, fp2* r, fp2* t) {
  sqr_to(t, p);
  mul_to(zz, zz, t);
  mul_to(p, p, t);
  mul_to(x, x, t);
  mul_to(zzz, zzz, p);
  sqr_to(t, r);
  fp2 q = load(x);
  fp2 nx = new_x(load(t), q, load(p));
  store(x, nx);
  store(t, factor_of(q, nx));
  store(y, neg2(load(y)));
  fp2_dot(y, y, p, r, t);
}

// add_to is d += b in G2; s: three elements.
CALLED void add_to(xyzz<fp2>* d, const xyzz<fp2>* b, fp2* s) {
  if (is_identity(b)) return;
  if (is_identity(d)) {
    copy_point(d, b);
    return;
  }
  bool zp = false, zr = false;
  ROLLED for (u32 i = 0; i < 2; i++) {
    fp2 *dc = &d->x + i, *dz = &d->zz + i;
    const fp2 *bc = &b->x + i, *bz = &b->zz + i;
    mul_to(dc, dc, bz);
    mul_to(s + i, bc, dz);
    mul_to(dz, dz, bz);
    fp2 a = difference(load(s + i), load(dc));
    store(s + i, a);
    zp = zr;
    zr = is_zero(a);
  }
  if (zp) {
    if (zr) {
      copy_point(d, b);
      double_to(d, s);
    } else {
      set_identity(d);
    }
    return;
  }
  finish(&d->x, &d->y, &d->zz, &d->zzz, s, s + 1, s + 2);
}

// add_called is add_to where it is not worth a copy of its own.
CALLED void add_called(xyzz<fp>* d, const xyzz<fp>* b, fp* s) { add_to(d, b, s); }
FN void add_called(xyzz<fp2>* d, const xyzz<fp2>* b, fp2* s) { add_to(d, b, s); }

// ---- sums over the lanes of a warp

// lane_sum is a lane's memory while a warp adds up: an odd number of 16 bytes.
template <class F> struct lane_sum {
  xyzz<F> sum;
  F s[scratch_of<F>];
  uint4 pad[1 + (sizeof(xyzz<F>) + scratch_of<F> * sizeof(F)) / 16 % 2];
};

// add_together is d += b by eight lanes of a warp (those of mask, as role 0 … 7):
// the fourteen products in four steps, so that a sum of few points waits for
// four products at each of its levels, not for fourteen. Scratch is the first
// element of each of the eight lane_sums at c. d and b are in shared memory.
template <class F>
FN void add_together(xyzz<F>* d, const xyzz<F>* b, lane_sum<F>* c, u32 role, u32 mask) {
  bool none = is_identity(b), only = is_identity(d);
  warp_sync(mask);
  if (none) return;
  if (only) {
    if (role == 0) copy_point(d, b);
    warp_sync(mask);
    return;
  }
  // After step 0, scratch holds U1, U2, S1, S2, zz·zz', zzz·zzz'; then P and R
  // in place of U2 and S2; after step 1, P² and R² at 6 and 7; after step 2, d
  // has Q, PPP and zz; after step 3, 0 and 4 hold the two products of y.
  auto at = [c](u32 k) { return &c[k].s[0]; };
  F* dv = &d->x;
  const F* bv = &b->x;
  ROLLED for (u32 step = 0; step < 4; step++) {
    const F *x = nullptr, *y = nullptr;
    F* out = nullptr;
    if (step == 0 && role < 6) {
      u32 coord = role < 4 ? role >> 1 : 2 + (role & 1), zed = 2 + (role < 4 ? role >> 1 : role & 1);
      bool swap = role < 4 && (role & 1);
      x = (swap ? bv : dv) + coord;
      y = (swap ? static_cast<const F*>(dv) : bv) + zed;
      out = at(role);
    } else if (step == 1 && role < 2) {
      x = y = at(1 + 2 * role);
      out = at(6 + role);
    } else if (step == 2 && role < 3) {
      x = at(role == 0 ? 1 : role == 1 ? 0 : 4);
      y = at(6);
      out = dv + (role == 0 ? 1 : role == 1 ? 0 : 2);
    } else if (step == 3 && role < 3) {
      x = at(role == 0 ? 3 : role == 1 ? 2 : 5);
      y = role == 0 ? at(1) : &d->y;
      out = role == 0 ? at(0) : role == 1 ? at(4) : &d->zzz;
    }
    if (out) mul_to(out, x, y);
    warp_sync(mask);
    if (step == 0) {
      F p = difference(load(at(1)), load(at(0))), r = difference(load(at(3)), load(at(2)));
      warp_sync(mask);
      if (is_zero(p)) {
        if (role == 0) {
          if (is_zero(r)) {
            copy_point(d, b);
            double_to(d, c[0].s);
          } else {
            set_identity(d);
          }
        }
        warp_sync(mask);
        return;
      }
      if (role == 0) store(at(1), p);
      if (role == 1) store(at(3), r);
    } else if (step == 2 && role == 0) {
      F q = load(&d->x), v = new_x(load(at(7)), q, load(&d->y));
      store(at(1), factor_of(q, v));
      store(&d->x, v);
    } else if (step == 2 && role == 1) {
      store(at(2), neg2(load(at(2))));
    }
  }
  if (role == 0) store(&d->y, add_tight(csub2(load(at(0))), load(at(4))));
  warp_sync(mask);
}

// warp_sum adds up the sums of a warp's 32 lanes, into that of lane 0.
template <class F> FN void warp_sum(lane_sum<F>* m, u32 lane) {
  // Many sums are of nothing when scalars are small.
  if (ballot(~0u, lane > 0 && !is_identity(&m[lane].sum)) == 0) return;
  warp_sync();
  if (lane < 16) add_called(&m[lane].sum, &m[lane + 16].sum, m[lane].s);
  u32 group = lane / 8, role = lane % 8;
  ROLLED for (u32 d = 8; d > 0; d >>= 1) {
    warp_sync();
    ROLLED for (u32 i = group; i < d; i += 4)
      add_together(&m[i].sum, &m[i + d].sum, m + 8 * group, role, 0xffu << (8 * group));
  }
  warp_sync();
}

// ---- sums of affine points

// adder is a thread's memory while it adds affine points: two points of which
// one is in flight, the sum so far, and an element of scratch. An odd number of
// 16 bytes, so that the threads of a warp use all banks.
template <class F> struct adder {
  affine<F> in[2];
  xyzz<F> sum;
  F t;
  static constexpr u32 bytes = ((2 * sizeof(affine<F>) + sizeof(xyzz<F>) + sizeof(F)) / 16 | 1) * 16;
};

// add_affine is sum += in in G1; in is spoilt. The sum is not the identity.
// It returns false when the two are opposite: the sum is the identity then.
FN bool add_affine(adder<fp>* m, affine<fp>* in, const affine<fp>* from, bool negative) {
  fp *c = &in->x, *z = &m->sum.zz, *v = &m->sum.x;
  bool zp = false, zr = false;
  // P = x·ZZ − X, R = y·ZZZ − Y
  ROLLED for (u32 i = 0; i < 2; i++) {
    fp a = difference(mul(fp_load(c + i), fp_load(z + i)), fp_load(v + i));
    fp_store(c + i, a);
    zp = zr;
    zr = is_zero(a);
  }
  if (zp) {
    if (!zr) return false;
    // The sum equals the point: double the point, reading it again.
    fp y = fp_load(&from->y);
    fp_store(v, fp_load(&from->x));
    fp_store(v + 1, negative ? neg1(y) : y);
    set_one(z);
    set_one(z + 1);
    double_to(&m->sum, c);
    return true;
  }
  fp r2;
  ROLLED for (u32 i = 0; i < 2; i++) {
    r2 = sqr(fp_load(c + i));
    if (i == 0) fp_store(&m->t, r2);
  }
  // ZZ·PP, PPP = P·PP, Q = X·PP, ZZZ·PPP
  ROLLED for (u32 i = 0; i < 4; i++) {
    fp* at = i == 0 ? z : i == 1 ? c : i == 2 ? v : z + 1;
    fp_store(at, mul(fp_load(at), fp_load(i == 3 ? c : &m->t)));
  }
  {
    fp q = fp_load(v);
    fp x = new_x(r2, q, fp_load(c));
    fp_store(v, x);
    fp_store(&m->t, factor_of(q, x));
    fp_store(v + 1, neg2(fp_load(v + 1)));
  }
  u32 t[2 * FP_WORDS];
  UNROLL for (u32 k = 0; k < 2 * FP_WORDS; k++) t[k] = 0;
  ROLLED for (u32 i = 0; i < 2; i++) {
    fp a = fp_load(i ? v + 1 : c + 1), b = fp_load(i ? c : &m->t);
    u32 w[2 * FP_WORDS];
    fp_wide(w, a.v, b.v);
    fp_wide_add(t, w);
  }
  fp y;
  fp_reduce(y.v, t);
  fp_store(v + 1, csub2(y));
  return true;
}

FN bool add_affine(adder<fp2>* m, affine<fp2>* in, const affine<fp2>* from, bool negative) {
  fp2 *c = &in->x, *z = &m->sum.zz, *v = &m->sum.x;
  bool zp = false, zr = false;
  ROLLED for (u32 i = 0; i < 2; i++) {
    mul_to(c + i, c + i, z + i);
    fp2 a = difference(load(c + i), load(v + i));
    store(c + i, a);
    zp = zr;
    zr = is_zero(a);
  }
  if (zp) {
    if (!zr) return false;
    fp2 y = load(&from->y);
    store(v, load(&from->x));
    store(v + 1, negative ? neg1(y) : y);
    set_one(z);
    set_one(z + 1);
    double_to(&m->sum, c);
    return true;
  }
  finish(v, v + 1, z, z + 1, c, c + 1, &m->t);
  return true;
}

template <class F> FN void fetch(affine<F>* to, const affine<F>* from) {
  UNROLL for (u32 k = 0; k < sizeof(affine<F>) / 16; k++)
    copy16(reinterpret_cast<uint4*>(to) + k, reinterpret_cast<const uint4*>(from) + k);
}

// add_listed adds to m->sum the points list[0], list[step] … of n, negated where bit 31 is
// set, fetching each two ahead. identity says what the sum is so far; the
// result says it afterwards, and m->sum is not set then.
template <class F> FN bool add_listed(adder<F>* m, const affine<F>* points, const u32* list, u64 step, u32 n, bool identity) {
  u32 e0 = 0, e1 = 0, e2 = 0;
  constexpr u32 INDEX = 0x7fffffff;
  if (n > 0) {
    e0 = list[0];
    fetch(&m->in[0], points + (e0 & INDEX));
  }
  copy_commit();
  if (n > 1) {
    e1 = list[step];
    fetch(&m->in[1], points + (e1 & INDEX));
  }
  copy_commit();
  if (n > 2) e2 = list[2 * step];
  u32 stage = 0;
  ROLLED for (u32 j = 0; j < n; j++) {
    copy_wait<1>();
    affine<F>* in = &m->in[stage];
    bool negative = e0 >> 31;
    {
      F y = load(&in->y);
      if (!is_raw_zero(y)) {
        if (negative) y = neg1(y);
        if (identity) {
          store(&m->sum.x, load(&in->x));
          store(&m->sum.y, y);
          set_one(&m->sum.zz);
          set_one(&m->sum.zzz);
          identity = false;
        } else {
          if (negative) store(&in->y, y);
          identity = !add_affine(m, in, points + (e0 & INDEX), negative);
        }
      }
    }
    e0 = e1;
    e1 = e2;
    if (j + 2 < n) {
      fetch(in, points + (e2 & INDEX));
      if (j + 3 < n) e2 = list[(j + 3) * step];
    }
    copy_commit();
    stage ^= 1;
  }
  return identity;
}

}  // namespace CURVE_NS
