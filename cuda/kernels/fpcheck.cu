// For tests and measurements: field operations one at a time, sums of two
// points by each way there is, and points and scalars made on the device.
#include "ec.cuh"

namespace CURVE_NS {

// fpcheck_fp: out = op(a, b, c), element by element, on values as they are.
KERNEL(fpcheck_fp)(u32 op, u32 n, const fp* a, const fp* b, const fp* c, fp* out) {
  u32 t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  fp x = fp_load(a + t), y = fp_load(b + t), z = fp_load(c + t), r = fp_zero();
  switch (op) {
    case 0: fp_mul_to(out + t, a + t, b + t); return;
    case 1: r = sqr(x); break;
    case 2: r = difference(x, y); break;
    case 3: r = new_x(x, y, z); break;
    case 4: r = new_x_tight(x, y, z); break;
    case 5: r = factor_of(x, y); break;
    case 6: r = neg1(x); break;
    case 7: r = neg2(x); break;
    case 8: r = csub1(x); break;
    case 9: r = csub2(x); break;
    case 10: r.v[0] = is_zero(x); break;
    case 11: fp_inverse(out + t, a + t); return;
    case 12: {  // the product by the other way
      u32 w[2 * FP_WORDS];
      fp_wide_school(w, x.v, y.v);
      fp_reduce(r.v, w);
      break;
    }
  }
  fp_store(out + t, r);
}
EXPORT(fpcheck_fp)

// fpcheck_fp2: 0: a·b; 1: a·b + c·e; 2: a².
KERNEL(fpcheck_fp2)(u32 op, u32 n, const fp2* a, const fp2* b, const fp2* c, const fp2* e, fp2* out) {
  u32 t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  if (op == 2)
    fp2_square(out + t, a + t);
  else
    fp2_dot(out + t, a + t, b + t, op ? c + t : nullptr, op ? e + t : nullptr);
}
EXPORT(fpcheck_fp2)

// ---- points: out[i] = A[i mod 2^log] + B[i / 2^log], affine, by one inversion
// for per points a thread. No two points of A and B have the same x.

FN void invert_to(fp* d, const fp* a, fp*) { fp_inverse(d, a); }
// 1/(a0 + a1·u) = (a0 − a1·u)/(a0² + a1²)
FN void invert_to(fp2* d, const fp2* a, fp2* s) {
  fp_mul_to(&s->c0, &a->c0, &a->c0);
  fp_mul_to(&s->c1, &a->c1, &a->c1);
  fp_store(&s->c0, add_tight(fp_load(&s->c0), fp_load(&s->c1)));
  fp_inverse(&s->c0, &s->c0);
  fp_mul_to(&d->c0, &a->c0, &s->c0);
  fp_store(&s->c1, csub2(neg2(fp_load(&a->c1))));
  fp_mul_to(&d->c1, &s->c1, &s->c0);
}

template <class F>
FN void make_points(F* tmp, const affine<F>* a, const affine<F>* b, u32 log, u32 per, affine<F>* out, u32 n) {
  u64 from = (u64(blockIdx.x) * blockDim.x + threadIdx.x) * per, to = from + per < n ? from + per : n;
  F *all = tmp, *x = tmp + 1, *y = tmp + 2;
  u32 mask = (1u << log) - 1;
  set_one(all);
  ROLLED for (u64 i = from; i < to; i++) {
    store(&out[i].x, load(all));
    store(x, sub_tight(load(&b[i >> log].x), load(&a[i & mask].x)));
    mul_to(all, all, x);
  }
  invert_to(all, all, x);
  ROLLED for (u64 i = to; i-- > from;) {
    const affine<F>*p = a + (i & mask), *q = b + (i >> log);
    mul_to(x, all, &out[i].x);  // 1/(xq − xp)
    store(y, sub_tight(load(&q->x), load(&p->x)));
    mul_to(all, all, y);
    store(y, sub_tight(load(&q->y), load(&p->y)));
    mul_to(y, y, x);  // the slope
    sqr_to(x, y);
    F x3 = csub1(sub_tight(sub_tight(load(x), load(&p->x)), load(&q->x)));
    store(&out[i].x, x3);
    store(x, sub_tight(load(&p->x), x3));
    mul_to(y, y, x);
    store(&out[i].y, csub1(sub_tight(load(y), load(&p->y))));
  }
}

KERNEL_BOUNDS(fpcheck_points1, 64, 1)(const affine<fp>* a, const affine<fp>* b, u32 log, u32 per, affine<fp>* out, u32 n) {
  SHARED(fp, tmp, 64 * 3);
  make_points(tmp + threadIdx.x * 3, a, b, log, per, out, n);
}
EXPORT(fpcheck_points1)
KERNEL_BOUNDS(fpcheck_points2, 64, 1)(const affine<fp2>* a, const affine<fp2>* b, u32 log, u32 per, affine<fp2>* out, u32 n) {
  SHARED(fp2, tmp, 64 * 3);
  make_points(tmp + threadIdx.x * 3, a, b, log, per, out, n);
}
EXPORT(fpcheck_points2)

// ---- scalars: number i of a seed, below r, by splitmix64

FN u64 mix(u64 z) {
  z += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

KERNEL(fpcheck_scalars)(u64 seed, u64 r0, u64 r1, u64 r2, u64 r3, u64 mask, u64* out, u32 n) {
  u32 t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  u64 r[4] = {r0, r1, r2, r3}, s[4], d[4], borrow = 0;
  UNROLL for (u32 k = 0; k < 4; k++) s[k] = mix(seed + 4ull * t + k);
  s[3] &= mask;
  UNROLL for (u32 k = 0; k < 4; k++) {
    u64 x = s[k] - r[k];
    u64 under = s[k] < r[k];
    d[k] = x - borrow;
    borrow = under | (x < borrow);
  }
  UNROLL for (u32 k = 0; k < 4; k++) out[4ull * t + k] = borrow ? s[k] : d[k];
}
EXPORT(fpcheck_scalars)

// ---- fpcheck_add: out = a + b for n pairs of sums, by add_to (ways 0), by
// add_together (1), or 2a by double_to (2); a warp a pair. Canonical.

template <class F> FN void add_pairs(lane_sum<F>* m, u32 way, u32 n, const xyzz<F>* a, const xyzz<F>* b, xyzz<F>* out) {
  u32 lane = threadIdx.x % 32, i = blockIdx.x;
  if (i >= n) return;
  if (lane == 0) copy_point(&m[0].sum, a + i);
  if (lane == 1) copy_point(&m[1].sum, b + i);
  warp_sync();
  if (way == 1) {
    if (lane < 8) add_together(&m[0].sum, &m[1].sum, m, lane, 0xff);
  } else if (lane == 0) {
    if (way == 0)
      add_called(&m[0].sum, &m[1].sum, m[0].s);
    else
      double_to(&m[0].sum, m[0].s);
  }
  warp_sync();
  if (lane != 0) return;
  F* o = &out[i].x;
  const F* v = &m[0].sum.x;
  ROLLED for (u32 k = 0; k < 4; k++) store(o + k, csub1(load(v + k)));
}

KERNEL_BOUNDS(fpcheck_add1, 32, 1)(u32 way, u32 n, const xyzz<fp>* a, const xyzz<fp>* b, xyzz<fp>* out) {
  SHARED(lane_sum<fp>, m, 32);
  add_pairs(m, way, n, a, b, out);
}
EXPORT(fpcheck_add1)
KERNEL_BOUNDS(fpcheck_add2, 32, 1)(u32 way, u32 n, const xyzz<fp2>* a, const xyzz<fp2>* b, xyzz<fp2>* out) {
  SHARED(lane_sum<fp2>, m, 32);
  add_pairs(m, way, n, a, b, out);
}
EXPORT(fpcheck_add2)

// ---- rates: each thread makes 2·steps products (op 0, 2: the other way),
// squares (1), of values that it reads and writes.
KERNEL_BOUNDS(fpcheck_rate, 128, 4)(u32 op, u32 steps, fp* io) {
  u32 t = blockIdx.x * blockDim.x + threadIdx.x;
  fp x = fp_load(io + t), y = fp_load(io + (t ^ 1));
  if (op == 0) {
    ROLLED for (u32 i = 0; i < 2 * steps; i++) {
      fp z = mul(x, y);
      x = y;
      y = z;
    }
  } else if (op == 1) {
    ROLLED for (u32 i = 0; i < 2 * steps; i++) {
      fp z = sqr(x);
      x = y;
      y = z;
    }
  } else {
    ROLLED for (u32 i = 0; i < 2 * steps; i++) {
      u32 w[2 * FP_WORDS];
      fp z;
      fp_wide_school(w, x.v, y.v);
      fp_reduce(z.v, w);
      x = y;
      y = z;
    }
  }
  fp_store(io + t, add(x, y));
}
EXPORT(fpcheck_rate)

}  // namespace CURVE_NS
