// Points sorted into the buckets of their scalars' digits, for all windows of a
// multi-scalar multiplication at once. See SortPlan and Buckets in Go.
//
//   digits   scalar → its representative between −r/2 and r/2, plus a bias that
//            makes all digits but the top one positive, as eight vectors of
//            words; counts the digits by the high bits of their bucket
//   firsts   where each partition (window, high bits) begins
//   high     digits → elements, sorted by partition
//   count    elements → lengths of the buckets
//   starts   where each bucket begins
//   low      elements → index, sorted by bucket
//   tasks …  buckets → slots of bounded length, the longest first
//
// The order within a bucket does not matter, so a block takes room in a bucket
// with one atomic addition, and no pass needs what another block has counted.
// An element is the number of a point, bit 31 for its negative, and the low
// bits of its bucket: in the same word where they fit (at bit packed), and
// otherwise in a vector of 16-bit words (packed is 0).
#include "rt.cuh"
#include "sort_block.cuh"

namespace CURVE_NS {

typedef uint16_t u16;
#define FN_IN __device__ inline __attribute__((always_inline))  // FN in a struct
struct Words8 {
  u32 v[8];
};

constexpr u32 TILE = 8192, TILE_THREADS = 512, ITEMS = TILE / TILE_THREADS;
constexpr u32 LOOP_THREADS = 256, SCAN_THREADS = 1024;
constexpr u32 LENGTHS = 1024;
constexpr u32 MOST_HIGH = 1 << 10, MOST_LOW = 1 << 11;
enum { HEAVY, CHUNKS, GROUPS, TASKS };  // words of the control block

#if CURVE == 381
#define R_WORDS {0x00000001u, 0xffffffffu, 0xfffe5bfeu, 0x53bda402u, 0x09a1d805u, 0x3339d808u, 0x299d7d48u, 0x73eda753u}
#define R_INVERSE 0xffffffffu  // −1/r mod 2^32
#else
#define R_WORDS {0xf0000001u, 0x43e1f593u, 0x79b97091u, 0x2833e848u, 0x8181585du, 0xb85045b6u, 0xe131a029u, 0x30644e72u}
#define R_INVERSE 0xefffffffu
#endif

FN u32 funnel(u32 low, u32 high, u32 by) { return u32(((u64(high) << 32) | low) >> by); }

// less reports a < b.
FN bool less(const u32* a, const u32* b) {
  u32 borrow = 0;
  UNROLL for (int j = 0; j < 8; j++) borrow = u32((u64(a[j]) - b[j] - borrow) >> 63);
  return borrow;
}

FN void sub(u32* a, const u32* b) {
  u32 borrow = 0;
  UNROLL for (int j = 0; j < 8; j++) {
    u64 d = u64(a[j]) - b[j] - borrow;
    a[j] = u32(d);
    borrow = u32(d >> 63);
  }
}

// plain takes s out of Montgomery form: s·2^−256 mod r, below r.
FN void plain(u32* s) {
  const u32 r[8] = R_WORDS;
  UNROLL for (int i = 0; i < 8; i++) {
    u32 q = s[0] * R_INVERSE;
    u64 t = u64(q) * r[0] + s[0];
    UNROLL for (int j = 1; j < 8; j++) {
      t = u64(q) * r[j] + s[j] + (t >> 32);
      s[j - 1] = u32(t);
    }
    s[7] = u32(t >> 32);
  }
  if (!less(s, r)) sub(s, r);
}

// centre turns s < r into the representative between −r/2 and r/2 plus bias,
// in two's complement of 256 bits.
FN void centre(u32* s, const u32* bias) {
  const u32 r[8] = R_WORDS;
  u32 left[8];
  UNROLL for (int j = 0; j < 8; j++) left[j] = r[j];
  sub(left, s);
  if (less(left, s)) sub(s, r);
  u32 carry = 0;
  UNROLL for (int j = 0; j < 8; j++) {
    u64 t = u64(s[j]) + bias[j] + carry;
    s[j] = u32(t);
    carry = u32(t >> 32);
  }
}

FN u32 reverse(u32 v, u32 bits) {
  v = ((v >> 1) & 0x55555555u) | ((v & 0x55555555u) << 1);
  v = ((v >> 2) & 0x33333333u) | ((v & 0x33333333u) << 2);
  v = ((v >> 4) & 0x0f0f0f0fu) | ((v & 0x0f0f0f0fu) << 4);
  v = ((v >> 8) & 0x00ff00ffu) | ((v & 0x00ff00ffu) << 8);
  return ((v >> 16) | (v << 16)) >> (32 - bits);
}

// terms is how many there are.
FN u32 terms(const u32* count, u32 most) {
  if (!count) return most;
  u32 n = *count;
  return n < most ? n : most;
}

// digit_of is the bucket in its window of a signed digit that is not 0, and
// with it bit 31 when the digit is below 0.
FN u32 digit_of(int d) { return d < 0 ? (u32(-d) - 1) | 0x80000000u : u32(d) - 1; }

KERNEL_BOUNDS(sort_digits, LOOP_THREADS, 3)(const u32* scalars, const u32* wires, const u32* pick, const u32* count, u32 most,
    u32 first, u32 reversed, u32 bits, u32 windows, u32 high, Words8 bias, u32* planes, u32 stride, u32* counts) {
  DYNAMIC_SHARED(u32, bins);  // windows << high
  if (count && *count > most) trap();  // the sum would lack terms
  u32 total = windows << high, low = bits - 1 - high;
  for (u32 i = threadIdx.x; i < total; i += LOOP_THREADS) bins[i] = 0;
  block_sync();
  u32 n = terms(count, most), step = gridDim.x * LOOP_THREADS;
  for (u32 i = blockIdx.x * LOOP_THREADS + threadIdx.x; i < n; i += step) {
    u32 j = pick ? pick[i] : i;
    u32 k = wires ? wires[j] : first + j;
    if (reversed) k = reverse(k, reversed);
    const uint4* p = (const uint4*)scalars + 2 * u64(k);
    uint4 a = p[0], b = p[1];
    u32 s[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
    plain(s);
    centre(s, bias.v);
    UNROLL for (int w = 0; w < 8; w++) planes[u64(w) * stride + i] = s[w];
    u32 half = 1u << (bits - 1), mask = 2 * half - 1;
    ROLLED for (u32 w = 0; w < windows; w++) {
      int d = w + 1 < windows ? int(s[0] & mask) - int(half) : int(s[0]);
      if (d) atomic_add(&bins[(w << high) + ((digit_of(d) & 0x7fffffffu) >> low)], 1);
      UNROLL for (int t = 0; t < 7; t++) s[t] = funnel(s[t], s[t + 1], bits);
      s[7] = u32(int(s[7]) >> bits);
    }
  }
  block_sync();
  for (u32 i = threadIdx.x; i < total; i += LOOP_THREADS)
    if (bins[i]) atomic_add(&counts[i], bins[i]);
}
EXPORT(sort_digits)

// sort_firsts puts where partitions begin in firsts and in counts (from where
// sort_high moves them on), and the number of the first tile of each in
// tile_firsts. One block.
KERNEL_BOUNDS(sort_firsts, SCAN_THREADS, 1)(u32* counts, u32* firsts, u32* tile_firsts, u32 partitions) {
  SHARED(u32, sums, SCAN_THREADS / 32 + 1);
  u32 per = (partitions + SCAN_THREADS - 1) / SCAN_THREADS, from = threadIdx.x * per;
  u32 elements = 0, tiles = 0, all, all_tiles;
  for (u32 i = from; i < from + per && i < partitions; i++) {
    u32 c = counts[i];
    elements += c;
    tiles += (c + TILE - 1) / TILE;
  }
  elements = block_scan<SCAN_THREADS>(elements, sums, all);
  block_sync();
  tiles = block_scan<SCAN_THREADS>(tiles, sums, all_tiles);
  for (u32 i = from; i < from + per && i < partitions; i++) {
    u32 c = counts[i];
    counts[i] = firsts[i] = elements;
    tile_firsts[i] = tiles;
    elements += c;
    tiles += (c + TILE - 1) / TILE;
  }
  if (threadIdx.x == 0) {
    firsts[partitions] = all;
    tile_firsts[partitions] = all_tiles;
  }
}
EXPORT(sort_firsts)

// sort_tiles cuts the partitions in tiles {first, count, partition} of equal
// size, TILE at most.
KERNEL_BOUNDS(sort_tiles, LOOP_THREADS, 1)(const u32* firsts, const u32* tile_firsts, u32 partitions, uint4* tiles) {
  u32 t = blockIdx.x * LOOP_THREADS + threadIdx.x;
  if (t < tile_firsts[partitions]) {
    u32 a = 0, b = partitions;  // tile_firsts[a] <= t < tile_firsts[b]
    while (b - a > 1) {
      u32 m = (a + b) / 2;
      if (tile_firsts[m] <= t) a = m; else b = m;
    }
    u32 size = firsts[a + 1] - firsts[a], n = tile_firsts[a + 1] - tile_firsts[a];
    u32 per = (size + n - 1) / n, from = (t - tile_firsts[a]) * per;
    u32 left = size > from ? size - from : 0;
    tiles[t] = make_uint4(firsts[a] + from, left < per ? left : per, a, 0);
  }
}
EXPORT(sort_tiles)

// Rooms is the room that a thread has asked for, for bin k·TILE_THREADS + its
// number. The answers are looked at only when they are needed, so that the
// tile is sorted meanwhile.
template <u32 BINS> struct Rooms {
  static constexpr u32 EACH = BINS / TILE_THREADS;
  u32 got[EACH];

  // ask turns the counts of a tile's n bins into where each begins in the sorted
  // tile, and takes room for each at room[bin]. It returns the size of the tile.
  FN_IN u32 ask(u32* bins, u32* sums, u32 n, u32* room) {
    u32 from = threadIdx.x * EACH, count[EACH], sum = 0, total;
    UNROLL for (u32 k = 0; k < EACH; k++) sum += count[k] = from + k < n ? bins[from + k] : 0;
    sum = block_scan<TILE_THREADS>(sum, sums, total);
    UNROLL for (u32 k = 0; k < EACH; k++) {
      if (from + k < n) bins[from + k] = sum;
      sum += count[k];
    }
    block_sync();
    UNROLL for (u32 k = 0; k < EACH; k++) {
      u32 i = k * TILE_THREADS + threadIdx.x;
      got[k] = 0;
      if (i < n) {
        u32 c = (i + 1 < n ? bins[i + 1] : total) - bins[i];
        if (c) got[k] = atomic_add(&room[i], c);
      }
    }
    return total;
  }

  // settle puts in moved what to add to a place in the tile for the place where
  // it goes. A barrier comes after it.
  FN_IN void settle(const u32* bins, u32* moved, u32 n) {
    UNROLL for (u32 k = 0; k < EACH; k++) {
      u32 i = k * TILE_THREADS + threadIdx.x;
      if (i < n) moved[i] = got[k] - bins[i];
    }
  }
};

KERNEL_BOUNDS(sort_high, TILE_THREADS, 2)(const u32* planes, u32 stride, const u32* pick, const u32* count, u32 most,
    u32 bits, u32 windows, u32 first_window, u32 high, u32 packed, u32* rooms, const u32* firsts, u32* values, u16* lows) {
  SHARED(u32, bins, MOST_HIGH);
  SHARED(u32, moved, MOST_HIGH);
  SHARED(u32, sums, TILE_THREADS / 32 + 1);
  DYNAMIC_SHARED(u32, sorted);  // TILE values, TILE buckets
  u32 n = terms(count, most), tile = blockIdx.x * TILE, window = first_window + blockIdx.y;
  if (tile >= n) return;
  for (u32 i = threadIdx.x; i < 1u << high; i += TILE_THREADS) bins[i] = 0;
  block_sync();
  u32 low = bits - 1 - high, at = window * bits, shift = at & 31, half = 1u << (bits - 1);
  bool top = window + 1 == windows, two = shift + (top ? 256 - at : bits) > 32;
  const u32* word = planes + u64(at >> 5) * stride;
  const u32* next = two ? word + stride : word;
  u32 key[ITEMS], place[ITEMS];
  UNROLL for (u32 k = 0; k < ITEMS; k++) {
    u32 i = tile + k * TILE_THREADS + threadIdx.x;
    key[k] = ~0u;
    if (i < n) {
      u32 x = word[i], y = two ? next[i] : 0;
      x = funnel(x, y, shift);
      int d = top ? int(x << (at - 224)) >> (at - 224) : int(x & (2 * half - 1)) - int(half);
      if (d) key[k] = digit_of(d);
    }
  }
  UNROLL for (u32 k = 0; k < ITEMS; k++)
    if (tile + k * TILE_THREADS < n) place[k] = take_place(bins, (key[k] & 0x7fffffffu) >> low, key[k] != ~0u);
  block_sync();
  Rooms<MOST_HIGH> mine;
  u32 total = mine.ask(bins, sums, 1u << high, rooms + (window << high));
  UNROLL for (u32 k = 0; k < ITEMS; k++) {
    if (key[k] == ~0u) continue;
    u32 i = tile + k * TILE_THREADS + threadIdx.x, bucket = key[k] & 0x7fffffffu;
    u32 to = bins[bucket >> low] + place[k];
    u32 value = (pick ? pick[i] : i) | (key[k] & 0x80000000u);
    if (packed) value |= (bucket & ((1u << low) - 1)) << packed;
    sorted[to] = value;
    sorted[TILE + to] = bucket;
  }
  mine.settle(bins, moved, 1u << high);
  block_sync();
  u32 base = firsts[first_window << high];
  ROLLED for (u32 i0 = threadIdx.x; i0 < total; i0 += 4 * TILE_THREADS) {
    u32 value[4], bucket[4], to[4];
    UNROLL for (u32 k = 0; k < 4; k++) {
      u32 i = i0 + k * TILE_THREADS;
      if (i >= total) i = 0;
      bucket[k] = sorted[TILE + i];
      value[k] = sorted[i];
      to[k] = i + moved[bucket[k] >> low] - base;
    }
    UNROLL for (u32 k = 0; k < 4; k++)
      if (i0 + k * TILE_THREADS < total) {
        values[to[k]] = value[k];
        if (!packed) lows[to[k]] = u16(bucket[k] & ((1u << low) - 1));
      }
  }
}
EXPORT(sort_high)

FN u32 low_bits(const u32* values, const u16* lows, u32 i, u32 packed, u32 low) {
  return packed ? (values[i] >> packed) & ((1u << low) - 1) : lows[i];
}

// Blocks of sort_count and sort_low each do one tile of the partitions from …
// to − 1, whose elements begin at values[0].
KERNEL_BOUNDS(sort_count, TILE_THREADS, 3)(const u32* values, const u16* lows, u32 packed, u32 low, const uint4* tiles,
    const u32* firsts, const u32* tile_firsts, u32 from, u32 to, u32* lengths) {
  SHARED(u32, bins, MOST_LOW);
  u32 t = tile_firsts[from] + blockIdx.x;
  if (t >= tile_firsts[to]) return;
  for (u32 i = threadIdx.x; i < 1u << low; i += TILE_THREADS) bins[i] = 0;
  block_sync();
  uint4 tile = tiles[t];
  u32 base = tile.x - firsts[from], bin[ITEMS];
  UNROLL for (u32 k = 0; k < ITEMS; k++) {
    u32 i = k * TILE_THREADS + threadIdx.x;
    bin[k] = i < tile.y ? low_bits(values, lows, base + i, packed, low) : ~0u;
  }
  UNROLL for (u32 k = 0; k < ITEMS; k++)
    if (bin[k] != ~0u) atomic_add(&bins[bin[k]], 1);
  block_sync();
  for (u32 i = threadIdx.x; i < 1u << low; i += TILE_THREADS)
    if (bins[i]) atomic_add(&lengths[(tile.z << low) + i], bins[i]);
}
EXPORT(sort_count)

FN uint4 four(const u32* p) { return *(const uint4*)p; }
FN void put_four(u32* p, u32 x, u32 y, u32 z, u32 w) { *(uint4*)p = make_uint4(x, y, z, w); }

// sort_starts puts where each bucket begins in starts; sort_low moves it on to
// where it ends. A warp a partition, four buckets a lane at a time.
KERNEL_BOUNDS(sort_starts, LOOP_THREADS, 1)(const u32* firsts, u32 from, u32 to, u32 low, const u32* lengths, u32* starts) {
  u32 partition = from + ((blockIdx.x * LOOP_THREADS + threadIdx.x) >> 5);
  if (partition >= to) return;
  u32 at = firsts[partition];
  for (u32 i = 0; i < 1u << low; i += 128) {
    u32 b = i + 4 * lane_of();
    bool in = b < 1u << low;
    b += partition << low;
    uint4 n = in ? four(lengths + b) : make_uint4(0, 0, 0, 0);
    u32 sum = n.x + n.y + n.z + n.w, up = 0, all = 0;
    if (ballot(~0u, sum)) {  // often not, when there are few points
      up = warp_scan(sum);
      all = shfl(~0u, up, 31);
    }
    up += at - sum;
    if (in) put_four(starts + b, up, up + n.x, up + n.x + n.y, up + n.x + n.y + n.z);
    at += all;
  }
}
EXPORT(sort_starts)

KERNEL_BOUNDS(sort_low, TILE_THREADS, 2)(const u32* values, const u16* lows, u32 packed, u32 low, const uint4* tiles,
    const u32* firsts, const u32* tile_firsts, u32 from, u32 to, u32* starts, u32* index) {
  SHARED(u32, bins, MOST_LOW);
  SHARED(u32, moved, MOST_LOW);
  SHARED(u32, sums, TILE_THREADS / 32 + 1);
  DYNAMIC_SHARED(u32, sorted);  // TILE values, TILE / 2 words of low bits
  u16* sorted_lows = (u16*)(sorted + TILE);
  u32 t = tile_firsts[from] + blockIdx.x;
  if (t >= tile_firsts[to]) return;
  for (u32 i = threadIdx.x; i < 1u << low; i += TILE_THREADS) bins[i] = 0;
  block_sync();
  uint4 tile = tiles[t];
  u32 base = tile.x - firsts[from], keep = packed ? 0x80000000u | ((1u << packed) - 1) : ~0u;
  u32 value[ITEMS], key[ITEMS];  // key: low bits, place << 16
  UNROLL for (u32 k = 0; k < ITEMS; k++) {
    u32 i = k * TILE_THREADS + threadIdx.x;
    value[k] = i < tile.y ? values[base + i] : 0;
    key[k] = i < tile.y ? low_bits(values, lows, base + i, packed, low) : 0;
  }
  UNROLL for (u32 k = 0; k < ITEMS; k++)
    if (k * TILE_THREADS < tile.y) key[k] |= take_place(bins, key[k], k * TILE_THREADS + threadIdx.x < tile.y) << 16;
  block_sync();
  Rooms<MOST_LOW> mine;
  u32 total = mine.ask(bins, sums, 1u << low, starts + (tile.z << low));
  UNROLL for (u32 k = 0; k < ITEMS; k++) {
    if (k * TILE_THREADS + threadIdx.x >= tile.y) continue;
    u32 bin = key[k] & 0xffff, at = bins[bin] + (key[k] >> 16);
    sorted[at] = value[k] & keep;
    sorted_lows[at] = u16(bin);
  }
  mine.settle(bins, moved, 1u << low);
  block_sync();
  ROLLED for (u32 i0 = threadIdx.x; i0 < total; i0 += 4 * TILE_THREADS) {
    u32 point[4], to[4];
    UNROLL for (u32 k = 0; k < 4; k++) {
      u32 i = i0 + k * TILE_THREADS;
      if (i >= total) i = 0;
      point[k] = sorted[i];
      to[k] = i + moved[sorted_lows[i]];
    }
    UNROLL for (u32 k = 0; k < 4; k++)
      if (i0 + k * TILE_THREADS < total) index[to[k]] = point[k];
  }
}
EXPORT(sort_low)

// list_heavy lists bucket b of n points if it is longer than longest. All lanes
// of the warp call it.
FN void list_heavy(u32 b, u32 n, u32 buckets, u32 longest, u32 most_chunks, u32* control, uint4* heavy) {
  bool is_heavy = n > longest;
  u32 heavies = ballot(~0u, is_heavy);
  if (!heavies) return;
  u32 chunks = 0;
  if (is_heavy) {
    chunks = (n + longest - 1) / longest;
    if (chunks > most_chunks) chunks = most_chunks;
    u32 per = (n + chunks - 1) / chunks;
    chunks = (n + per - 1) / per;  // none is empty
  }
  u32 up = warp_scan(chunks), at = 0, slot = 0;
  if (lane_of() == 31) {
    at = atomic_add(&control[HEAVY], popcount(heavies));
    slot = atomic_add(&control[CHUNKS], up);
  }
  at = shfl(~0u, at, 31);
  slot = shfl(~0u, slot, 31);
  if (is_heavy) heavy[at + popcount(heavies & ((1u << lane_of()) - 1))] = make_uint4(b, buckets + slot + up - chunks, chunks, 0);
}

// sort_tasks moves starts back to where buckets begin, counts the lengths of
// the buckets that are tasks, and lists the heavy ones. Four buckets a thread
// at a time: their number is a multiple of 32.
KERNEL_BOUNDS(sort_tasks, LOOP_THREADS, 1)(const u32* lengths, u32* starts, u32 buckets, u32 longest, u32 most_chunks,
    u32* control, u32* counts, uint4* heavy) {
  SHARED(u32, bins, LENGTHS);
  for (u32 i = threadIdx.x; i < LENGTHS; i += LOOP_THREADS) bins[i] = 0;
  block_sync();
  u32 step = gridDim.x * LOOP_THREADS * 4;
  for (u32 b0 = blockIdx.x * LOOP_THREADS * 4; b0 < buckets; b0 += step) {
    u32 b = b0 + 4 * threadIdx.x;
    uint4 n = make_uint4(0, 0, 0, 0);
    if (b < buckets) {
      n = four(lengths + b);
      uint4 s = four(starts + b);
      put_four(starts + b, s.x - n.x, s.y - n.y, s.z - n.z, s.w - n.w);
    }
    if (!ballot(~0u, n.x | n.y | n.z | n.w)) continue;
    ROLLED for (u32 k = 0; k < 4; k++) {
      u32 m = k == 0 ? n.x : k == 1 ? n.y : k == 2 ? n.z : n.w;
      take_place(bins, m, m && m <= longest);
      list_heavy(b + k, m, buckets, longest, most_chunks, control, heavy);
    }
  }
  block_sync();
  for (u32 i = threadIdx.x; i < LENGTHS; i += LOOP_THREADS)
    if (bins[i]) atomic_add(&counts[i], bins[i]);
}
EXPORT(sort_tasks)

FN u32 length_class(u32 n) { return n < LENGTHS ? n : LENGTHS - 1; }

// sort_chunks makes slots of the heavy buckets' chunks, and groups of those. A
// warp a bucket.
KERNEL_BOUNDS(sort_chunks, LOOP_THREADS, 1)(u32* lengths, u32* starts, u32 group, u32* control, u32* counts,
    const uint4* heavy, uint2* groups) {
  u32 warps = gridDim.x * (LOOP_THREADS / 32);
  for (u32 h = (blockIdx.x * LOOP_THREADS + threadIdx.x) >> 5; h < control[HEAVY]; h += warps) {
    uint4 x = heavy[h];
    u32 chunks = x.z, n = lengths[x.x], from = starts[x.x], per = (n + chunks - 1) / chunks, last = n - (chunks - 1) * per;
    for (u32 j = lane_of(); j < chunks; j += 32) {
      starts[x.y + j] = from + j * per;
      lengths[x.y + j] = j + 1 < chunks ? per : last;
    }
    u32 k = (chunks + group - 1) / group, at = 0;
    if (lane_of() == 0) {
      atomic_add(&counts[length_class(per)], chunks - 1);
      atomic_add(&counts[length_class(last)], 1);
      at = atomic_add(&control[GROUPS], k);
    }
    at = shfl(~0u, at, 0);
    for (u32 j = lane_of(); j < k; j += 32) {
      u32 left = chunks - j * group;
      groups[at + j] = uint2{x.y + j * group, left < group ? left : group};
    }
  }
}
EXPORT(sort_chunks)

// sort_lengths puts where the tasks of each length begin in counts, the longest
// first, and how many tasks there are. One block.
KERNEL_BOUNDS(sort_lengths, SCAN_THREADS, 1)(u32* control, u32* counts) {
  SHARED(u32, sums, SCAN_THREADS / 32 + 1);
  u32 length = LENGTHS - 1 - threadIdx.x, total;
  u32 at = block_scan<SCAN_THREADS>(counts[length], sums, total);
  counts[length] = at;
  if (threadIdx.x == 0) control[TASKS] = total;
}
EXPORT(sort_lengths)

KERNEL_BOUNDS(sort_order, TILE_THREADS, 2)(const u32* lengths, u32 buckets, u32 longest, const u32* control, u32* rooms, u32* order) {
  SHARED(u32, bins, LENGTHS);
  SHARED(u32, moved, LENGTHS);
  SHARED(u32, sums, TILE_THREADS / 32 + 1);
  u32 slots = buckets + control[CHUNKS], tile = blockIdx.x * TILE;
  if (tile >= slots) return;
  for (u32 i = threadIdx.x; i < LENGTHS; i += TILE_THREADS) bins[i] = 0;
  block_sync();
  u32 key[ITEMS], any = 0;  // length, place << 16
  UNROLL for (u32 k = 0; k < ITEMS; k++) {
    u32 s = tile + k * TILE_THREADS + threadIdx.x;
    u32 n = s < slots ? lengths[s] : 0;
    key[k] = s < buckets && n > longest ? 0 : length_class(n);
    any |= key[k];
  }
  any = ballot(~0u, any);
  UNROLL for (u32 k = 0; k < ITEMS; k++)
    if (any && tile + k * TILE_THREADS < slots) key[k] |= take_place(bins, key[k], key[k] != 0) << 16;
  block_sync();
  Rooms<LENGTHS> mine;
  mine.ask(bins, sums, LENGTHS, rooms);
  mine.settle(bins, moved, LENGTHS);
  block_sync();
  UNROLL for (u32 k = 0; k < ITEMS; k++) {
    u32 n = key[k] & 0xffff;
    if (n) order[bins[n] + moved[n] + (key[k] >> 16)] = tile + k * TILE_THREADS + threadIdx.x;
  }
}
EXPORT(sort_order)

}  // namespace CURVE_NS
