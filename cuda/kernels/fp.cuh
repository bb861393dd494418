// The base field of the curve: Montgomery form, R = 2^(32·FP_WORDS), values in
// lazy ranges. Bounds are given in multiples of the prime p; rho is R/p, which
// is 9.84 for BLS12-381 and 5.28 for BN254. A product of a < A·p and b < B·p is
// below (1 + A·B/rho)·p, and there is no last subtraction.
//
// The two primes leave different room, so that what has to be brought down, and
// when, differs. fpgen's ranges_test.go goes through the formulas of the points
// with the bounds that stand here and checks that they hold.
#pragma once
#include "rt.cuh"
#if CURVE == 381
#include "fp_381.cuh"
#else
#include "fp_254.cuh"
#endif

namespace CURVE_NS {

constexpr u32 FP_QUADS = FP_WORDS / 4;  // of 16 bytes

struct fp {
  u32 v[FP_WORDS];
};
struct fp_wide_t {
  u32 v[2 * FP_WORDS];
};

// Loads and stores of 16 bytes; step is the distance of the parts in uint4.
template <u32 STEP = 1> FN fp fp_load(const void* p) {
  const uint4* q = static_cast<const uint4*>(p);
  fp r;
  UNROLL for (u32 k = 0; k < FP_QUADS; k++) {
    uint4 x = q[k * STEP];
    r.v[4 * k] = x.x;
    r.v[4 * k + 1] = x.y;
    r.v[4 * k + 2] = x.z;
    r.v[4 * k + 3] = x.w;
  }
  return r;
}
template <u32 STEP = 1> FN void fp_store(void* p, const fp& a) {
  uint4* q = static_cast<uint4*>(p);
  UNROLL for (u32 k = 0; k < FP_QUADS; k++)
    q[k * STEP] = make_uint4(a.v[4 * k], a.v[4 * k + 1], a.v[4 * k + 2], a.v[4 * k + 3]);
}

FN fp fp_zero() {
  fp r;
  UNROLL for (u32 i = 0; i < FP_WORDS; i++) r.v[i] = 0;
  return r;
}
FN fp fp_const(const u32 (&k)[FP_WORDS]) {
  fp r;
  UNROLL for (u32 i = 0; i < FP_WORDS; i++) r.v[i] = k[i];
  return r;
}
FN fp fp_one() {
  const u32 k[FP_WORDS] = FP_ONE;
  return fp_const(k);
}

FN fp mul(const fp& a, const fp& b) {
  fp r;
  u32 t[2 * FP_WORDS];
  fp_wide(t, a.v, b.v);
  fp_reduce(r.v, t);
  return r;
}
FN fp sqr(const fp& a) {
  fp r;
  u32 t[2 * FP_WORDS];
  fp_wide_square(t, a.v);
  fp_reduce(r.v, t);
  return r;
}
FN fp add(const fp& a, const fp& b) {
  fp r;
  fp_add(r.v, a.v, b.v);
  return r;
}
#define FP_BINARY(name, f) \
  FN fp name(const fp& a, const fp& b) { fp r; f(r.v, a.v, b.v); return r; }
#define FP_UNARY(name, f) \
  FN fp name(const fp& a) { fp r; f(r.v, a.v); return r; }
FP_BINARY(sub2, fp_sub2)    // a − b + 2p, for b ≤ 2p
FP_UNARY(neg1, fp_neg1)     // p − a, for a ≤ p
FP_UNARY(neg2, fp_neg2)     // 2p − a, for a ≤ 2p
FP_UNARY(csub1, fp_csub1)   // a, less p if a ≥ p
FP_UNARY(csub2, fp_csub2)   // a, less 2p if a ≥ 2p
#if CURVE == 381
FP_BINARY(sub5, fp_sub5)    // a − b + 5p, for b ≤ 5p
FP_BINARY(sub6, fp_sub6)
FP_UNARY(csub4, fp_csub4)
#endif

FN bool is_raw_zero(const fp& a) {
  u32 t = 0;
  UNROLL for (u32 i = 0; i < FP_WORDS; i++) t |= a.v[i];
  return t == 0;
}
FN bool is_raw(const fp& a, const u32 (&k)[FP_WORDS]) {
  u32 t = 0;
  UNROLL for (u32 i = 0; i < FP_WORDS; i++) t |= a.v[i] ^ k[i];
  return t == 0;
}

// is_zero says whether a ≡ 0 mod p, for a < 4p. The low word decides nearly always.
FN bool is_zero(const fp& a) {
  const u32 k1[FP_WORDS] = FP_1P, k2[FP_WORDS] = FP_2P, k3[FP_WORDS] = FP_3P;
  u32 l = a.v[0];
  if (l != 0 && l != k1[0] && l != k2[0] && l != k3[0]) return false;
  return is_raw_zero(a) || is_raw(a, k1) || is_raw(a, k2) || is_raw(a, k3);
}

// What differs between the primes. What is stored of a point is below 2p for both.
#if CURVE == 381
// difference: a − b for a < 2p, b ≤ 2p. Below 4p.
FN fp difference(const fp& a, const fp& b) { return sub2(a, b); }
// new_x: r2 − 2q − ppp for r2 < 3p, 2q + ppp ≤ 5p. Below 2p.
FN fp new_x(const fp& r2, const fp& q, const fp& ppp) { return csub2(csub4(sub5(r2, add(add(q, q), ppp)))); }
// new_x_tight: the same for r2, q, ppp < 2p.
FN fp new_x_tight(const fp& r2, const fp& q, const fp& ppp) { return csub2(csub4(sub6(r2, add(add(q, q), ppp)))); }
#else
// difference: a − b for a < 2p, b ≤ 2p. Below 2p.
FN fp difference(const fp& a, const fp& b) { return csub2(sub2(a, b)); }
// new_x: r2 − 2q − ppp, each below 2p. Below 2p. There is no room for r2 + 5p,
// so it goes step by step.
FN fp new_x(const fp& r2, const fp& q, const fp& ppp) {
  fp t = csub2(sub2(r2, ppp));
  return csub2(sub2(t, csub2(add(q, q))));
}
FN fp new_x_tight(const fp& r2, const fp& q, const fp& ppp) { return new_x(r2, q, ppp); }
#endif
// factor_of: q − x as a factor, for q < 2p, x ≤ 2p. Below 4p.
FN fp factor_of(const fp& q, const fp& x) { return sub2(q, x); }

// Tight arithmetic: in and out below 2p, of either prime.
FN fp add_tight(const fp& a, const fp& b) { return csub2(add(a, b)); }
FN fp sub_tight(const fp& a, const fp& b) { return csub2(sub2(a, b)); }

// The same names for both fields, on memory and on values.
CALLED void fp_mul_to(fp* d, const fp* a, const fp* b) { fp_store(d, mul(fp_load(a), fp_load(b))); }
FN void mul_to(fp* d, const fp* a, const fp* b) { fp_mul_to(d, a, b); }
FN void sqr_to(fp* d, const fp* a) { fp_mul_to(d, a, a); }
FN fp load(const fp* p) { return fp_load(p); }
FN void store(fp* p, const fp& a) { fp_store(p, a); }
FN void set_one(fp* p) { fp_store(p, fp_one()); }
FN void set_zero(fp* p) { fp_store(p, fp_zero()); }

// inverse is a^(p−2), by squaring; for tests and tables. 0 gives 0.
CALLED void fp_inverse(fp* d, const fp* a) {
  const u32 k[FP_WORDS] = FP_1P;
  fp x = fp_load(a), r = fp_one();
  u32 word = 0;
  ROLLED for (int i = 32 * FP_WORDS - 1; i >= 0; i--) {
    if ((i & 31) == 31) {
      UNROLL for (u32 j = 0; j < FP_WORDS; j++)
        if (j == u32(i >> 5)) word = j == 0 ? k[0] - 2 : k[j];
    }
    r = sqr(r);
    if ((word >> (i & 31)) & 1) r = mul(r, x);
  }
  fp_store(d, r);
}

}  // namespace CURVE_NS
