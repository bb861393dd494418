// Scalars that are drawn from a seed, for tests and measurements. FillScalar
// in Go gives the same.
#include "rt.cuh"

namespace CURVE_NS {

enum { UNIFORM, ZEROS, ONES, MINUS_ONES, EQUAL, BITS, EIGHT };

#if CURVE == 381
#define R64 {0xffffffff00000001ull, 0x53bda402fffe5bfeull, 0x3339d80809a1d805ull, 0x73eda753299d7d48ull}
#define ONE64 {0x00000001fffffffeull, 0x5884b7fa00034802ull, 0x998c4fefecbc4ff5ull, 0x1824b159acc5056full}
#define TOP_MASK 0x7fffffffffffffffull
#else
#define R64 {0x43e1f593f0000001ull, 0x2833e84879b97091ull, 0xb85045b68181585dull, 0x30644e72e131a029ull}
#define ONE64 {0xac96341c4ffffffbull, 0x36fc76959f60cd29ull, 0x666ea36f7879462eull, 0x0e0a77c19a07df2full}
#define TOP_MASK 0x3fffffffffffffffull
#endif

// mix is the finalizer of SplitMix64.
FN u64 mix(u64 z) {
  z += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// take_off is a − b, and whether that is below 0.
FN bool take_off(u64* out, const u64* a, const u64* b) {
  u64 borrow = 0;
  UNROLL for (int j = 0; j < 4; j++) {
    u64 d = a[j] - b[j], e = d - borrow;
    borrow = (a[j] < b[j]) | (d < borrow);
    out[j] = e;
  }
  return borrow;
}

KERNEL(fill_scalars)(u64* out, u64 seed, u32 kind, u64 first, u32 n) {
  u32 at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < n) {
    const u64 r[4] = R64, one[4] = ONE64;
    u64 i = first + at, s[4] = {0, 0, 0, 0}, t[4], draw = i;
    u32 what = kind;
    if (kind == EQUAL) draw = 0;
    if (kind == EIGHT) draw = mix(seed ^ i) & 7;
    if (kind == BITS) {
      u32 p = u32(mix(seed ^ (i * 77 + 5)) % 100);
      what = p < 45 ? ZEROS : p < 90 ? ONES : UNIFORM;
    }
    if (what == ONES) {
      UNROLL for (int j = 0; j < 4; j++) s[j] = one[j];
    } else if (what == MINUS_ONES) {
      take_off(s, r, one);
    } else if (what != ZEROS) {
      UNROLL for (int j = 0; j < 4; j++) s[j] = mix(seed * 0x1234567ull + draw * 4 + u64(j));
      s[3] &= TOP_MASK;
      if (!take_off(t, s, r))
        UNROLL for (int j = 0; j < 4; j++) s[j] = t[j];
    }
    UNROLL for (int j = 0; j < 4; j++) out[4 * u64(at) + u64(j)] = s[j];
  }
}
EXPORT(fill_scalars)

}  // namespace CURVE_NS
