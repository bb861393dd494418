// Scalars that were packed on the host, into vectors. See pack.go for the form.
#include "rt.cuh"

namespace CURVE_NS {

constexpr u32 PACK_THREADS = 256, PACK_BLOCK = 512;  // scalars that a warp expands
enum { PACK_ZERO, PACK_ONE, PACK_THIRD, PACK_OTHER };

// 1, 2 and −1 in Montgomery form.
#if CURVE == 381
#define PACK_ONE_WORDS {0xfffffffeu, 0x00000001u, 0x00034802u, 0x5884b7fau, 0xecbc4ff5u, 0x998c4fefu, 0xacc5056fu, 0x1824b159u}
#define PACK_TWO_WORDS {0xfffffffcu, 0x00000003u, 0x00069004u, 0xb1096ff4u, 0xd9789feau, 0x33189fdfu, 0x598a0adfu, 0x304962b3u}
#define PACK_MINUS_WORDS {0x00000003u, 0xfffffffdu, 0xfffb13fcu, 0xfb38ec08u, 0x1ce5880fu, 0x99ad8818u, 0x7cd877d8u, 0x5bc8f5f9u}
#else
#define PACK_ONE_WORDS {0x4ffffffbu, 0xac96341cu, 0x9f60cd29u, 0x36fc7695u, 0x7879462eu, 0x666ea36fu, 0x9a07df2fu, 0x0e0a77c1u}
#define PACK_TWO_WORDS {0x9ffffff6u, 0x592c6838u, 0x3ec19a53u, 0x6df8ed2bu, 0xf0f28c5cu, 0xccdd46deu, 0x340fbe5eu, 0x1c14ef83u}
#define PACK_MINUS_WORDS {0xa0000006u, 0x974bc177u, 0xda58a367u, 0xf13771b2u, 0x0908122eu, 0x51e1a247u, 0x4729c0fau, 0x2259d6b1u}
#endif

// half_of is half h of the third value, or of 1.
FN uint4 half_of(u32 third, u32 h) {
  const u32 one[8] = PACK_ONE_WORDS, two[8] = PACK_TWO_WORDS, minus[8] = PACK_MINUS_WORDS;
  u32 w[4];
  UNROLL for (u32 j = 0; j < 4; j++) {
    u32 lo = third == 0 ? one[j] : third == 1 ? two[j] : minus[j];
    u32 hi = third == 0 ? one[4 + j] : third == 1 ? two[4 + j] : minus[4 + j];
    w[j] = h ? hi : lo;
  }
  return make_uint4(w[0], w[1], w[2], w[3]);
}

// pack_expand writes n scalars to out. A warp takes PACK_BLOCK of them: a lane
// has the codes of 16, and two lanes write one scalar. first is the number of the
// first other scalar of each block; third is 1 for 2 and 2 for −1.
KERNEL_BOUNDS(pack_expand, PACK_THREADS, 1)(const u32* codes, const u32* first, const uint4* others, u32 third, uint4* out, u32 n) {
  u32 block = (blockIdx.x * PACK_THREADS + threadIdx.x) / 32, lane = threadIdx.x % 32;
  u32 from = block * PACK_BLOCK;
  if (from < n) {
    u32 word = codes[block * 32 + lane];
    u32 count = popcount(word & (word >> 1) & 0x55555555u), sum = count;
    UNROLL for (u32 d = 1; d < 32; d *= 2) {
      u32 v = shfl_up(~0u, sum, d);
      if (lane >= d) sum += v;
    }
    u32 base = first[block] + sum - count;
    const uint4 one = half_of(0, lane & 1), other = half_of(third, lane & 1);
    u32 at = lane & ~1u;  // of my scalar's code in a word
    _Pragma("unroll 8") for (u32 k = 0; k < 32; k++) {
      u32 w = shfl(~0u, word, k), b = shfl(~0u, base, k);
      u32 i = from + 16 * k + lane / 2, code = (w >> at) & 3;
      if (i < n) {
        // a word at a time: a choice between structs would go through memory
        u32 is_one = 0u - u32(code == PACK_ONE), is_third = 0u - u32(code == PACK_THIRD);
        uint4 v = make_uint4((one.x & is_one) | (other.x & is_third), (one.y & is_one) | (other.y & is_third),
            (one.z & is_one) | (other.z & is_third), (one.w & is_one) | (other.w & is_third));
        if (code == PACK_OTHER) {
          u32 rank = b + popcount(w & (w >> 1) & 0x55555555u & ((1u << at) - 1));
          v = others[2 * u64(rank) + (lane & 1)];
        }
        out[2 * u64(i) + (lane & 1)] = v;
      }
    }
  }
}
EXPORT(pack_expand)

}  // namespace CURVE_NS
