// What the generated headers of the scalar fields need: how a routine is
// called, and their instructions in C++ with an explicit carry cc, a predicate p
// and 64 bits of scratch w_.
#pragma once
#include "rt.cuh"

#ifdef SNARKLINE_EMULATOR
#define FR_FN CALLED  // not inlined: that only costs the compiler time
#define FR_PUT(d) d = u32(w_);
#define FR_PUT_CC(d) d = u32(w_), cc = u32(w_ >> 32) & 1;
#define FR_PROD(a, b) (u64(u32(a)) * u32(b))

#define FR_MOV(d, a) d = a;
#define FR_ADD(d, a, b) w_ = u64(a) + b; FR_PUT(d)
#define FR_ADD_CC(d, a, b) w_ = u64(a) + b; FR_PUT_CC(d)
#define FR_ADDC(d, a, b) w_ = u64(a) + b + cc; FR_PUT(d)
#define FR_ADDC_CC(d, a, b) w_ = u64(a) + b + cc; FR_PUT_CC(d)
#define FR_SUB(d, a, b) w_ = u64(a) - b; FR_PUT(d)
#define FR_SUB_CC(d, a, b) w_ = u64(a) - b; FR_PUT_CC(d)
#define FR_SUBC(d, a, b) w_ = u64(a) - b - cc; FR_PUT(d)
#define FR_SUBC_CC(d, a, b) w_ = u64(a) - b - cc; FR_PUT_CC(d)
#define FR_WIDE(d, d2, a, b) w_ = FR_PROD(a, b); d = u32(w_), d2 = u32(w_ >> 32);
#define FR_MUL_LO(d, a, b) d = u32(a) * u32(b);
#define FR_MAD_LO(d, a, b, c) d = u32(a) * u32(b) + c;
#define FR_MAD_LO_CC(d, a, b, c) w_ = u64(u32(FR_PROD(a, b))) + c; FR_PUT_CC(d)
#define FR_MADC_LO_CC(d, a, b, c) w_ = u64(u32(FR_PROD(a, b))) + c + cc; FR_PUT_CC(d)
#define FR_MADC_HI(d, a, b, c) w_ = (FR_PROD(a, b) >> 32) + c + cc; FR_PUT(d)
#define FR_MADC_HI_CC(d, a, b, c) w_ = (FR_PROD(a, b) >> 32) + c + cc; FR_PUT_CC(d)
#define FR_SHL(d, a, b, c) d = u32(((u64(b) << 32 | u32(a)) << c) >> 32);
#define FR_SEL(d, a, b) d = p ? a : b;
#define FR_SETP_NE(a, b) p = a != b;
#define FR_SETP_GT(a, b) p = a > b;
#define FR_SETP_GT_OR(a, b) p = a > b || p;
#define FR_IF(s) if (p) { s }
#else
#define FR_FN FN
#endif
