#include "block.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <random>
#include <vector>

#include "fiber.h"

__thread emu_place emu_here;

namespace emu {
namespace {

constexpr u32 MaxThreads = 1024;
constexpr size_t StackBytes = 256 << 10;
constexpr size_t SharedBytes = 256 << 10;

struct Copy {
  void* to;
  const void* from;
  u32 group;
};

struct Lane {
  Fiber* fiber = nullptr;  // that it waits on
  bool alive = false, at_block = false, at_warp = false;
  emu_warp_op op = EMU_SYNC;
  u32 mask = 0, value = 0, from = 0, result = 0;
  u32 groups = 0;  // of copies, so far
  std::vector<Copy> copies;
};

// Runner is what an OS thread has to run blocks with.
struct Runner {
  Fiber home;
  Fiber* now = nullptr;  // the fiber that runs; null: home
  std::vector<Fiber*> all, idle;
  const Grid* grid = nullptr;
  u32 threads = 0, next = 0, alive = 0, waiting = 0;
  u32 lane = 0;  // that runs
  std::vector<Lane> lanes{MaxThreads};
  u32 warp_alive[MaxThreads / 32] = {};
  u32 ready[MaxThreads], head = 0, tail = 0;  // a ring of lanes
  u32 order_of[MaxThreads], order_threads = 0, order_kind = 0;
  char* shared = nullptr;  // of launches
  char* slots = nullptr;   // of SHARED, each with a page behind it
  std::vector<u64> slot_block;  // by slot: the block that had it last; 0: none yet
  u64 block = 0;                // counts
  void (*job)(void*) = nullptr;  // guarded
  void* job_arg = nullptr;
  Trouble trouble = Fine;
  void* where = nullptr;
};

__thread Runner* runner EMU_TLS;
u32 order_now = 0;

constexpr size_t SlotBytes = size_t(64) << 20;
size_t page_bytes() {
  static const size_t n = size_t(sysconf(_SC_PAGESIZE));
  return n;
}

// A system lets a process have so many mappings only, and a fiber is two. So
// beyond KeptFibers a thread keeps none between grids: they are everybody's.
constexpr size_t KeptFibers = 4096;
std::atomic<size_t> fibers{0};  // that there are
std::mutex spare_m;
std::vector<Fiber*>& spare() {
  static auto* v = new std::vector<Fiber*>;
  return *v;
}

// Of a thread that ends, its fibers end too. A key and not a thread_local: the
// library has little room for those.
void end_runner(void* p) {
  auto r = static_cast<Runner*>(p);
  runner = nullptr;
  for (Fiber* f : r->all) free_fiber(f);
  fibers -= r->all.size();
  if (r->shared) munmap(r->shared, SharedBytes + page_bytes());
  if (r->slots) munmap(r->slots, SlotBytes);
  delete r;
}

Runner& mine() {
  if (runner) return *runner;
  static const pthread_key_t key = [] {
    pthread_key_t k;
    if (pthread_key_create(&k, end_runner) != 0) abort();
    return k;
  }();
  runner = new Runner;
  pthread_setspecific(key, runner);
  adopt(&runner->home);
  return *runner;
}

void fiber_main();

Fiber* take_fiber(Runner& r) {
  if (!r.idle.empty()) {
    Fiber* f = r.idle.back();
    r.idle.pop_back();
    return f;
  }
  Fiber* f = nullptr;
  if (fibers > KeptFibers) {
    std::lock_guard<std::mutex> l(spare_m);
    if (!spare().empty()) {
      f = spare().back();
      spare().pop_back();
      r.all.push_back(f);
      return f;
    }
  }
  f = make_fiber(StackBytes, fiber_main);
  fibers++;
  if (!f) {
    fprintf(stderr, "emulator: no memory for the stack of a block's thread\n");
    abort();
  }
  r.all.push_back(f);
  return f;
}

// go_on leaves the running fiber for whatever can run: a ready lane, a thread
// that has not begun, or else home.
void go_on(Runner& r) {
  Fiber* from = r.now ? r.now : &r.home;
  Fiber* to;
  if (r.head != r.tail) {
    r.lane = r.ready[r.head++ % MaxThreads];
    to = r.lanes[r.lane].fiber;
  } else if (r.next < r.threads) {
    to = take_fiber(r);
  } else {
    if (!r.now) return;
    r.now = nullptr;
    change(from, &r.home);
    return;
  }
  if (to == from) return;
  r.now = to;
  change(from, to);
}

void wake(Runner& r, u32 lane) { r.ready[r.tail++ % MaxThreads] = lane; }

// wait stops the running lane until somebody wakes it.
void wait(Runner& r) {
  u32 lane = r.lane;
  uint3 thread = emu_here.thread;
  r.lanes[lane].fiber = r.now;
  go_on(r);
  r.lane = lane;
  emu_here.thread = thread;
}

void open_block(Runner& r) {
  for (u32 i = 0; i < r.threads; i++) {
    Lane& l = r.lanes[i];
    if (l.at_block) {
      l.at_block = false;
      wake(r, i);
    }
  }
  r.waiting = 0;
}

// meet ends the warp operation that lane waits in, if all have come. It tells.
bool meet(Runner& r, u32 lane) {
  u32 base = lane & ~31u;
  const Lane& first = r.lanes[lane];
  u32 need = first.mask & r.warp_alive[base / 32];
  for (u32 m = need; m; m &= m - 1) {
    const Lane& l = r.lanes[base + u32(__builtin_ctz(m))];
    if (!l.at_warp || l.mask != first.mask || l.op != first.op) return false;
  }
  u32 votes = 0;
  if (first.op == EMU_BALLOT)
    for (u32 m = need; m; m &= m - 1) {
      u32 i = u32(__builtin_ctz(m));
      votes |= u32(r.lanes[base + i].value != 0) << i;
    }
  for (u32 m = need; m; m &= m - 1) {
    u32 i = u32(__builtin_ctz(m));
    Lane& l = r.lanes[base + i];
    switch (l.op) {
      case EMU_SYNC: l.result = 0; break;
      case EMU_SHFL: l.result = need >> l.from & 1 ? r.lanes[base + l.from].value : 0xdeadbeef; break;
      case EMU_BALLOT: l.result = votes; break;
      case EMU_MATCH:
        l.result = 0;
        for (u32 k = need; k; k &= k - 1) {
          u32 j = u32(__builtin_ctz(k));
          l.result |= u32(r.lanes[base + j].value == l.value) << j;
        }
    }
  }
  for (u32 m = need; m; m &= m - 1) {
    u32 i = base + u32(__builtin_ctz(m));
    r.lanes[i].at_warp = false;
    if (i != r.lane) wake(r, i);
  }
  return true;
}

void do_copies(Lane& l, u32 below) {
  size_t kept = 0;
  for (const Copy& c : l.copies) {
    if (c.group < below)
      memcpy(c.to, c.from, 16);
    else
      l.copies[kept++] = c;
  }
  l.copies.resize(kept);
}

// leave is a thread's end: who waits for all threads, waits for it no more.
void leave(Runner& r) {
  u32 lane = r.lane;
  Lane& l = r.lanes[lane];
  if (!l.copies.empty()) do_copies(l, ~0u);
  l.alive = false;
  r.alive--;
  r.warp_alive[lane / 32] &= ~(1u << (lane % 32));
  if (r.waiting && r.waiting == r.alive) open_block(r);
  u32 base = lane & ~31u;
  for (u32 m = r.warp_alive[lane / 32]; m; m &= m - 1) {
    u32 i = base + u32(__builtin_ctz(m));
    if (r.lanes[i].at_warp) meet(r, i);
  }
}

void run_thread(Runner& r, u32 at) {
  u32 lane = r.order_of[at];
  const uint3& b = r.grid->block;
  r.lane = lane;
  emu_here.thread = {lane % b.x, lane / b.x % b.y, lane / (b.x * b.y)};
  r.grid->call(r.grid->params);
  leave(r);
}

void fiber_main() {
  arrived();
  for (;;) {
    Runner& r = *runner;
    if (r.job) {
      r.next = r.threads;
      r.job(r.job_arg);
      r.job = nullptr;
    } else {
      while (r.next < r.threads) run_thread(r, r.next++);
    }
    r.idle.push_back(r.now);
    go_on(r);
  }
}

void set_threads(Runner& r, u32 n) {
  if (r.order_threads == n && r.order_kind == order_now) return;
  r.order_threads = n;
  r.order_kind = order_now;
  std::iota(r.order_of, r.order_of + n, 0u);
  if (order_now == 1) std::reverse(r.order_of, r.order_of + n);
  if (order_now > 1) {
    std::minstd_rand g(order_now);
    std::shuffle(r.order_of, r.order_of + n, g);
  }
}

void* dynamic(Runner& r, u32 bytes) {
  if (bytes == 0) return nullptr;
  if (!r.shared) {
    void* m = mmap(nullptr, SharedBytes + page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED) abort();
    r.shared = static_cast<char*>(m);
    mprotect(r.shared + SharedBytes, page_bytes(), PROT_NONE);
  }
  char* p = r.shared + SharedBytes - (bytes + 127) / 128 * 128;  // an access past its end is seen
  memset(p, 0xa5, bytes);
  return p;
}

const char* op_name(const Lane& l) {
  if (l.at_block) return "block_sync";
  if (!l.at_warp) return "a wait";
  static const char* const names[] = {"warp_sync", "a shuffle", "ballot", "match"};
  return names[l.op];
}

void tell_place(const Runner& r, FILE* f) {
  fprintf(f, "emulator: kernel %s, block (%u, %u, %u) of (%u, %u, %u): ", r.grid->name, emu_here.block.x,
          emu_here.block.y, emu_here.block.z, r.grid->grid.x, r.grid->grid.y, r.grid->grid.z);
}

bool alike(const Lane& a, const Lane& b) {
  return b.alive && a.at_block == b.at_block && a.at_warp == b.at_warp &&
         (!a.at_warp || (a.op == b.op && a.mask == b.mask));
}

void tell_deadlock(const Runner& r) {
  tell_place(r, stderr);
  fprintf(stderr, "its threads wait for ever, %u of %u have ended:\n", r.threads - r.alive, r.threads);
  u32 told = 0;
  for (u32 i = 0; i < r.threads && told < 8; i++) {
    const Lane& l = r.lanes[i];
    if (!l.alive) continue;
    u32 same = i;  // a run of threads in the same state
    while (same + 1 < r.threads && alike(l, r.lanes[same + 1])) same++;
    fprintf(stderr, "  threads %u to %u in %s", i, same, op_name(l));
    if (l.at_warp) fprintf(stderr, " of mask %08x (alive in the first one's warp: %08x)", l.mask, r.warp_alive[i / 32]);
    fprintf(stderr, "\n");
    i = same;
    told++;
  }
}

// stop leaves the running fiber where it is, and home finds the trouble.
void stop(Runner& r, Trouble t, void* where) {
  Fiber* from = r.now;
  r.trouble = t;
  r.where = where;
  r.now = nullptr;
  change(from, &r.home);
}

// scrap makes every fiber new after a block that did not end.
void scrap(Runner& r) {
  r.idle.clear();
  for (Fiber* f : r.all) {
    rewind_fiber(f, fiber_main);
    r.idle.push_back(f);
  }
  r.now = nullptr;
  r.job = nullptr;
  for (u32 i = 0; i < r.threads; i++) r.lanes[i].copies.clear();
}

}  // namespace

void spare_fibers() {
  if (!runner || fibers <= KeptFibers) return;
  Runner& r = *runner;
  // They begin anew: what they remember of the thread that they ran on is wrong
  // on another one.
  for (Fiber* f : r.all) rewind_fiber(f, fiber_main);
  std::lock_guard<std::mutex> l(spare_m);
  spare().insert(spare().end(), r.all.begin(), r.all.end());
  r.all.clear();
  r.idle.clear();
}

static emu_export* first_export = nullptr;
const emu_export* exports() { return first_export; }

void set_order(u32 order) { order_now = order; }

Trouble run_block(const Grid& g, uint3 index) {
  Runner& r = mine();
  u32 n = g.block.x * g.block.y * g.block.z;
  set_threads(r, n);
  emu_here.block = index;
  emu_here.block_dim = g.block;
  emu_here.grid_dim = g.grid;
  emu_here.dynamic = dynamic(r, g.shared);
  r.grid = &g;
  r.block++;
  r.threads = r.alive = n;
  r.next = r.waiting = r.head = r.tail = 0;
  r.trouble = Fine;
  for (u32 i = 0; i < n; i++) {
    Lane& l = r.lanes[i];
    l.alive = true;
    l.at_block = l.at_warp = false;
    l.groups = 0;
  }
  for (u32 i = 0; i < (n + 31) / 32; i++) r.warp_alive[i] = n - 32 * i >= 32 ? ~0u : (1u << (n - 32 * i)) - 1;
  go_on(r);
  if (r.trouble == Fine && r.alive) {
    r.trouble = Deadlock;
    tell_deadlock(r);
  } else if (r.trouble != Fine) {
    tell_place(r, stderr);
    u32 t = r.lane;
    if (r.trouble == BadAddress) fprintf(stderr, "thread %u touches %p, where no memory is\n", t, r.where);
    if (r.trouble == StackOverflow) fprintf(stderr, "thread %u needs more stack than there is\n", t);
    if (r.trouble == DividedByZero) fprintf(stderr, "thread %u divides by zero\n", t);
    if (r.trouble == Trapped) {
      Dl_info in = {};
      dladdr(r.where, &in);
      size_t off = in.dli_fbase ? size_t(static_cast<char*>(r.where) - static_cast<char*>(in.dli_fbase)) : 0;
      fprintf(stderr, "thread %u traps at %s+0x%zx: what it does there is not defined\n", t,
              in.dli_fname ? in.dli_fname : "?", off);
    }
    if (r.trouble == BadMask) fprintf(stderr, "thread %u is not in the mask of its own warp operation\n", t);
  }
  if (r.trouble != Fine) scrap(r);
  return r.trouble;
}

Trouble guarded(void (*f)(void*), void* arg) {
  Runner& r = mine();
  r.job = f;
  r.job_arg = arg;
  r.threads = 1;
  r.next = r.head = r.tail = 0;
  r.trouble = Fine;
  go_on(r);
  if (r.trouble != Fine) scrap(r);
  r.threads = 0;
  return r.trouble;
}

bool guards_now() { return runner && runner->now; }

void caught(void* addr, int signal) {
  Runner& r = *runner;
  Trouble t = overflowed(r.now, addr) ? StackOverflow : BadAddress;
  if (signal == SIGFPE) t = DividedByZero;
  if (signal == SIGILL || signal == SIGTRAP) t = Trapped;
  stop(r, t, addr);
}

}  // namespace emu

