// Grids: blocks spread over a few OS threads, one of them the stream's own.
#include <string.h>

#include <algorithm>

#include "state.h"
#include "thread.h"

namespace emu {
namespace {

struct Run {
  Grid g;
  u64 total;
  std::atomic<u64> next{0};
  std::atomic<int> trouble{Fine};
  int helpers = 0;  // under the crew's lock

  void go() {
    for (;;) {
      u64 b = next.fetch_add(1, std::memory_order_relaxed);
      if (b >= total || trouble != Fine) break;
      uint3 at = {u32(b % g.grid.x), u32(b / g.grid.x % g.grid.y), u32(b / g.grid.x / g.grid.y)};
      Trouble t = run_block(g, at);
      if (t != Fine) trouble = t;
    }
    spare_fibers();
  }
};

struct Crew {
  std::mutex m;
  std::condition_variable changed;
  std::vector<Run*> runs;
  std::vector<std::thread> threads;
  int wanted = 1;  // with the stream's own
  bool closing = false;

  void help() {
    Lock l(m);
    for (;;) {
      Run* r = nullptr;
      changed.wait(l, [&] {
        for (Run* c : runs)
          if (c->next < c->total) {
            r = c;
            break;
          }
        return r || closing;
      });
      if (!r) return;
      r->helpers++;
      l.unlock();
      r->go();
      l.lock();
      r->helpers--;
      changed.notify_all();
    }
  }
};

Crew& crew() {
  static Crew* c = new Crew;
  return *c;
}

}  // namespace

void set_pool(int threads) {
  Crew& c = crew();
  Lock l(c.m);
  c.wanted = threads;
  c.closing = false;
}

void stop_pool() {
  Crew& c = crew();
  {
    Lock l(c.m);
    c.closing = true;
    c.changed.notify_all();
  }
  for (auto& t : c.threads) t.join();
  c.threads.clear();
}

Trouble run_grid(const Launch& l) {
  Run r;
  r.g = {l.kernel->call, l.params.data(), l.kernel->name, l.grid, l.block, l.shared};
  r.total = u64(l.grid.x) * l.grid.y * l.grid.z;
  Crew& c = crew();
  bool alone = r.total == 1;
  if (!alone) {
    Lock k(c.m);
    while (int(c.threads.size()) + 1 < c.wanted) c.threads.push_back(spawn([&c] { c.help(); }));
    c.runs.push_back(&r);
    c.changed.notify_all();
  }
  r.go();
  if (!alone) {
    Lock k(c.m);
    c.runs.erase(std::find(c.runs.begin(), c.runs.end(), &r));
    c.changed.wait(k, [&] { return r.helpers == 0; });
  }
  return Trouble(r.trouble.load());
}

}  // namespace emu
