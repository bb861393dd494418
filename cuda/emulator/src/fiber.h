// Fibers: stacks of their own on one OS thread, changed by hand.
#pragma once
#include <stddef.h>

namespace emu {

struct Fiber {
  void* sp = nullptr;  // where it stopped
  char* stack = nullptr;
  size_t size = 0;
  void* fake = nullptr;  // the address sanitizer's
};

// make_fiber takes a stack with a page below it that no access survives; entry
// never returns. null when there is no memory.
Fiber* make_fiber(size_t stack, void (*entry)());
void free_fiber(Fiber* f);
// rewind_fiber makes it start anew at its entry; what was on its stack is gone.
void rewind_fiber(Fiber* f, void (*entry)());
// change stops from and goes on with to. from's own stack bounds are known for
// a fiber that was made; those of an OS thread are found by adopt.
void change(Fiber* from, Fiber* to);
void adopt(Fiber* thread);
// arrived is the first thing that a fiber's entry calls.
void arrived();
// overflowed says whether at is in the page below the stack.
bool overflowed(const Fiber* f, const void* at);

}  // namespace emu
