// The kernels of a sum of scalars times points in one group, after the scalars
// were sorted into buckets: sums of the buckets, heavy buckets in two levels,
// the weighted sum of each window's buckets by segments, lines and bits; and
// the plain sum of listed points. g1.cu and g2.cu give them the group.
#pragma once
#include "ec.cuh"

namespace CURVE_NS {

// memory_of is the calling thread's part of the block's dynamic memory.
template <class T> FN T* memory_of(uint4* all, u32 bytes) {
  return reinterpret_cast<T*>(all + threadIdx.x * (bytes / 16));
}

// accumulate adds up the tasks that the sort made. A task's slot below nb is a
// bucket: its sum so far counts, unless this is the first pass, in which all
// buckets are the identity. A slot from nb on is a chunk, and starts anew.
template <class F>
FN void accumulate(uint4* all, const affine<F>* points, const u32* index, const u32* start, const u32* length,
                   const u32* order, const u32* tasks, u32 nb, u32 first, xyzz<F>* sums) {
  u32 t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= *tasks) return;
  auto* m = memory_of<adder<F>>(all, adder<F>::bytes);
  u32 slot = order[t];
  bool identity = true;
  if (!first && slot < nb) {
    copy_point(&m->sum, sums + slot);
    identity = is_identity(&m->sum);
  }
  identity = add_listed(m, points, index + start[slot], 1, length[slot], identity);
  if (identity)
    set_identity(sums + slot);
  else
    copy_point(sums + slot, &m->sum);
}

// part is how many of *count terms, all at most, fall in from … from + most − 1.
FN void part(const u32* count, u32 all, u32 from, u32 most, u32* out) {
  u32 n = *count;
  if (n > all) trap();
  *out = n <= from ? 0 : n - from < most ? n - from : most;
}

// sum_strided adds sums[0], sums[step] … of n to lane 0's sum.
template <class F> FN void sum_strided(lane_sum<F>* m, u32 lane, const xyzz<F>* sums, u64 step, u32 n, bool keep) {
  if (!keep || lane > 0) set_identity(&m[lane].sum);
  ROLLED for (u32 j = lane; j < n; j += 32) add_called(&m[lane].sum, sums + j * step, m[lane].s);
  warp_sum(m, lane);
}

// heavy_groups puts the sum of each group of chunks in its first slot; a warp a group.
template <class F> FN void heavy_groups(lane_sum<F>* m, const uint2* groups, const u32* count, xyzz<F>* sums) {
  u32 lane = threadIdx.x % 32, warps = gridDim.x * (blockDim.x / 32);
  u32 n = *count;
  ROLLED for (u32 g = (blockIdx.x * blockDim.x + threadIdx.x) / 32; g < n; g += warps) {
    uint2 x = groups[g];
    sum_strided(m, lane, sums + x.x, 1, x.y, false);
    if (lane == 0) copy_point(sums + x.x, &m[0].sum);
    warp_sync();
  }
}

// heavy_buckets adds the sums of its groups to each heavy bucket; a warp a bucket.
template <class F>
FN void heavy_buckets(lane_sum<F>* m, const uint4* heavy, const u32* count, u32 group, xyzz<F>* sums) {
  u32 lane = threadIdx.x % 32, warps = gridDim.x * (blockDim.x / 32);
  u32 n = *count;
  ROLLED for (u32 h = (blockIdx.x * blockDim.x + threadIdx.x) / 32; h < n; h += warps) {
    uint4 x = heavy[h];
    if (lane == 0) copy_point(&m[0].sum, sums + x.x);
    sum_strided(m, lane, sums + x.y, group, (x.z + group - 1) / group, true);
    if (lane == 0) copy_point(sums + x.x, &m[0].sum);
    warp_sync();
  }
}

// pair_sum is a thread's memory in segments.
template <class F> struct pair_sum {
  xyzz<F> run, sum;
  F s[scratch_of<F>];
  static constexpr u32 bytes = ((2 * sizeof(xyzz<F>) + scratch_of<F> * sizeof(F)) / 16 | 1) * 16;
};

