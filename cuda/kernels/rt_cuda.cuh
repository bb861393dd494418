// The GPU's side of rt.cuh: clang's builtins, no CUDA SDK.
#pragma once
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#include <__clang_cuda_builtin_vars.h>

#define KERNEL(name) extern "C" __global__ void ENTRY(name)
#define KERNEL_BOUNDS(name, threads, blocks) \
  extern "C" __global__ __attribute__((launch_bounds(threads, blocks))) void ENTRY(name)
#define EXPORT(name)

// SHARED is memory of the block, of a size known here; DYNAMIC_SHARED that of
// the launch, at most one a kernel.
#define SHARED(type, name, count) __shared__ type name[count]
#define DYNAMIC_SHARED(type, name) extern __shared__ type name[]

struct alignas(16) uint4 { u32 x, y, z, w; };
struct alignas(8) uint2 { u32 x, y; };
static __device__ inline uint4 make_uint4(u32 x, u32 y, u32 z, u32 w) { return {x, y, z, w}; }

static __device__ inline void block_sync() { __nvvm_bar_sync(0); }
static __device__ inline void warp_sync(u32 mask = ~0u) { __nvvm_bar_warp_sync(mask); }

// All lanes of mask call these together.
static __device__ inline u32 shfl(u32 mask, u32 v, u32 lane) { return __nvvm_shfl_sync_idx_i32(mask, v, lane, 31); }
static __device__ inline u32 shfl_up(u32 mask, u32 v, u32 d) { return __nvvm_shfl_sync_up_i32(mask, v, d, 0); }
static __device__ inline u32 shfl_down(u32 mask, u32 v, u32 d) { return __nvvm_shfl_sync_down_i32(mask, v, d, 31); }
static __device__ inline u32 shfl_xor(u32 mask, u32 v, u32 d) { return __nvvm_shfl_sync_bfly_i32(mask, v, d, 31); }
static __device__ inline u32 ballot(u32 mask, bool p) { return __nvvm_vote_ballot_sync(mask, p); }
// match gives the lanes of mask that have the same v.
static __device__ inline u32 match(u32 mask, u32 v) {
  u32 r;
  asm volatile("match.any.sync.b32 %0, %1, %2;" : "=r"(r) : "r"(v), "r"(mask));
  return r;
}
static __device__ inline u32 popcount(u32 v) { return __builtin_popcount(v); }
static __device__ inline u32 leading_zeros(u32 v) { return v ? __builtin_clz(v) : 32; }

// Atomics in global or shared memory, relaxed; the value before.
static __device__ inline u32 atomic_add(u32* p, u32 v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }
static __device__ inline u64 atomic_add(u64* p, u64 v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }
static __device__ inline u32 atomic_or(u32* p, u32 v) { return __atomic_fetch_or(p, v, __ATOMIC_RELAXED); }
static __device__ inline u32 atomic_max(u32* p, u32 v) { return __nvvm_atom_max_gen_ui(p, v); }
static __device__ inline u32 atomic_min(u32* p, u32 v) { return __nvvm_atom_min_gen_ui(p, v); }
// fence makes what this thread wrote visible to the device before what it writes next.
static __device__ inline void fence() { __nvvm_membar_gl(); }
// trap ends the launch, and the context, with an error: for what cannot be.
static __device__ inline void trap() { __builtin_trap(); }
// relax stands in a loop that waits for another block's write.
static __device__ inline void relax() { asm volatile("nanosleep.u32 20;"); }

// copy16 begins to copy 16 bytes from global to shared memory; copies are
// grouped by copy_commit, and copy_wait<n> leaves at most n groups under way.
static __device__ inline void copy16(void* shared, const void* global) {
  asm volatile("{ .reg .u64 t; .reg .u32 d; cvta.to.shared.u64 t, %0; cvt.u32.u64 d, t; cp.async.cg.shared.global [d], [%1], 16; }" ::"l"(shared), "l"(global) : "memory");
}
static __device__ inline void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> static __device__ inline void copy_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }
