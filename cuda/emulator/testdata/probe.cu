// Kernels for the emulator's own tests.
#include "rt.cuh"

namespace CURVE_NS {

KERNEL(probe_double)(const u32* in, u32* out, u32 n) {
  u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2 * in[i];
}
EXPORT(probe_double)

// Where every thread is, in three words.
KERNEL(probe_place)(u32* out) {
  u64 b = (u64(blockIdx.z) * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  u64 t = (u64(threadIdx.z) * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  u64 i = b * (blockDim.x * blockDim.y * blockDim.z) + t;
  out[3 * i] = threadIdx.x | threadIdx.y << 10 | threadIdx.z << 20;
  out[3 * i + 1] = blockIdx.x | blockIdx.y << 10 | blockIdx.z << 20;
  out[3 * i + 2] = u32(b);
}
EXPORT(probe_place)

// The sum of each block's values, by a tree in shared memory.
KERNEL_BOUNDS(probe_sum, 256, 2)(const u32* in, u64* out, u32 n) {
  SHARED(u64, s, 256);
  u32 t = threadIdx.x, i = blockIdx.x * 256 + t;
  s[t] = i < n ? in[i] : 0;
  block_sync();
  ROLLED for (u32 d = 128; d; d >>= 1) {
    if (t < d) s[t] += s[t + d];
    block_sync();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}
EXPORT(probe_sum)

// Block reversal through dynamic shared memory.
KERNEL(probe_reverse)(u32* data) {
  DYNAMIC_SHARED(u32, s);
  u32 t = threadIdx.x, n = blockDim.x;
  u32* p = data + blockIdx.x * n;
  s[t] = p[t];
  block_sync();
  p[t] = s[n - 1 - t];
}
EXPORT(probe_reverse)

// Barriers at two places, on the two sides of a branch, in a loop whose length
// differs by thread: those who end early are waited for no more.
KERNEL(probe_divergent)(u32* out) {
  SHARED(u32, c, 1);
  u32 t = threadIdx.x, v = 0;
  if (t == 0) c[0] = 0;
  block_sync();
  ROLLED for (u32 k = 0; k < t; k++) {
    atomic_add(&c[0], 1);
    if (t & 1)
      block_sync();
    else
      block_sync();
    v = c[0];
    block_sync();
  }
  out[t] = v;
}
EXPORT(probe_divergent)

// Every warp operation, over the whole warp and over halves of it that are
// under way at the same time. Eight words a thread.
KERNEL(probe_warp)(const u32* in, u32* out) {
  u32 t = threadIdx.x, l = t & 31, v = in[t];
  u32* o = out + 8 * t;
  o[0] = shfl(~0u, v, (l + 5) & 31);
  o[1] = shfl_up(~0u, v, 3);
  o[2] = shfl_down(~0u, v, 7);
  o[3] = shfl_xor(~0u, v, 9);
  o[4] = ballot(~0u, v & 1);
  o[5] = match(~0u, v & 7);
  u32 mask = l & 1 ? 0xaaaaaaaa : 0x55555555;
  if (l & 1) {
    u32 s = v;
    ROLLED for (u32 d = 16; d > 1; d >>= 1) s += shfl_xor(mask, s, d);
    o[6] = s;
    warp_sync(mask);
  } else {
    o[6] = ballot(mask, v & 2);
  }
  warp_sync();
  o[7] = l < 20 ? shfl(0xfffff, v, 25) : 0;  // 25 is not in the mask: nothing to rely on
}
EXPORT(probe_warp)

// How many lanes are there when a part of the block has gone.
KERNEL(probe_leave)(u32* out) {
  u32 t = threadIdx.x;
  if (t % 3 == 0) return;
  out[t] = ballot(~0u, true);
}
EXPORT(probe_leave)

KERNEL(probe_atomics)(u32* w, u64* d, u32 n) {
  u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  atomic_add(&w[0], i);
  atomic_or(&w[1], 1u << (i & 31));
  atomic_max(&w[2], i * 7 % n);
  atomic_min(&w[3], n + i * 5 % n);
  atomic_add(d, u64(i) << 20);
}
EXPORT(probe_atomics)

// Asynchronous copies in two groups; early reads before the wait.
KERNEL(probe_copy)(const u32* in, u32* out, u32 early) {
  SHARED(uint4, s, 64);
  u32 t = threadIdx.x;
  s[2 * t] = s[2 * t + 1] = make_uint4(7, 7, 7, 7);
  copy16(&s[2 * t], in + 8 * t);
  copy_commit();
  copy16(&s[2 * t + 1], in + 8 * t + 4);
  copy_commit();
  if (!early) copy_wait<1>();
  out[2 * t] = s[2 * t].y;
  if (!early) copy_wait<0>();
  out[2 * t + 1] = s[2 * t + 1].z;
}
EXPORT(probe_copy)

// Blocks that wait for the one before them.
KERNEL(probe_chain)(u32* flags, u32* out) {
  SHARED(u32, got, 1);
  if (threadIdx.x == 0) {
    u32 b = blockIdx.x, v = 0;
    if (b) {
      while ((v = atomic_add(&flags[b - 1], 0)) == 0) relax();
    }
    got[0] = v + 1;
    fence();
    atomic_add(&flags[b], v + 1);
  }
  block_sync();
  if (threadIdx.x == 31) out[blockIdx.x] = got[0];
}
EXPORT(probe_chain)

struct probe_struct {
  u32 w[5];
  u64 d;
};

KERNEL(probe_args)(u32 a, u64 b, probe_struct c, u32* out) {
  out[0] = a;
  out[1] = u32(b);
  out[2] = u32(b >> 32);
  for (u32 i = 0; i < 5; i++) out[3 + i] = c.w[i];
  out[8] = u32(c.d);
  out[9] = u32(c.d >> 32);
}
EXPORT(probe_args)

// Adds one, slowly: for tests of what runs when.
KERNEL(probe_slow)(u32* v, u32 rounds) {
  u32 x = v[0];
  ROLLED for (u32 i = 0; i < rounds; i++) x = atomic_add(&v[1], 1) & 0;
  v[0] += 1 + x;
}
EXPORT(probe_slow)

KERNEL(probe_write)(u64 at, u32 v) { *(u32*)at = v; }
EXPORT(probe_write)

KERNEL(probe_hang)(u32* out) {
  if (threadIdx.x < 16) warp_sync(~0u);
  block_sync();
  out[0] = 1;
}
EXPORT(probe_hang)

static __device__ __attribute__((noinline)) u32 deep(u32 n, volatile u32* v) {
  u32 a[64];
  for (u32 i = 0; i < 64; i++) a[i] = v[i & 1] + i;
  u32 r = n ? deep(n - 1, v) : 0;
  for (u32 i = 0; i < 64; i++) r += a[i];
  return r;
}
KERNEL(probe_deep)(u32* v, u32 n) { v[2] = deep(n, v); }
EXPORT(probe_deep)

KERNEL(probe_divide)(u32* v) { v[2] = v[0] / v[1]; }
EXPORT(probe_divide)

KERNEL(probe_trap)(u32* v) {
  if (v) __builtin_trap();
}
EXPORT(probe_trap)

}  // namespace CURVE_NS
