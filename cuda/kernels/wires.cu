// Scalars by class (0, 1, other), and the points of a query whose scalars are 1
// or other, as lists.
#include "rt.cuh"
#include "sort_block.cuh"

namespace CURVE_NS {

constexpr u32 WIRE_THREADS = 256, WIRE_ITEMS = 16;
enum { ZERO, ONE, OTHER };

// 1 in Montgomery form: 2^256 mod r.
#if CURVE == 381
#define ONE_WORDS {0xfffffffeu, 0x00000001u, 0x00034802u, 0x5884b7fau, 0xecbc4ff5u, 0x998c4fefu, 0xacc5056fu, 0x1824b159u}
#else
#define ONE_WORDS {0x4ffffffbu, 0xac96341cu, 0x9f60cd29u, 0x36fc7695u, 0x7879462eu, 0x666ea36fu, 0x9a07df2fu, 0x0e0a77c1u}
#endif

FN u32 class_of(const uint4 a, const uint4 b) {
  const u32 one[8] = ONE_WORDS;
  if (!(a.x | a.y | a.z | a.w | b.x | b.y | b.z | b.w)) return ZERO;
  bool same = a.x == one[0] && a.y == one[1] && a.z == one[2] && a.w == one[3] &&
              b.x == one[4] && b.y == one[5] && b.z == one[6] && b.w == one[7];
  return same ? ONE : OTHER;
}

// wires_classify writes a byte a scalar, and adds to counts how many are of
// each class.
KERNEL_BOUNDS(wires_classify, WIRE_THREADS, 1)(const uint4* scalars, u32 n, uint8_t* classes, u32* counts) {
  SHARED(u32, block, 2);
  if (threadIdx.x < 2) block[threadIdx.x] = 0;
  block_sync();
  u32 ones = 0, others = 0, step = gridDim.x * WIRE_THREADS;
  for (u32 i0 = blockIdx.x * WIRE_THREADS; i0 < n; i0 += step) {
    u32 i = i0 + threadIdx.x, c = ZERO;
    if (i < n) {
      c = class_of(scalars[2 * u64(i)], scalars[2 * u64(i) + 1]);
      classes[i] = uint8_t(c);
    }
    ones += popcount(ballot(~0u, c == ONE));
    others += popcount(ballot(~0u, c == OTHER));
  }
  if (lane_of() == 0) {
    atomic_add(&block[0], ones);
    atomic_add(&block[1], others);
  }
  block_sync();
  if (threadIdx.x < 2 && block[threadIdx.x]) atomic_add(&counts[ONE + threadIdx.x], block[threadIdx.x]);
  if (blockIdx.x == 0 && threadIdx.x == 0) atomic_add(&counts[ZERO], n);
}
EXPORT(wires_classify)

// wires_zeros ends the count: what is neither 1 nor other is 0.
KERNEL(wires_zeros)(u32* counts) {
  if (threadIdx.x == 0) counts[ZERO] -= counts[ONE] + counts[OTHER];
}
EXPORT(wires_zeros)

// wires_split lists the points of a query whose scalars are 1 and those whose
// scalars are neither 0 nor 1. A block takes room in the lists for all its
// points at once; within a block the order is kept. A list of 0 is not made.
KERNEL_BOUNDS(wires_split, WIRE_THREADS, 1)(const uint8_t* classes, const u32* wires, u32 first, u32 n, u32* ones, u32* count_ones,
    u32* others, u32* count_others) {
  SHARED(u32, sums, WIRE_THREADS / 32 + 1);
  SHARED(u32, room, 2);
  // a warp's points are consecutive: 32·WIRE_ITEMS of them
  u32 from = (blockIdx.x * WIRE_THREADS + (threadIdx.x & ~31u)) * WIRE_ITEMS;
  u32 mine = 0;  // two bits a point
  u32 n_ones = 0, n_others = 0;
  UNROLL for (u32 k = 0; k < WIRE_ITEMS; k++) {
    u32 j = from + k * 32 + lane_of(), c = ZERO;
    if (j < n) c = classes[wires ? wires[j] : first + j];
    mine |= c << (2 * k);
    n_ones += popcount(ballot(~0u, c == ONE));
    n_others += popcount(ballot(~0u, c == OTHER));
  }
  u32 at_ones, at_others, total_ones, total_others;
  // one lane of each warp speaks for it: both counts in one word, at most 4096
  u32 packed = lane_of() == 0 ? n_ones | n_others << 16 : 0, total;
  u32 before = block_scan<WIRE_THREADS>(packed, sums, total);
  before = shfl(~0u, before, 0);
  total_ones = total & 0xffff;
  total_others = total >> 16;
  if (threadIdx.x == 0) {
    room[0] = ones && total_ones ? atomic_add(count_ones, total_ones) : 0;
    room[1] = others && total_others ? atomic_add(count_others, total_others) : 0;
  }
  block_sync();
  at_ones = room[0] + (before & 0xffff);
  at_others = room[1] + (before >> 16);
  u32 below = (1u << lane_of()) - 1;
  UNROLL for (u32 k = 0; k < WIRE_ITEMS; k++) {
    u32 j = from + k * 32 + lane_of(), c = (mine >> (2 * k)) & 3;
    u32 one = ballot(~0u, c == ONE), other = ballot(~0u, c == OTHER);
    if (c == ONE && ones) ones[at_ones + popcount(one & below)] = j;
    if (c == OTHER && others) others[at_others + popcount(other & below)] = j;
    at_ones += popcount(one);
    at_others += popcount(other);
  }
}
EXPORT(wires_split)

}  // namespace CURVE_NS