using namespace emu;

// A slot is placed when it is first met, and a page is kept free behind it.
emu_slot::emu_slot(size_t bytes) : bytes(u32(bytes)) {
  static std::atomic<u32> ids{0};
  static std::atomic<size_t> end{0};
  size_t page = page_bytes(), all = (bytes + page - 1) / page * page + page;
  id = ids++;
  at = end.fetch_add(all);
  if (at + all > SlotBytes) {
    fprintf(stderr, "emulator: the kernels have too much shared memory\n");
    abort();
  }
}

void* emu_shared(const emu_slot& s) {
  Runner& r = *runner;
  size_t page = page_bytes(), pages = (s.bytes + page - 1) / page * page;
  if (r.slot_block.size() <= s.id) r.slot_block.resize(s.id + 1);
  if (!r.slots) {
    void* m = mmap(nullptr, SlotBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED) abort();
    r.slots = static_cast<char*>(m);
  }
  char* first = r.slots + s.at;
  char* p = first + pages - (s.bytes + 15) / 16 * 16;
  if (r.slot_block[s.id] == r.block) return p;
  if (r.slot_block[s.id] == 0) mprotect(first, pages, PROT_READ | PROT_WRITE);
  r.slot_block[s.id] = r.block;
  memset(p, 0xa5, s.bytes);
  return p;
}

