// Sparse matrices of a constraint system times a witness, in Montgomery form.
// See matrix.go for how a matrix lies in memory.
//
// A thread has a row of few terms, in the rows' order, so that what it reads of
// the matrix and what it writes lies beside its neighbours'. Longer rows are cut
// into chunks of at most so many terms, a warp each, so that one row of any
// length takes no longer than its terms; then a warp adds a row's chunks.
#include "rt.cuh"
#if CURVE == 381
#include "fr_381.cuh"
#else
#include "fr_254.cuh"
#endif

namespace CURVE_NS {

constexpr u32 MATRIX_THREADS = 256, MATRIX_SHORT = 8;  // terms of a row that a thread takes

FN void get(u32* x, const uint4* p, u64 i) {
  uint4 a = p[2 * i], b = p[2 * i + 1];
  x[0] = a.x, x[1] = a.y, x[2] = a.z, x[3] = a.w;
  x[4] = b.x, x[5] = b.y, x[6] = b.z, x[7] = b.w;
}
FN void set(uint4* p, u64 i, const u32* x) {
  p[2 * i] = make_uint4(x[0], x[1], x[2], x[3]);
  p[2 * i + 1] = make_uint4(x[4], x[5], x[6], x[7]);
}

// add_term adds a coefficient times a wire to sum, which is and stays below 2r.
// one and minus are the indices of 1 and −1.
FN void add_term(u32* sum, uint2 term, const uint4* coeffs, const uint4* w, u32 one, u32 minus) {
  u32 x[8];
  get(x, w, term.x);
  if (x[0] | x[1] | x[2] | x[3] | x[4] | x[5] | x[6] | x[7]) {
    if (term.y == minus) {
      u32 y[8];
      fr_sub_2r(y, sum, x);
      UNROLL for (u32 j = 0; j < 8; j++) sum[j] = y[j];
    } else {
      if (term.y != one) {
        u32 c[8], y[8];
        get(c, coeffs, term.y);
        fr_mont(y, x, c);
        UNROLL for (u32 j = 0; j < 8; j++) x[j] = y[j];
      }
      fr_add_2r(sum, sum, x);
    }
  }
}

// matrix_rows writes rows first … first + n − 1 to out, but those of more than
// MATRIX_SHORT terms. From row inputs_from on there are inputs rows of one wire
// each, wire 0 first; what is behind all rows is 0.
KERNEL_BOUNDS(matrix_rows, MATRIX_THREADS, 1)(const u32* rows, const uint2* terms, const uint4* coeffs, const uint4* w, uint4* out,
    u32 first, u32 n, u32 n_rows, u32 inputs_from, u32 inputs, u32 one, u32 minus) {
  u32 at = blockIdx.x * MATRIX_THREADS + threadIdx.x;
  if (at < n) {
    u32 i = first + at, from = 0, to = 0;
    u32 sum[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    if (i < n_rows) from = rows[i], to = rows[i + 1];
    if (i >= inputs_from && i - inputs_from < inputs) get(sum, w, i - inputs_from);
    if (to - from <= MATRIX_SHORT) {
      ROLLED for (u32 k = from; k < to; k++) add_term(sum, terms[k], coeffs, w, one, minus);
      fr_cut_r(sum, sum);
      set(out, at, sum);
    }
  }
}
EXPORT(matrix_rows)

// warp_sum is the sum of all lanes' x, in all lanes; below 2r.
FN void warp_sum(u32* x) {
  ROLLED for (u32 d = 16; d; d /= 2) {
    u32 y[8];
    UNROLL for (u32 j = 0; j < 8; j++) y[j] = shfl_xor(~0u, x[j], d);
    fr_add_2r(x, x, y);
  }
}

// matrix_chunks adds the terms of n chunks, given by where they begin and end, a
// warp each.
KERNEL_BOUNDS(matrix_chunks, MATRIX_THREADS, 1)(const uint2* chunks, u32 n, const uint2* terms, const uint4* coeffs, const uint4* w,
    uint4* sums, u32 one, u32 minus) {
  u32 at = (blockIdx.x * MATRIX_THREADS + threadIdx.x) / 32;
  if (at < n) {
    uint2 c = chunks[at];
    u32 sum[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    ROLLED for (u32 k = c.x + (threadIdx.x & 31); k < c.y; k += 32) add_term(sum, terms[k], coeffs, w, one, minus);
    warp_sync();
    warp_sum(sum);
    if ((threadIdx.x & 31) == 0) set(sums, at, sum);
  }
}
EXPORT(matrix_chunks)

// matrix_long adds the chunks of n long rows, a warp each: row x has chunks y …
// y + z − 1, and sums begins with chunk skip. out begins with row first.
KERNEL_BOUNDS(matrix_long, MATRIX_THREADS, 1)(const uint4* longs, u32 n, const uint4* sums, u32 skip, uint4* out, u32 first) {
  u32 at = (blockIdx.x * MATRIX_THREADS + threadIdx.x) / 32;
  if (at < n) {
    uint4 l = longs[at];
    u32 sum[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    ROLLED for (u32 k = (threadIdx.x & 31); k < l.z; k += 32) {
      u32 x[8];
      get(x, sums, l.y - skip + k);
      fr_add_2r(sum, sum, x);
    }
    warp_sync();
    warp_sum(sum);
    fr_cut_r(sum, sum);
    if ((threadIdx.x & 31) == 0) set(out, l.x - first, sum);
  }
}
EXPORT(matrix_long)

// matrix_product is z = x∘y.
KERNEL_BOUNDS(matrix_product, MATRIX_THREADS, 1)(const uint4* x, const uint4* y, uint4* z, u32 n) {
  u32 i = blockIdx.x * MATRIX_THREADS + threadIdx.x;
  if (i < n) {
    u32 a[8], b[8], c[8];
    get(a, x, i);
    get(b, y, i);
    fr_mont(c, a, b);
    fr_cut_r(c, c);
    set(z, i, c);
  }
}
EXPORT(matrix_product)

// matrix_check puts the first row in which x∘y is not z into *row, if there is
// one below what is there. The vectors begin with row first.
KERNEL_BOUNDS(matrix_check, MATRIX_THREADS, 1)(const uint4* x, const uint4* y, const uint4* z, u32 first, u32 n, u32* row) {
  u32 i = blockIdx.x * MATRIX_THREADS + threadIdx.x;
  if (i < n) {
    u32 a[8], b[8], c[8], d = 0;
    get(a, x, i);
    get(b, y, i);
    fr_mont(c, a, b);
    fr_cut_r(c, c);
    get(a, z, i);
    UNROLL for (u32 j = 0; j < 8; j++) d |= a[j] ^ c[j];
    if (d) atomic_min(row, first + i);
  }
}
EXPORT(matrix_check)

}  // namespace CURVE_NS
