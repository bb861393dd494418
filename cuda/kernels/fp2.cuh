// Fp2 = Fp[u]/(u² + 1), the field of G2's coordinates on both curves. All
// values in memory have components below 2p, but for what a comment excepts.
//
// Products take operands in memory and are called, not inlined: four times the
// words do not fit the registers, and one copy of the code fits the
// instruction cache.
#pragma once
#include "fp.cuh"

namespace CURVE_NS {

struct fp2 {
  fp c0, c1;
};

FN fp2 fp2_load(const fp2* p) { return {fp_load(&p->c0), fp_load(&p->c1)}; }
FN void fp2_store(fp2* p, const fp2& a) {
  fp_store(&p->c0, a.c0);
  fp_store(&p->c1, a.c1);
}

// fp2_dot is d = a·b, or a·b + c·e when c is not 0, with one reduction for each
// component: Karatsuba's three wide products of a pair are summed unreduced.
//   t1 = Σ (a0 + a1)(b0 + b1) − a0·b0 − a1·b1 = Σ a0·b1 + a1·b0
//   t0 = OFFSET + Σ a0·b0 − a1·b1, where OFFSET ≥ Σ a1·b1 is a multiple of p.
// Components below 2p, but e may be below 4p on BLS12-381: OFFSET is 12·p²
// there, t0 and t1 below 24·p², the results below 3.5p and 2p after csub2. On
// BN254 8·p², 16·p², 4.1p: csub2 twice. d may be any of the operands.
CALLED void fp2_dot(fp2* d, const fp2* a, const fp2* b, const fp2* c, const fp2* e) {
  const u32 offset[2 * FP_WORDS] = FP_OFFSET;
  u32 t0[2 * FP_WORDS], t1[2 * FP_WORDS];
  UNROLL for (u32 i = 0; i < 2 * FP_WORDS; i++) {
    t0[i] = offset[i];
    t1[i] = 0;
  }
  u32 pairs = c ? 2 : 1;
  ROLLED for (u32 pair = 0; pair < pairs; pair++) {
    ROLLED for (u32 k = 0; k < 3; k++) {
      fp x = fp_load(k == 1 ? &a->c1 : &a->c0), y = fp_load(k == 1 ? &b->c1 : &b->c0);
      if (k == 2) {
        x = add(x, fp_load(&a->c1));
        y = add(y, fp_load(&b->c1));
      }
      u32 w[2 * FP_WORDS];
      fp_wide(w, x.v, y.v);
      if (k == 2) {
        fp_wide_add(t1, w);
      } else {
        fp_wide_sub(t1, w);
        if (k == 0)
          fp_wide_add(t0, w);
        else
          fp_wide_sub(t0, w);
      }
    }
    a = c;
    b = e;
  }
  fp* out = &d->c0;
  ROLLED for (u32 k = 0; k < 2; k++) {
    fp r;
    fp_reduce(r.v, t0);
    r = csub2(r);
#if CURVE == 254
    r = csub2(r);
#endif
    fp_store(out + k, r);
    UNROLL for (u32 i = 0; i < 2 * FP_WORDS; i++) t0[i] = t1[i];
  }
}

// fp2_square is (a0 + a1)(a0 − a1) + 2·a0·a1·u: factors below 4p and 2p. d may be a.
CALLED void fp2_square(fp2* d, const fp2* a) {
  fp a0 = fp_load(&a->c0), y = fp_load(&a->c1);
  fp x = add(a0, y), z = sub_tight(a0, y);
  a0 = add(a0, a0);
  fp* out = &d->c0;
  ROLLED for (u32 k = 0; k < 2; k++) {
    fp_store(out + k, csub2(mul(x, z)));
    x = a0;
    z = y;
  }
}

// The same names for both fields, on memory and on values.
FN void mul_to(fp2* d, const fp2* a, const fp2* b) { fp2_dot(d, a, b, nullptr, nullptr); }
FN void sqr_to(fp2* d, const fp2* a) { fp2_square(d, a); }
FN fp2 load(const fp2* p) { return fp2_load(p); }
FN void store(fp2* p, const fp2& a) { fp2_store(p, a); }
FN fp2 add_tight(const fp2& a, const fp2& b) { return {add_tight(a.c0, b.c0), add_tight(a.c1, b.c1)}; }
FN fp2 sub_tight(const fp2& a, const fp2& b) { return {sub_tight(a.c0, b.c0), sub_tight(a.c1, b.c1)}; }
FN fp2 neg1(const fp2& a) { return {neg1(a.c0), neg1(a.c1)}; }
FN fp2 neg2(const fp2& a) { return {neg2(a.c0), neg2(a.c1)}; }
FN fp2 csub2(const fp2& a) { return {csub2(a.c0), csub2(a.c1)}; }
FN fp2 csub1(const fp2& a) { return {csub1(a.c0), csub1(a.c1)}; }
FN bool is_zero(const fp2& a) { return is_zero(a.c0) && is_zero(a.c1); }
FN bool is_raw_zero(const fp2& a) { return is_raw_zero(a.c0) && is_raw_zero(a.c1); }
FN void set_one(fp2* p) { fp2_store(p, {fp_one(), fp_zero()}); }
FN void set_zero(fp2* p) { fp2_store(p, {fp_zero(), fp_zero()}); }

}  // namespace CURVE_NS
