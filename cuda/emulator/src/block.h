// Runs the blocks of a grid on the calling OS thread.
#pragma once
#define SNARKLINE_EMULATOR 1
#ifndef CURVE
#define CURVE 381  // what follows is the same for every curve
#endif
#include "../../kernels/rt.cuh"

namespace emu {

// The kernels compiled in.
const emu_export* exports();

struct Grid {
  void (*call)(void* const* params);
  void* const* params;
  const char* name;
  uint3 grid, block;
  u32 shared;  // bytes of dynamic shared memory
};

// What ended a block before its end.
enum Trouble { Fine, BadAddress, StackOverflow, Deadlock, BadMask, DividedByZero, Trapped };

// order is how a block's threads start: 0 from the first, 1 from the last, more
// in an order drawn with it.
void set_order(u32 order);
// run_block runs one block of g to its end. On trouble it has told standard
// error what and where, and the thread can run other blocks.
Trouble run_block(const Grid& g, uint3 index);
// spare_fibers gives the calling thread's fibers to whoever needs some, where there are many.
void spare_fibers();
// guarded runs f(arg) so that an access to memory that is not there is an answer.
Trouble guarded(void (*f)(void*), void* arg);
// Whether this thread runs a block or something guarded: then its faults are
// for caught, which is told the signal and does not return.
bool guards_now();
void caught(void* addr, int signal);

}  // namespace emu
