// Number theoretic transforms of 2^log elements in Montgomery form (the
// transform is linear, so their factors need not be), in place.
//
//   forward  takes bit-reversed coefficients to values at shift·g^i, i ascending
//   inverse  takes values at shift·g^i, i ascending, to bit-reversed coefficients
//
// so that no pass reverses bits, and what goes forth and back goes in the order
// that it came. Both step through levels m = 1, 2, 4, … n/2 (back: n/2 … 1) of
// pairs (i, i + m), whose factor depends on the pair's position i mod m alone;
// with a coset the factor of position i at level m is shift^(n/2m)·g^(i·n/2m), so
// that the powers of the shift cost no products (J. W. Cooley and J. W. Tukey,
// "An algorithm for the machine calculation of complex Fourier series", 1965; its
// mirror image is W. M. Gentleman and G. Sande's, 1966).
//
// A pass over memory does up to 10 levels in tiles of 2^10 elements in shared
// memory, a round of it 3 levels on 8 elements that a thread has in registers.
// The lowest 5 to 10 levels are within contiguous tiles (first, last). Each
// further pass does 6 or 9 levels, in whole rounds of 3, on tiles of 2^6 rows
// of 16 neighbours or 2^9 rows of 2.
//
// Products are V. Shoup's, by factors with a companion (64 bytes). A transform
// of 2^k takes k·2^(k−1) of them, without a coset 7·2^(k−3) fewer. 1/n is no
// product: r is 1 modulo 2^28, so a division by 2^s takes a row of eight 32-bit
// products and a shift, in the last store.
#include "ntt.cuh"