// segments: for each m consecutive buckets S_1 … S_m, plain = Σ S_j and
// weighted = Σ j·S_j, a thread a segment, by running sums.
template <class F>
FN void segments(uint4* all, const xyzz<F>* buckets, u32 n, u32 m, xyzz<F>* plain, xyzz<F>* weighted) {
  u32 t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  auto* p = memory_of<pair_sum<F>>(all, pair_sum<F>::bytes);
  const xyzz<F>* b = buckets + u64(t) * m;
  set_identity(&p->run);
  set_identity(&p->sum);
  ROLLED for (u32 j = 2 * m; j-- > 0;) {
    bool odd = j & 1;
    add_to(odd ? &p->run : &p->sum, odd ? b + (j >> 1) : &p->run, p->s);
  }
  copy_point(plain + t, &p->run);
  copy_point(weighted + t, &p->sum);
}

// lines: a window's segments are a table of 2^hb rows and 2^lb columns. A warp
// makes the sum of a row or a column of plain, or of a row of weighted.
template <class F>
FN void lines(lane_sum<F>* m, const xyzz<F>* plain, const xyzz<F>* weighted, u32 windows, u32 hb, u32 lb, xyzz<F>* out) {
  u32 g = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  u32 rows = 1u << hb, columns = 1u << lb, each = 2 * rows + columns;
  if (g >= windows * each) return;
  u32 w = g / each, k = g % each;
  u64 base = u64(w) << (hb + lb);
  const xyzz<F>* from = plain + base;
  u32 n = columns;
  u64 step = 1;
  if (k < rows) {
    from += u64(k) << lb;
  } else if (k < rows + columns) {
    from += k - rows;
    n = rows;
    step = columns;
  } else {
    from = weighted + base + (u64(k - rows - columns) << lb);
  }
  sum_strided(m, lane, from, step, n, false);
  if (lane == 0) copy_point(out + g, &m[0].sum);
}

template <class F> FN void copy_canonical(xyzz<F>* d, const xyzz<F>* a) {
  F* o = &d->x;
  const F* v = &a->x;
  ROLLED for (u32 i = 0; i < 4; i++) store(o + i, csub1(load(v + i)));
}

// bits: for each bit of a row's number the sum of the rows that have it, the
// same for columns, and the sum of all weighted rows. A warp each; canonical.
template <class F> FN void bits(lane_sum<F>* m, const xyzz<F>* in, u32 hb, u32 lb, xyzz<F>* out) {
  u32 each = hb + lb + 1, g = blockIdx.x, lane = threadIdx.x;
  u32 w = g / each, k = g % each, rows = 1u << hb, columns = 1u << lb;
  const xyzz<F>* from = in + u64(w) * (2 * rows + columns);
  u32 n = rows / 2, bit = k;
  bool all = false;
  if (k >= hb + lb) {
    from += rows + columns;
    n = rows;
    all = true;
  } else if (k >= hb) {
    from += rows;
    n = columns / 2;
    bit = k - hb;
  }
  set_identity(&m[lane].sum);
  ROLLED for (u32 j = lane; j < n; j += 32) {
    u32 q = all ? j : (j >> bit << (bit + 1)) | (1u << bit) | (j & ((1u << bit) - 1));
    add_called(&m[lane].sum, from + q, m[lane].s);
  }
  warp_sum(m, lane);
  if (lane == 0) copy_canonical(out + g, &m[0].sum);
}

// sum_points: each thread adds up an equal share of the listed points;
// neighbours take neighbours' points.
template <class F>
FN void sum_points(uint4* all, const affine<F>* points, const u32* list, const u32* count, u32 most, xyzz<F>* out) {
  u32 t = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
  auto* m = memory_of<adder<F>>(all, adder<F>::bytes);
  u32 n = count ? *count : most;
  if (n > most) trap();
  u32 mine = n / threads + (t < n % threads);
  bool identity = add_listed(m, points, list + t, threads, mine, true);
  if (identity)
    set_identity(out + t);
  else
    copy_point(out + t, &m->sum);
}

// sum_fold: a warp adds up per consecutive sums of n; canonical at the end.
template <class F> FN void sum_fold(lane_sum<F>* m, const xyzz<F>* in, u32 n, u32 per, u32 last, xyzz<F>* out) {
  u32 g = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  u32 from = g * per;
  if (from >= n) return;
  sum_strided(m, lane, in + from, 1, n - from < per ? n - from : per, false);
  if (lane != 0) return;
  if (last)
    copy_canonical(out + g, &m[0].sum);
  else
    copy_point(out + g, &m[0].sum);
}

}  // namespace CURVE_NS

