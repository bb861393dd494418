// The emulator's side of rt.cuh: the same kernels on a CPU, compiled by any
// C++17 compiler. Behind it stands cuda/emulator/src/block.cc, which runs a
// block's threads as fibers of one OS thread, in any order, and stops with a
// report when they wait for each other for ever.
//
// One kernel file alone, with a small main of your own (from the repository's
// root; add -g -O0, or -fsanitize=address,undefined, as you like):
//
//   cat > /tmp/main.cc <<'END'
//   #include "ntt.cu"                       // any one kernel file
//   #include <stdio.h>
//   using namespace CURVE_NS;
//   int main() {
//     static u32 in[1024], out[1024];
//     // kernel, grid, block, bytes of dynamic shared memory, arguments
//     emu_run(ENTRY(double_it), {4}, {256}, 0, in, out, 1024);
//     printf("%u\n", out[7]);
//   }
//   END
//   clang++-19 -std=c++17 -O2 -g -DCURVE=381 -DSNARKLINE_EMULATOR -Icuda/kernels
//     /tmp/main.cc cuda/emulator/src/{block,fiber}.cc -lpthread -o /tmp/main && /tmp/main
//
// EMU_ORDER=1 in the environment starts a block's threads from the last one,
// and a higher number in an order drawn with it: a kernel that lacks a barrier
// then shows it.
//
// What differs from the GPU, on purpose: lanes of a warp never run in step;
// copy16 copies when it is waited for, so a missing copy_wait is seen; a lane
// that is not in the mask of a shuffle gives 0xdeadbeef; shared memory holds
// nothing of the block before.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <tuple>
#include <type_traits>
#include <utility>

#define __device__
#define __global__
#define __constant__
#ifdef __linux__
#define EMU_TLS __attribute__((tls_model("initial-exec"), visibility("hidden")))
#else
#define EMU_TLS
#endif

// Nothing is unrolled here: that only costs the compiler time.
#undef UNROLL
#undef ROLLED
#define UNROLL
#define ROLLED

struct uint3 { u32 x, y, z; };
struct dim3 {
  u32 x, y, z;
  constexpr dim3(u32 x = 1, u32 y = 1, u32 z = 1) : x(x), y(y), z(z) {}
};
struct alignas(16) uint4 { u32 x, y, z, w; };
struct alignas(8) uint2 { u32 x, y; };
static inline uint4 make_uint4(u32 x, u32 y, u32 z, u32 w) { return {x, y, z, w}; }

// Where the running thread is. Set when fibers change.
struct emu_place {
  uint3 thread, block, block_dim, grid_dim;
  void* dynamic;  // shared memory of the launch
};
extern __thread emu_place emu_here EMU_TLS;
#define threadIdx (emu_here.thread)
#define blockIdx (emu_here.block)
#define blockDim (emu_here.block_dim)
#define gridDim (emu_here.grid_dim)

// Shared memory belongs to the OS thread that runs the block. A block finds 0xa5
// in it, and past its end a page that is not there. Both stand inside a kernel
// or a function.
struct emu_slot {
  u32 id, bytes;
  size_t at;
  explicit emu_slot(size_t bytes);
};
void* emu_shared(const emu_slot& s);
#define SHARED(type, name, count)                                   \
  static const emu_slot RT_PASTE(emu_slot, name)(sizeof(type) * (count)); \
  type(&name)[count] = *static_cast<type(*)[count]>(emu_shared(RT_PASTE(emu_slot, name)))
#define DYNAMIC_SHARED(type, name) type* const name = static_cast<type*>(emu_here.dynamic)

enum emu_warp_op : u32 { EMU_SYNC, EMU_SHFL, EMU_BALLOT, EMU_MATCH };
extern "C" {
void emu_block_sync();
// All lanes of mask come here with the same op; gives v of lane from
// (EMU_SHFL), the lanes with v (EMU_BALLOT), or those with the same v.
u32 emu_warp(emu_warp_op op, u32 mask, u32 v, u32 from);
u32 emu_lane();
void emu_copy16(void* shared, const void* global);
void emu_copy_commit();
void emu_copy_wait(u32 left);
void emu_relax();
}

static inline void block_sync() { emu_block_sync(); }
static inline void warp_sync(u32 mask = ~0u) { emu_warp(EMU_SYNC, mask, 0, 0); }
static inline u32 shfl(u32 mask, u32 v, u32 lane) { return emu_warp(EMU_SHFL, mask, v, lane & 31); }
static inline u32 shfl_up(u32 mask, u32 v, u32 d) {
  u32 l = emu_lane();
  return emu_warp(EMU_SHFL, mask, v, d <= l ? l - d : l);
}
static inline u32 shfl_down(u32 mask, u32 v, u32 d) {
  u32 l = emu_lane();
  return emu_warp(EMU_SHFL, mask, v, l + d < 32 ? l + d : l);
}
static inline u32 shfl_xor(u32 mask, u32 v, u32 d) { return emu_warp(EMU_SHFL, mask, v, (emu_lane() ^ d) & 31); }
static inline u32 ballot(u32 mask, bool p) { return emu_warp(EMU_BALLOT, mask, p, 0); }
static inline u32 match(u32 mask, u32 v) { return emu_warp(EMU_MATCH, mask, v, 0); }
static inline u32 popcount(u32 v) { return u32(__builtin_popcount(v)); }
static inline u32 leading_zeros(u32 v) { return v ? u32(__builtin_clz(v)) : 32; }

