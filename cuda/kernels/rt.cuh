// What kernels may use of their processor. The same sources are compiled twice:
// by clang for the GPU, with no CUDA SDK (rt_cuda.cuh), and by any C++17
// compiler for the emulator (rt_emu.h), which runs them on the CPU.
//
// A kernel file holds one family, includes this header first, and puts all that
// it defines in namespace CURVE_NS, so that the families of both curves can live
// in one library. -DCURVE=381 is BLS12-381, -DCURVE=254 is BN254.
//
//   KERNEL(name)(const u32* in, u32* out, u32 n) { ... }   // no return, by value or pointer
//   EXPORT(name)                                           // once, after it
//
// The entry point's name is name_bls12381 or name_bn254. Arguments are pointers,
// u32, u64, or structs of u32 or u64. Launch bounds: BOUNDS(threads, blocks an
// SM) between KERNEL and the name is KERNEL_BOUNDS(name, threads, blocks).
#pragma once
#include <stddef.h>
#include <stdint.h>
typedef uint32_t u32;
typedef uint64_t u64;

#if CURVE == 381
#define CURVE_NS bls12381
#elif CURVE == 254
#define CURVE_NS bn254
#else
#error "define CURVE as 381 or 254"
#endif
#define RT_PASTE2(a, b) a##_##b
#define RT_PASTE(a, b) RT_PASTE2(a, b)
#define RT_STR2(a) #a
#define RT_STR(a) RT_STR2(a)
#define ENTRY(name) RT_PASTE(name, CURVE_NS)

#define UNROLL _Pragma("unroll")
#define ROLLED _Pragma("unroll 1")

#ifdef SNARKLINE_EMULATOR
#include "rt_emu.h"
#else
#include "rt_cuda.cuh"
#endif

// FN is a function that is always inlined; CALLED one that never is.
#define FN static __device__ inline __attribute__((always_inline))
#define CALLED static __device__ __attribute__((noinline))