namespace CURVE_NS {

// Rounds of the lowest levels: three levels each, then two each.
struct LowRounds {
  u32 bits, threes, count;
};
FN LowRounds low_rounds(u32 bits) {
  const u32 count = (bits + 2) / 3;
  return {bits, bits - 2 * count, count};
}
// window is the lowest bit in which the elements of round i differ.
FN u32 window(const LowRounds& l, u32 i) { return i < l.threes ? 3 * i : l.threes + 2 * i - 1; }
FN Round low_round(const LowRounds& l, u32 i, bool plain, u32 one) {
  const u32 p = window(l, i);
  return round_at(1u << p, threadIdx.x & ((1u << p) - 1), plain, one, i >= l.threes);
}

// ntt_forward_first does levels 1 … 2^(bits−1), 5 ≤ bits ≤ 10. plain: without a
// coset, and one is then the place of 1.
KERNEL_BOUNDS(ntt_forward_first, 128, 4)(const uint4* in, uint4* out, const uint4* __restrict__ table, u32 bits,
    u32 plain, u32 one) {
  DYNAMIC_SHARED(uint4, tile);
  const u32 base = blockIdx.x << TILE_LOG;
  const LowRounds l = low_rounds(bits);
  u32 x[8][8];
  UNROLL for (u32 k = 0; k < 8; k++) load(x[k], in, base + k * TILE_THREADS + threadIdx.x);
  UNROLL for (u32 k = 0; k < 8; k++) keep(tile, spot(k * TILE_THREADS + threadIdx.x), x[k]);
  block_sync();
  fetch_all(x, tile, 0);
  BETWEEN("fetched first");
  u32 i = 0;
  if (plain) {
    butterflies<false, true>(x, table, low_round(l, 0, true, one));
    keep_all(tile, 0, x);
    block_sync();
    fetch_all(x, tile, window(l, 1));
    BETWEEN("fetched second");
    i = 1;
  }
  ROLLED for (;;) {
    butterflies<false, false>(x, table, low_round(l, i, plain != 0, one));
    if (i == l.count - 1) break;
    keep_all(tile, window(l, i), x);
    block_sync();
    i++;
    fetch_all(x, tile, window(l, i));
    BETWEEN("fetched");
  }
  const u32 p = window(l, i), at = base + place(threadIdx.x, p);
  UNROLL for (u32 k = 0; k < 8; k++) store(out, at + (k << p), x[k]);
}
EXPORT(ntt_forward_first)

// ntt_inverse_last does levels 2^(bits−1) … 1, 5 ≤ bits ≤ 10, then divides by
// 2^shift and, if there is a vector from, subtracts from that.
KERNEL_BOUNDS(ntt_inverse_last, 128, 4)(const uint4* in, uint4* out, const uint4* __restrict__ table, u32 bits,
    u32 plain, u32 shift, const uint4* from) {
  DYNAMIC_SHARED(uint4, tile);
  const u32 base = blockIdx.x << TILE_LOG;
  const LowRounds l = low_rounds(bits);
  u32 x[8][8];
  u32 i = l.count - 1;
  const u32 p = window(l, i), at = base + place(threadIdx.x, p);
  UNROLL for (u32 k = 0; k < 8; k++) load(x[k], in, at + (k << p));
  BETWEEN("loaded");
  ROLLED for (;;) {
    butterflies<true, false>(x, table, low_round(l, i, plain != 0, 0));
    keep_all(tile, window(l, i), x);
    block_sync();
    if (i == (plain ? 1 : 0)) break;
    i--;
    fetch_all(x, tile, window(l, i));
    BETWEEN("fetched");
  }
  if (plain) {
    fetch_all(x, tile, 0);
    butterflies<true, true>(x, table, low_round(l, 0, true, 0));
    keep_all(tile, 0, x);
    block_sync();
  }
  u32 next[8] = {};
  if (from) load(next, from, base + threadIdx.x);

  ROLLED
  for (u32 k = 0; k < 8; k++) {
    const u32 e = k * TILE_THREADS + threadIdx.x;
    u32 y[8], z[8];
    UNROLL for (u32 j = 0; j < 8; j++) z[j] = next[j];
    if (from && k < 7) load(next, from, base + e + TILE_THREADS);
    fetch(y, tile, spot(e));
    halve_times(y, shift);
    if (from) fr_sub_r(y, z, y);
    store(out, base + e, y);
  }
}
EXPORT(ntt_inverse_last)

// Columns is a tile of 2^(3·rounds) rows, 2^lo elements apart, of 2^wide neighbours.
struct Columns {
  u32 lo, wide;
  u32 column;  // of the first neighbour
  u32 base;    // the tile's first element
};
FN Columns columns(u32 lo, u32 rounds) {
  Columns c;
  c.lo = lo, c.wide = TILE_LOG - 3 * rounds;
  const u32 across = lo - c.wide, high = blockIdx.x >> across;
  c.column = (blockIdx.x & ((1u << across) - 1)) << c.wide;
  c.base = (high << (lo + 3 * rounds)) | c.column;
  return c;
}
// address is where in the vector the place l of the tile is.
FN u32 address(const Columns& c, u32 l) { return c.base + ((l >> c.wide) << c.lo) + (l & ((1u << c.wide) - 1)); }
FN Round column_round(const Columns& c, u32 i, bool plain, u32 one) {
  const u32 low = threadIdx.x & ((1u << (c.wide + 3 * i)) - 1);
  const u32 from = ((low >> c.wide) << c.lo) + c.column + (low & ((1u << c.wide) - 1));
  return round_at(1u << (c.lo + 3 * i), from, plain, one, false);
}

FN void load_columns(u32 (&x)[8][8], const uint4* in, const Columns& c, u32 i) {
  const u32 at = address(c, place(threadIdx.x, c.wide + 3 * i));
  UNROLL for (u32 k = 0; k < 8; k++) load(x[k], in, at + (k << (c.lo + 3 * i)));
}

// ntt_forward does levels 2^lo … 2^(lo+3·rounds−1), 2 or 3 rounds. The last pass
// gives reduced results; with a vector a it multiplies them by that and, if there
// is one, subtracts the vector minus. out may be any of the vectors.
KERNEL_BOUNDS(ntt_forward, 128, 4)(const uint4* in, uint4* out, const uint4* __restrict__ table, u32 lo,
    u32 rounds, u32 plain, u32 one, u32 last,
 const uint4* a, const uint4* minus) {
  DYNAMIC_SHARED(uint4, tile);
  const Columns c = columns(lo, rounds);
  u32 x[8][8];
  load_columns(x, in, c, 0);
  BETWEEN("loaded");
  u32 i = 0;
  ROLLED for (;;) {
    butterflies<false, false>(x, table, column_round(c, i, plain != 0, one));
    if (i == rounds - 1) break;
    keep_all(tile, c.wide + 3 * i, x);
    block_sync();
    i++;
    fetch_all(x, tile, c.wide + 3 * i);
    BETWEEN("fetched");
  }
  const u32 p = c.wide + 3 * i, l = place(threadIdx.x, p), at = address(c, l), apart = lo + 3 * i;
  if (!last) {
    UNROLL for (u32 k = 0; k < 8; k++) store(out, at + (k << apart), x[k]);
    return;
  }
  keep_all(tile, p, x);  // what this thread alone reads
  u32 next[8] = {};
  if (a) load(next, a, at);

  ROLLED
  for (u32 k = 0; k < 8; k++) {
    const u32 e = at + (k << apart);
    u32 y[8];
    fetch(y, tile, spot(l | (k << p)));
    if (a) {
      u32 z[8];
      UNROLL for (u32 j = 0; j < 8; j++) z[j] = next[j];
      if (k < 7) load(next, a, at + ((k + 1) << apart));
      finish_product(y, z, minus, e);
    } else {
      fr_cut_2r(y, y);
      fr_cut_r(y, y);
    }
    store(out, e, y);
  }
}
EXPORT(ntt_forward)

// ntt_inverse does levels 2^(lo+3·rounds−1) … 2^lo, 2 or 3 rounds.
KERNEL_BOUNDS(ntt_inverse, 128, 4)(const uint4* in, uint4* out, const uint4* __restrict__ table, u32 lo,
    u32 rounds, u32 plain) {
  DYNAMIC_SHARED(uint4, tile);
  const Columns c = columns(lo, rounds);
  u32 x[8][8];
  u32 i = rounds - 1;
  load_columns(x, in, c, i);
  BETWEEN("loaded");
  ROLLED for (;;) {
    butterflies<true, false>(x, table, column_round(c, i, plain != 0, 0));
    if (i == 0) break;
    keep_all(tile, c.wide + 3 * i, x);
    block_sync();
    i--;
    fetch_all(x, tile, c.wide + 3 * i);
    BETWEEN("fetched");
  }
  const u32 at = address(c, place(threadIdx.x, c.wide));
  UNROLL for (u32 k = 0; k < 8; k++) store(out, at + (k << lo), x[k]);
}
EXPORT(ntt_inverse)

// ntt_small is a whole transform of 2^log, log ≤ 10, by one block, with what the
// last passes above do besides: forward, out = result·a − minus, and inverse,
// out = minus − result/2^shift, where a and minus may be 0.
KERNEL_BOUNDS(ntt_small, 256, 1)(const uint4* in, uint4* out, const uint4* __restrict__ table, u32 log,
    u32 inverse, u32 plain, u32 one, u32 shift,
 const uint4* a, const uint4* minus) {
  DYNAMIC_SHARED(uint4, tile);
  const u32 n = 1u << log;
  for (u32 i = threadIdx.x; i < n; i += blockDim.x) {
    u32 x[8];
    load(x, in, i);
    keep(tile, spot(i), x);
  }
  ROLLED for (u32 level = 0; level < log; level++) {
    block_sync();
    const u32 q = inverse ? log - 1 - level : level, m = 1u << q;
    for (u32 i = threadIdx.x; i < n / 2; i += blockDim.x) {
      const u32 l = ((i >> q) << (q + 1)) | (i & (m - 1));
      const Round r = round_at(m, i & (m - 1), plain != 0, one, false);
      u32 x[8], y[8], w[8], v[8];
      fetch(x, tile, spot(l));
      fetch(y, tile, spot(l + m));
      u32 u[8];
      if (inverse) {
        load_factor(w, v, table, factor_place<true>(r, 0, 0));
        fr_sub_2r(u, y, x);
        fr_add_2r(x, x, y);
        fr_shoup(y, u, w, v);
      } else {
        load_factor(w, v, table, factor_place<false>(r, 0, 0));
        fr_shoup(u, y, w, v);
        fr_sub_2r(y, x, u);
        fr_add_lazy(x, x, u);
      }
      keep(tile, spot(l), x);
      keep(tile, spot(l + m), y);
    }
  }
  block_sync();
  for (u32 i = threadIdx.x; i < n; i += blockDim.x) {
    u32 x[8];
    fetch(x, tile, spot(i));
    if (inverse) {
      halve_times(x, shift);
      if (minus) {
        u32 y[8];
        load(y, minus, i);
        fr_sub_r(x, y, x);
      }
    } else if (a) {
      u32 y[8];
      load(y, a, i);
      finish_product(x, y, minus, i);
    } else {
      fr_cut_2r(x, x);
      fr_cut_r(x, x);
    }
    store(out, i, x);
  }
}
EXPORT(ntt_small)

// ntt_table_seed begins a table of 2^log places: −1, a root of order 4, and 1
// after the last place.
KERNEL(ntt_table_seed)(Factor* table, u32 log, Factor minus_one, Factor root, Factor one) {
  table[0] = minus_one;
  if (log > 0) table[1] = root;
  table[1u << log] = one;
}
EXPORT(ntt_table_seed)

// complete writes w and its companion: ⌊w·2^256/r⌋ is −(w·2^256 mod r)/r modulo
// 2^256. montgomery is 2^256 modulo r.
FN void complete(Factor* dst, const u32* w, const Factor& montgomery) {
  const u32 inv[8] = FR_MINUS_INV;
  u32 rest[8], v[8] = {};
  fr_shoup(rest, w, montgomery.w, montgomery.v);
  fr_cut_r(rest, rest);
  UNROLL for (u32 i = 0; i < 8; i++) {
    u64 c = 0;
    UNROLL for (u32 j = 0; i + j < 8; j++) {
      c += u64(rest[i]) * inv[j] + v[i + j];
      v[i + j] = u32(c);
      c >>= 32;
    }
  }
  uint4* p = reinterpret_cast<uint4*>(dst);
  p[0] = make_uint4(w[0], w[1], w[2], w[3]);
  p[1] = make_uint4(w[4], w[5], w[6], w[7]);
  p[2] = make_uint4(v[0], v[1], v[2], v[3]);
  p[3] = make_uint4(v[4], v[5], v[6], v[7]);
}

// ntt_table_level makes level m ≥ 2 of a table of powers from the level below:
// even and odd are the inverse of the level's root and the root.
KERNEL_BOUNDS(ntt_table_level, 128, 2)(Factor* table, u32 m, Factor even, Factor odd, Factor montgomery) {
  const u32 i = blockIdx.x * 128 + threadIdx.x;
  if (i >= m) return;
  u32 x[8], w[8];
  const Factor& by = i & 1 ? odd : even;
  UNROLL for (u32 j = 0; j < 8; j++) x[j] = table[m / 2 + i / 2].w[j];
  fr_shoup(w, x, by.w, by.v);
  fr_cut_r(w, w);
  complete(table + m + i, w, montgomery);
}
EXPORT(ntt_table_level)

// ntt_table_coset makes level m of a coset's table from a table of powers: at
// position i the power of the position times shift, backward at the place that
// an inverse looks for it, times −1.
KERNEL_BOUNDS(ntt_table_coset, 128, 2)(Factor* coset, const Factor* table, u32 m, u32 inverse, u32 one,
    Factor shift, Factor montgomery) {
  const u32 i = blockIdx.x * 128 + threadIdx.x;
  if (i >= m) return;
  const Round r = round_at(m, i, true, one, false);
  const u32 from = inverse ? factor_place<true>(r, 0, 0) : factor_place<false>(r, 0, 0);
  u32 x[8], w[8];
  UNROLL for (u32 j = 0; j < 8; j++) x[j] = table[from].w[j];
  fr_shoup(w, x, shift.w, shift.v);
  fr_cut_r(w, w);
  complete(coset + (inverse ? 2 * m - 1 - i : m + i), w, montgomery);
}
EXPORT(ntt_table_coset)

// ntt_pointwise is out = (a·b − c)·k, where b, c, and k (if times is 0) may be
// missing. All in Montgomery form, k too.
KERNEL_BOUNDS(ntt_pointwise, 256, 2)(uint4* out, const uint4* a, const uint4* b, const uint4* c, u32 n, u32 times,
    Scalar k) {
  const u32 i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  u32 x[8], y[8];
  load(x, a, i);
  if (b) {
    load(y, b, i);
    fr_mont(x, x, y);
    fr_cut_r(x, x);
  }
  if (c) {
    load(y, c, i);
    fr_sub_r(x, x, y);
  }
  if (times) {
    fr_mont(x, x, k.w);
    fr_cut_r(x, x);
  }
  store(out, i, x);
}
EXPORT(ntt_pointwise)

}  // namespace CURVE_NS