static inline u32 atomic_add(u32* p, u32 v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }
static inline u64 atomic_add(u64* p, u64 v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }
static inline u32 atomic_or(u32* p, u32 v) { return __atomic_fetch_or(p, v, __ATOMIC_RELAXED); }
static inline u32 atomic_max(u32* p, u32 v) {
  u32 old = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (old < v && !__atomic_compare_exchange_n(p, &old, v, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
  return old;
}
static inline u32 atomic_min(u32* p, u32 v) {
  u32 old = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (old > v && !__atomic_compare_exchange_n(p, &old, v, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
  return old;
}
static inline void fence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
// trap ends the launch, and the context, with an error: for what cannot be.
static inline void trap() { __builtin_trap(); }
// relax stands in a loop that waits for another thread's write.
static inline void relax() { emu_relax(); }

static inline void copy16(void* shared, const void* global) { emu_copy16(shared, global); }
static inline void copy_commit() { emu_copy_commit(); }
template <int N> static inline void copy_wait() { emu_copy_wait(N); }

// Entry points. A kernel is registered with the sizes of its arguments, and a
// function that calls it with them.
struct emu_export {
  const char* name;
  void (*call)(void* const* params);
  const u32* sizes;
  const unsigned char* pointers;  // 1: to what is only read, 2: to what is written
  u32 count;
  u32 threads;  // most threads of a block
  const emu_export* next;
};
extern "C" void emu_register(emu_export* e);

template <auto F> struct emu_entry;
template <class... A, void (*F)(A...)> struct emu_entry<F> {
  static_assert((std::is_trivially_copyable_v<A> && ...), "kernels take plain values");
  static constexpr u32 count = sizeof...(A);
  static constexpr u32 sizes[count + 1] = {u32(sizeof(A))..., 0};
  template <class T>
  static constexpr unsigned char pointer =
      !std::is_pointer_v<T> ? 0 : std::is_const_v<std::remove_pointer_t<T>> ? 1 : 2;
  static constexpr unsigned char pointers[count + 1] = {pointer<A>..., 0};
  template <size_t... I> static void spread(void* const* p, std::index_sequence<I...>) {
    std::tuple<std::remove_cv_t<A>...> v;
    (memcpy(static_cast<void*>(&std::get<I>(v)), p[I], sizeof(A)), ...);
    (void)p;
    F(std::get<I>(v)...);
  }
  static void call(void* const* p) { spread(p, std::index_sequence_for<A...>{}); }
};

#define KERNEL(name) KERNEL_BOUNDS(name, 1024, 1)
#define KERNEL_BOUNDS(name, threads, blocks)                 \
  static constexpr u32 RT_PASTE(emu_threads, name) = threads; \
  static void ENTRY(name)
#define EXPORT(name)                                                                              \
  static struct RT_PASTE(emu_export, name) : emu_export {                                         \
    RT_PASTE(emu_export, name)()                                                                  \
        : emu_export{RT_STR(ENTRY(name)),           emu_entry<&ENTRY(name)>::call,                \
                     emu_entry<&ENTRY(name)>::sizes, emu_entry<&ENTRY(name)>::pointers,           \
                     emu_entry<&ENTRY(name)>::count, RT_PASTE(emu_threads, name), nullptr} {      \
      emu_register(this);                                                                         \
    }                                                                                             \
  } RT_PASTE(emu_exported, name);

// emu_run runs a kernel on this thread, block by block, and ends the program
// with a report when it cannot. For tests of a kernel alone.
extern "C" void emu_run_alone(void (*call)(void* const*), void* const* params, uint3 grid, uint3 block, u32 shared);
template <class... A> struct emu_alone {
  static thread_local void (*kernel)(A...);
  template <size_t... I> static void spread(void* const* p, std::index_sequence<I...>) {
    (void)p;
    kernel(*static_cast<std::remove_cv_t<A>*>(p[I])...);
  }
  static void call(void* const* p) { spread(p, std::index_sequence_for<A...>{}); }
};
template <class... A> thread_local void (*emu_alone<A...>::kernel)(A...);
template <class... A, class... B>
static inline void emu_run(void (*f)(A...), dim3 grid, dim3 block, u32 shared, B... args) {
  static_assert(sizeof...(A) == sizeof...(B), "a kernel's arguments");
  std::tuple<std::remove_cv_t<A>...> v{static_cast<A>(args)...};
  void* p[sizeof...(A) + 1] = {};
  std::apply([&](auto&... x) { size_t i = 0; ((p[i++] = &x), ...); }, v);
  emu_alone<A...>::kernel = f;
  emu_run_alone(emu_alone<A...>::call, p, {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared);
}