extern "C" void emu_register(emu_export* e) {
  e->next = first_export;
  first_export = e;
}

extern "C" void emu_block_sync() {
  Runner& r = *runner;
  if (++r.waiting == r.alive) {
    open_block(r);
    return;
  }
  r.lanes[r.lane].at_block = true;
  wait(r);
}

extern "C" u32 emu_lane() { return runner->lane & 31; }

extern "C" u32 emu_warp(emu_warp_op op, u32 mask, u32 v, u32 from) {
  Runner& r = *runner;
  u32 lane = r.lane;
  Lane& l = r.lanes[lane];
  if (!(mask >> (lane & 31) & 1)) stop(r, BadMask, nullptr);
  l.op = op;
  l.mask = mask;
  l.value = v;
  l.from = from;
  l.at_warp = true;
  if (!meet(r, lane)) wait(r);
  return l.result;
}

extern "C" void emu_relax() {
  Runner& r = *runner;
  u32 lane = r.lane;
  sched_yield();  // for another block
  if (r.head == r.tail && r.next == r.threads) return;
  wake(r, lane);
  wait(r);
}

extern "C" void emu_copy16(void* shared, const void* global) {
  Lane& l = runner->lanes[runner->lane];
  l.copies.push_back({shared, global, l.groups});
}

extern "C" void emu_copy_commit() { runner->lanes[runner->lane].groups++; }

extern "C" void emu_copy_wait(u32 left) {
  Lane& l = runner->lanes[runner->lane];
  if (l.groups > left && !l.copies.empty()) do_copies(l, l.groups - left);
}

extern "C" void emu_run_alone(void (*call)(void* const*), void* const* params, uint3 grid, uint3 block, u32 shared) {
  if (const char* o = getenv("EMU_ORDER")) set_order(u32(atoi(o)));
  Grid g{call, params, "(alone)", grid, block, shared};
  for (u32 z = 0; z < grid.z; z++)
    for (u32 y = 0; y < grid.y; y++)
      for (u32 x = 0; x < grid.x; x++)
        if (run_block(g, {x, y, z}) != Fine) exit(1);
}
