// Parts of the number theoretic transforms; ntt.cu says how they fit together.
#pragma once
#include "rt.cuh"
#if CURVE == 381
#include "fr_381.cuh"
#else
#include "fr_254.cuh"
#endif

namespace CURVE_NS {

// A block of 128 threads works on a tile of 2^10 elements, 8 a thread.
constexpr u32 TILE_LOG = 10, TILE = 1u << TILE_LOG, TILE_THREADS = TILE / 8;

// Factor is a number w < r and ⌊w·2^256/r⌋, what fr_shoup wants. Tables are
// made of them.
struct alignas(16) Factor {
  u32 w[8], v[8];
};

struct Scalar {
  u32 w[8];
};

FN void put(u32* x, uint4 a, uint4 b) {
  x[0] = a.x, x[1] = a.y, x[2] = a.z, x[3] = a.w;
  x[4] = b.x, x[5] = b.y, x[6] = b.z, x[7] = b.w;
}
FN void load(u32* x, const uint4* p, u32 i) {
  p += 2 * size_t(i);
  put(x, p[0], p[1]);
}
FN void store(uint4* p, u32 i, const u32* x) {
  p += 2 * size_t(i);
  p[0] = make_uint4(x[0], x[1], x[2], x[3]);
  p[1] = make_uint4(x[4], x[5], x[6], x[7]);
}
FN void load_factor(u32* w, u32* v, const uint4* __restrict__ table, u32 i) {
  const uint4* p = table + 4 * size_t(i);
  put(w, p[0], p[1]);
  put(v, p[2], p[3]);
}

// BETWEEN keeps the compiler from merging the loads before it with others of
// another kind where two ways meet, which would make loads of no known kind.
#ifdef SNARKLINE_EMULATOR
#define BETWEEN(what)
#else
#define BETWEEN(what) asm volatile("// " what ::: "memory")
#endif

// A tile in shared memory: the halves of its elements apart, mixed so that the
// eight lanes that access 16 bytes at a time meet eight different banks, in
// whichever order a round takes the elements. spot is the byte of element l's
// lower half; spot(a ^ b) is spot(a) ^ spot(b).
FN u32 spot(u32 l) { return (l ^ ((l >> 3) & 7)) << 4; }
FN uint4* lower(uint4* tile, u32 s) { return reinterpret_cast<uint4*>(reinterpret_cast<char*>(tile) + s); }
FN uint4* upper(uint4* tile, u32 s) { return lower(tile, s ^ 4u << 4) + TILE; }
FN void keep(uint4* tile, u32 s, const u32* x) {
  *lower(tile, s) = make_uint4(x[0], x[1], x[2], x[3]);
  *upper(tile, s) = make_uint4(x[4], x[5], x[6], x[7]);
}
FN void fetch(u32* x, uint4* tile, u32 s) { put(x, *lower(tile, s), *upper(tile, s)); }

// place is where in the tile the first of a thread's eight elements lies when
// they differ in bits p, p + 1 and p + 2 of the place.
FN u32 place(u32 t, u32 p) { return ((t >> p) << (p + 3)) | (t & ((1u << p) - 1)); }

// Spots are those of a thread's eight elements.
struct Spots {
  u32 first, one, two, four;
};
FN Spots spots(u32 p) { return {spot(place(threadIdx.x, p)), spot(1u << p), spot(2u << p), spot(4u << p)}; }
FN u32 spot_of(const Spots& s, u32 k) { return s.first ^ (k & 1 ? s.one : 0) ^ (k & 2 ? s.two : 0) ^ (k & 4 ? s.four : 0); }

FN void keep_all(uint4* tile, u32 p, u32 (&x)[8][8]) {
  const Spots s = spots(p);
  UNROLL for (u32 k = 0; k < 8; k++) keep(tile, spot_of(s, k), x[k]);
}
FN void fetch_all(u32 (&x)[8][8], uint4* tile, u32 p) {
  const Spots s = spots(p);
  UNROLL for (u32 k = 0; k < 8; k++) fetch(x[k], tile, spot_of(s, k));
}

// Where in a table the factors of a round are. At level m (pairs m apart), the
// pair at position i < m of its block has the place m + i in the table of a
// coset. A table of the powers of a root ρ holds ρ^((2i+1)·n/2m) there, which
// are the odd multiples of n/2m. Every power is an odd multiple of some step, so
// the same table gives ρ^(2i·n/2m), the factors without a coset, at
// (m + i) >> (1 + the zero bits at i's end); there is no such place for i = 0.
// For an inverse, ρ^−j is −ρ^(2n−j): the same places, counted from the level's
// end, and the other sign.
struct Round {
  u32 step;    // m of the round's lowest level
  u32 from;    // position, modulo step
  u32 shift;   // of places: 0 for a coset
  u32 back;    // 1 for a coset, counted from the end
  u32 one;     // the place of 1, or of −1 for an inverse
  bool unit;   // position 0, without a coset
  bool two;    // the round leaves its lowest level out
};
FN Round round_at(u32 step, u32 from, bool plain, u32 one, bool two) {
  return {step, from, plain ? u32(__builtin_ctz(from | 1u << 31)) + 1 : 0, plain ? 0u : 1u, one, plain && from == 0, two};
}

// zeros is, for 0 < k < 8 that is known when it is compiled, the zero bits at k's end.
constexpr u32 zeros(u32 k) { return k & 1 ? 0 : k & 2 ? 1 : 2; }

// factor_place is the place for position k·step + from at level 2^q·step.
template <bool INVERSE> FN u32 factor_place(const Round& r, u32 q, u32 k) {
  const u32 m = 1u << q;
  if (INVERSE) {
    const u32 at = ((2 * m - k) * r.step - r.back - r.from) >> r.shift;
    return r.unit ? k == 0 ? r.one : (2 * m - k) >> (zeros(m - k) + 1) : at;
  }
  const u32 at = ((m + k) * r.step + r.from) >> r.shift;
  return r.unit ? k == 0 ? r.one : (m + k) >> (zeros(k) + 1) : at;
}

// butterflies does the levels of a round on a thread's eight elements, which are
// step apart: (a, b) ← (a + w·b, a − w·b), lowest level first, or the mirror
// image (a, b) ← (a + b, w·(a − b)), highest level first.
//
// Sums stay below 2r + 2^224 forward and below 2r in an inverse. UNIT says that
// the elements' position is 0 at the round's lowest level and the factors have
// no coset, so that those at k = 0 are 1, and no products are needed there; a
// product brings its result below 2r, and without one the sums must be exact.
template <bool INVERSE, bool UNIT>
FN void butterflies(u32 (&x)[8][8], const uint4* __restrict__ table, const Round& r) {
  UNROLL for (u32 level = 0; level < 3; level++) {
    const u32 q = INVERSE ? 2 - level : level;
    if (!UNIT && q == 0 && r.two) continue;
    UNROLL for (u32 k = 0; k < 1u << q; k++) {
      const bool unit = UNIT && k == 0;
      u32 w[8], v[8];
      if (!unit) load_factor(w, v, table, factor_place<INVERSE>(r, q, k));
      UNROLL for (u32 j = 0; j < 4u >> q; j++) {
        u32(&a)[8] = x[(j << (q + 1)) | k];
        u32(&b)[8] = x[(j << (q + 1)) | k | (1u << q)];
        u32 y[8];
        if (INVERSE) {
          if (unit) {
            fr_sub_2r(y, a, b);
          } else {
            fr_sub_2r(y, b, a);
          }
          fr_add_2r(a, a, b);
          if (unit) {
            UNROLL for (u32 i = 0; i < 8; i++) b[i] = y[i];
          } else {
            fr_shoup(b, y, w, v);
          }
        } else if (unit) {
          fr_sub_2r(y, a, b);
          fr_add_2r(a, a, b);
          UNROLL for (u32 i = 0; i < 8; i++) b[i] = y[i];
        } else {
          fr_shoup(y, b, w, v);
          fr_sub_2r(b, a, y);
          fr_add_lazy(a, a, y);
        }
      }
    }
  }
}

// halve_times is x/2^s modulo r, below r, for x < 2r and s up to the curve's
// two-adicity, 28 on BN254 and 32 on BLS12-381, but below 32: r is 1 modulo 2^s,
// so x + (−x mod 2^s)·r is a multiple of 2^s.
FN void halve_times(u32* x, u32 s) {
  const u32 r[8] = FR_R;
  if (s != 0) {
    const u32 m = (0u - x[0]) & ((1u << s) - 1);
    u32 t[9];
    u64 c = 0;
    UNROLL for (u32 i = 0; i < 8; i++) {
      c += u64(m) * r[i] + x[i];
      t[i] = u32(c);
      c >>= 32;
    }
    t[8] = u32(c);
    UNROLL for (u32 i = 0; i < 8; i++) x[i] = (t[i] >> s) | (t[i + 1] << (32 - s));
  }
  fr_cut_r(x, x);
}

// finish_product is x ← a·x − c, or a·x when there is no c, reduced. In x is any
// number of 256 bits.
FN void finish_product(u32* x, const u32* a, const uint4* c, u32 at) {
  fr_mont(x, x, a);
  fr_cut_r(x, x);
  if (c) {
    u32 y[8];
    load(y, c, at);
    fr_sub_r(x, x, y);
  }
}

}  // namespace CURVE_NS
