// What a block of threads does together: sums over all of it.
#pragma once

namespace CURVE_NS {

FN u32 lane_of() { return threadIdx.x & 31; }

// warp_scan is the sum of v over this lane and those before it.
FN u32 warp_scan(u32 v) {
  UNROLL for (u32 d = 1; d < 32; d <<= 1) {
    u32 x = shfl_up(~0u, v, d);
    if (lane_of() >= d) v += x;
  }
  return v;
}

// block_scan is the sum of v over the threads before this one, and in total the
// sum over all. Every thread of a block of THREADS calls it; sums has room for
// a word a warp and one more, and may be used again after a barrier.
template <u32 THREADS> FN u32 block_scan(u32 v, u32* sums, u32& total) {
  constexpr u32 warps = THREADS / 32;
  u32 up = warp_scan(v), w = threadIdx.x >> 5;
  if (lane_of() == 31) sums[w] = up;
  block_sync();
  if (w == 0) {
    u32 x = lane_of() < warps ? sums[lane_of()] : 0;
    u32 s = warp_scan(x);
    if (lane_of() < warps) sums[lane_of()] = s - x;
    if (lane_of() == 31) sums[warps] = s;
  }
  block_sync();
  total = sums[warps];
  return sums[w] + up - v;
}

// take_place gives each active lane a place of its own among those that ask
// for the same counter in shared memory, and counts them there. A counter that
// many lanes want is asked once for all of them. All lanes of the warp call it.
FN u32 take_place(u32* counters, u32 which, bool active) {
  u32 wanted = ballot(~0u, active);
  if (wanted == 0) return 0;
  u32 leader = 31 - leading_zeros(wanted & (0u - wanted));
  u32 popular = shfl(~0u, which, leader);
  u32 same = ballot(~0u, active && which == popular);
  if (popcount(same) < 8) return active ? atomic_add(&counters[which], 1) : 0;
  u32 base = 0;
  if (lane_of() == leader) base = atomic_add(&counters[popular], popcount(same));
  base = shfl(~0u, base, leader);
  if (!active) return 0;
  if (which == popular) return base + popcount(same & ((1u << lane_of()) - 1));
  return atomic_add(&counters[which], 1);
}

}  // namespace CURVE_NS
