#include "fiber.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EMU_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define EMU_ASAN 1
#endif
#ifdef EMU_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if defined(__APPLE__)
#define SYM(x) "_" #x
#else
#define SYM(x) #x
#endif

extern "C" void emu_swap(void** save, void* load);

// What a function call must keep, and nothing else.
#if defined(__x86_64__) && !defined(EMU_UCONTEXT)
asm(".text\n.globl " SYM(emu_swap) "\n.p2align 4\n" SYM(emu_swap) ":\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    "movq %rsp, (%rdi)\nmovq %rsi, %rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n");
static void* first_frame(char* top, void (*entry)()) {
  auto p = reinterpret_cast<void**>(top) - 2;  // 16-byte aligned as at a call, after entry's address is taken
  p[0] = reinterpret_cast<void*>(entry);
  p[1] = nullptr;
  p -= 6;
  memset(p, 0, 6 * sizeof(void*));
  return p;
}
#elif defined(__aarch64__) && !defined(EMU_UCONTEXT)
asm(".text\n.globl " SYM(emu_swap) "\n.p2align 4\n" SYM(emu_swap) ":\n"
    "sub sp, sp, #160\n"
    "stp x19, x20, [sp, #0]\nstp x21, x22, [sp, #16]\nstp x23, x24, [sp, #32]\n"
    "stp x25, x26, [sp, #48]\nstp x27, x28, [sp, #64]\nstp x29, x30, [sp, #80]\n"
    "stp d8, d9, [sp, #96]\nstp d10, d11, [sp, #112]\nstp d12, d13, [sp, #128]\nstp d14, d15, [sp, #144]\n"
    "mov x9, sp\nstr x9, [x0]\nmov sp, x1\n"
    "ldp x19, x20, [sp, #0]\nldp x21, x22, [sp, #16]\nldp x23, x24, [sp, #32]\n"
    "ldp x25, x26, [sp, #48]\nldp x27, x28, [sp, #64]\nldp x29, x30, [sp, #80]\n"
    "ldp d8, d9, [sp, #96]\nldp d10, d11, [sp, #112]\nldp d12, d13, [sp, #128]\nldp d14, d15, [sp, #144]\n"
    "add sp, sp, #160\nret\n");
static void* first_frame(char* top, void (*entry)()) {
  auto p = reinterpret_cast<void**>(top) - 20;
  memset(p, 0, 20 * sizeof(void*));
  p[11] = reinterpret_cast<void*>(entry);
  return p;
}
#else
#include <ucontext.h>
extern "C" void emu_swap(void** save, void* load) {
  ucontext_t here;
  *save = &here;
  swapcontext(&here, static_cast<ucontext_t*>(load));
}
static void* first_frame(char* top, void (*entry)()) {
  auto c = reinterpret_cast<ucontext_t*>(top - (sizeof(ucontext_t) + 63) / 64 * 64);
  getcontext(c);
  c->uc_stack.ss_size = 64 << 10;  // its end is what counts
  c->uc_stack.ss_sp = reinterpret_cast<char*>(c) - c->uc_stack.ss_size;
  c->uc_link = nullptr;
  makecontext(c, entry, 0);
  return c;
}
#endif

namespace emu {

static size_t page() {
  static const size_t n = size_t(sysconf(_SC_PAGESIZE));
  return n;
}

Fiber* make_fiber(size_t stack, void (*entry)()) {
  size_t size = (stack + page() - 1) / page() * page() + page();
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
#ifdef MAP_NORESERVE
  flags |= MAP_NORESERVE;
#endif
  void* m = mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (m == MAP_FAILED) return nullptr;
  if (mprotect(m, page(), PROT_NONE) != 0) {
    munmap(m, size);
    return nullptr;
  }
  auto f = new Fiber;
  f->stack = static_cast<char*>(m);
  f->size = size;
  rewind_fiber(f, entry);
  return f;
}

void free_fiber(Fiber* f) {
  munmap(f->stack, f->size);
  delete f;
}

void rewind_fiber(Fiber* f, void (*entry)()) {
#ifdef EMU_ASAN
  __asan_unpoison_memory_region(f->stack + page(), f->size - page());
#endif
  f->sp = first_frame(f->stack + f->size, entry);
  f->fake = nullptr;
}

bool overflowed(const Fiber* f, const void* at) {
  auto p = static_cast<const char*>(at);
  return f->stack && p >= f->stack && p < f->stack + page();
}

#ifdef EMU_ASAN
void adopt(Fiber* t) {
  pthread_attr_t a;
  if (pthread_getattr_np(pthread_self(), &a) != 0) return;
  void* base = nullptr;
  pthread_attr_getstack(&a, &base, &t->size);
  t->stack = static_cast<char*>(base);
  pthread_attr_destroy(&a);
}
static __thread Fiber* under_way;
void change(Fiber* from, Fiber* to) {
  under_way = to;
  __sanitizer_start_switch_fiber(&from->fake, to->stack, to->size);
  emu_swap(&from->sp, to->sp);
  __sanitizer_finish_switch_fiber(under_way->fake, nullptr, nullptr);
}
void arrived() { __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr); }
#else
void adopt(Fiber*) {}
void change(Fiber* from, Fiber* to) { emu_swap(&from->sp, to->sp); }
void arrived() {}
#endif

}  // namespace emu