#define WARP_SUMS(F, warps)                 \
  SHARED(lane_sum<F>, sums_, 32 * (warps)); \
  lane_sum<F>* m = sums_ + (threadIdx.x & ~31u)

// GROUP_KERNELS defines the kernels of a group. T threads a block and B blocks
// an SM add points; S and SB are those of segments; SUM is the blocks an SM of
// 64 threads that add up sums.
#define GROUP_KERNELS(g, F, T, B, S, SB, SUM)                                                                         \
  KERNEL_BOUNDS(g##_accumulate, T, B)(const affine<F>* points, const u32* index, const u32* start, const u32* length, \
                                      const u32* order, const u32* tasks, u32 nb, u32 first, xyzz<F>* sums) {         \
    DYNAMIC_SHARED(uint4, all);                                                                                       \
    accumulate(all, points, index, start, length, order, tasks, nb, first, sums);                                     \
  }                                                                                                                   \
  EXPORT(g##_accumulate)                                                                                              \
  KERNEL_BOUNDS(g##_part, 1, 1)(const u32* count, u32 all, u32 from, u32 most, u32* out) {                            \
    part(count, all, from, most, out);                                                                                \
  }                                                                                                                   \
  EXPORT(g##_part)                                                                                                    \
  KERNEL_BOUNDS(g##_heavy_groups, 64, SUM)(const uint2* groups, const u32* count, xyzz<F>* sums) {                    \
    WARP_SUMS(F, 2);                                                                                                  \
    heavy_groups(m, groups, count, sums);                                                                             \
  }                                                                                                                   \
  EXPORT(g##_heavy_groups)                                                                                            \
  KERNEL_BOUNDS(g##_heavy_buckets, 64, SUM)(const uint4* heavy, const u32* count, u32 group, xyzz<F>* sums) {         \
    WARP_SUMS(F, 2);                                                                                                  \
    heavy_buckets(m, heavy, count, group, sums);                                                                      \
  }                                                                                                                   \
  EXPORT(g##_heavy_buckets)                                                                                           \
  KERNEL_BOUNDS(g##_segments, S, SB)(const xyzz<F>* buckets, u32 n, u32 size, xyzz<F>* plain, xyzz<F>* weighted) {    \
    DYNAMIC_SHARED(uint4, all);                                                                                       \
    segments(all, buckets, n, size, plain, weighted);                                                                 \
  }                                                                                                                   \
  EXPORT(g##_segments)                                                                                                \
  KERNEL_BOUNDS(g##_lines, 64, SUM)(const xyzz<F>* plain, const xyzz<F>* weighted, u32 windows, u32 hb, u32 lb,       \
                                  xyzz<F>* out) {                                                                     \
    WARP_SUMS(F, 2);                                                                                                  \
    lines(m, plain, weighted, windows, hb, lb, out);                                                                  \
  }                                                                                                                   \
  EXPORT(g##_lines)                                                                                                   \
  KERNEL_BOUNDS(g##_bits, 32, 1)(const xyzz<F>* in, u32 hb, u32 lb, xyzz<F>* out) {                                   \
    WARP_SUMS(F, 1);                                                                                                  \
    bits(m, in, hb, lb, out);                                                                                         \
  }                                                                                                                   \
  EXPORT(g##_bits)                                                                                                    \
  KERNEL_BOUNDS(g##_sum_points, T, B)(const affine<F>* points, const u32* list, const u32* count, u32 most,           \
                                      xyzz<F>* out) {                                                                 \
    DYNAMIC_SHARED(uint4, all);                                                                                       \
    sum_points(all, points, list, count, most, out);                                                                  \
  }                                                                                                                   \
  EXPORT(g##_sum_points)                                                                                              \
  KERNEL_BOUNDS(g##_sum_fold, 64, SUM)(const xyzz<F>* in, u32 n, u32 per, u32 last, xyzz<F>* out) {                   \
    WARP_SUMS(F, 2);                                                                                                  \
    sum_fold(m, in, n, per, last, out);                                                                               \
  }                                                                                                                   \
  EXPORT(g##_sum_fold)
