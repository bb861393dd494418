// Memory: the two pools of a card, pinned host memory, copies and fills.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "api.h"

namespace emu {

Block* block_at(Context& c, uint64_t p, uint64_t n) {
  auto& all = world().blocks;
  auto it = all.upper_bound(p);
  if (it == all.begin()) return nullptr;
  --it;
  Block& b = it->second;
  if (b.context != &c || b.freed || p - it->first > b.size || n > b.size - (p - it->first)) return nullptr;
  return &b;
}

Pinned* pinned_at(const void* p, uint64_t n) {
  auto& all = world().pinned;
  auto it = all.upper_bound(id(p));
  if (it == all.begin()) return nullptr;
  --it;
  uint64_t off = id(p) - it->first;
  return off <= it->second.size && n <= it->second.size - off ? &it->second : nullptr;
}

static uint64_t round_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }
static uint64_t page() {
  static const uint64_t n = uint64_t(sysconf(_SC_PAGESIZE));
  return n;
}

static Card& card_of(const Context& c) { return *world().cards[size_t(c.card)]; }

static Result make_block(Context& c, uint64_t n, uint64_t counted, bool pooled, uint64_t* out) {
  Block b;
  b.map = map_pages(n, world().config.poison);
  if (!b.map.at) return ERROR_OUT_OF_MEMORY;
  b.size = n;
  b.counted = counted;
  b.card = c.card;
  b.context = &c;
  b.pooled = pooled;
  *out = b.map.at;
  world().blocks[b.map.at] = b;
  return SUCCESS;
}

// end_block gives back a block whose last user has gone.
static void end_block(uint64_t at) {
  World& w = world();
  auto it = w.blocks.find(at);
  if (it == w.blocks.end()) return;
  Block& b = it->second;
  Card& card = *w.cards[size_t(b.card)];
  unmap_pages(b.map);
  if (b.pooled)
    card.pool->used -= b.counted;  // and stays in the pool
  else
    give(card, b.card, b.counted, &card.classic);
  w.blocks.erase(it);
}

}  // namespace emu

using namespace emu;

EMU_API Result cuMemGetInfo_v2(size_t* free, size_t* total) {
  return call("cuMemGetInfo", Current, [&](auto& c, Lock&) -> Result {
    if (!free || !total) return ERROR_INVALID_VALUE;
    Card& card = card_of(*c);
    *total = card.config.total;
    *free = card.config.total - used_of(card);
    return SUCCESS;
  });
}

EMU_API Result cuMemAlloc_v2(uint64_t* p, size_t n) {
  return call("cuMemAlloc", Current, [&](auto& c, Lock&) -> Result {
    if (!p || n == 0) return ERROR_INVALID_VALUE;
    Card& card = card_of(*c);
    uint64_t counted = round_up(n, world().config.granule);
    if (counted < n) return ERROR_OUT_OF_MEMORY;
    if (Result r = take(card, c->card, counted, &card.classic)) return r;
    Result r = make_block(*c, n, counted, false, p);
    if (r) give(card, c->card, counted, &card.classic);
    return r;
  });
}

EMU_API Result cuMemFree_v2(uint64_t p) {
  return call("cuMemFree", Current | Ends, [&](auto& c, Lock& l) -> Result {
    if (p == 0) return SUCCESS;
    Block* b = block_at(*c, p, 0);
    if (!b || b->map.at != p) return ERROR_INVALID_VALUE;
    b->freed = true;
    if (b->pooled) card_of(*c).pool->promised -= b->counted;
    wait_context(c, l);
    if (c->destroyed) return ERROR_CONTEXT_IS_DESTROYED;
    end_block(p);
    return c->poison;
  });
}

EMU_API Result cuMemAllocAsync(uint64_t* p, size_t n, void* stream) {
  return call("cuMemAllocAsync", Current, [&](auto& c, Lock&) -> Result {
    if (!p || n == 0) return ERROR_INVALID_VALUE;
    if (!stream_of(c, stream)) return ERROR_INVALID_HANDLE;
    Card& card = card_of(*c);
    Pool& pool = *card.pool;
    uint64_t counted = round_up(n, world().config.granule), grown = 0;
    if (counted < n) return ERROR_OUT_OF_MEMORY;
    // Memory whose free is queued may serve again: the driver orders the two.
    if (pool.promised + counted > pool.reserved) {
      grown = pool.promised + counted - pool.reserved;
      if (Result r = take(card, c->card, grown, &pool.reserved)) return r;
    }
    if (Result r = make_block(*c, n, counted, true, p)) {
      give(card, c->card, grown, &pool.reserved);
      return r;
    }
    pool.promised += counted;
    pool.used += counted;
    pool.used_high = std::max(pool.used_high, pool.promised);
    pool.reserved_high = std::max(pool.reserved_high, pool.reserved);
    return SUCCESS;
  });
}

EMU_API Result cuMemFreeAsync(uint64_t p, void* stream) {
  return call("cuMemFreeAsync", Current | Ends, [&](auto& c, Lock&) -> Result {
    if (p == 0) return SUCCESS;
    auto s = stream_of(c, stream);
    if (!s) return ERROR_INVALID_HANDLE;
    Block* b = block_at(*c, p, 0);
    if (!b || b->map.at != p || !b->pooled) return ERROR_INVALID_VALUE;
    b->freed = true;
    card_of(*c).pool->promised -= b->counted;
    queue(s, [p](bool) {
      Lock l(world().m);
      end_block(p);
    });
    return SUCCESS;
  });
}

EMU_API Result cuDeviceGetDefaultMemPool(void** pool, int device) {
  return call("cuDeviceGetDefaultMemPool", Ready, [&](auto&, Lock&) -> Result {
    World& w = world();
    if (device < 0 || size_t(device) >= w.cards.size()) return ERROR_INVALID_DEVICE;
    if (!pool) return ERROR_INVALID_VALUE;
    *pool = as_handle<void>(w.cards[size_t(device)]->pool->handle);
    return SUCCESS;
  });
}

// A pool whose card's context has failed passes that on.
template <class F> static Result pool_call(const char* name, void* pool, F body) {
  return call(name, Ready, [&](auto&, Lock&) -> Result {
    auto p = find<Pool>(id(pool), Object::IsPool);
    if (!p) return ERROR_INVALID_VALUE;
    Card& card = *world().cards[size_t(p->card)];
    if (card.context && card.context->poison) return card.context->poison;
    return body(*p, card);
  });
}

EMU_API Result cuMemPoolTrimTo(void* pool, size_t keep) {
  return pool_call("cuMemPoolTrimTo", pool, [&](Pool& p, Card& card) -> Result {
    uint64_t least = std::max({uint64_t(keep), p.used, p.promised});
    if (p.reserved > least) give(card, p.card, p.reserved - least, &p.reserved);
    return SUCCESS;
  });
}

EMU_API Result cuMemPoolGetAttribute(void* pool, int attr, void* v) {
  return pool_call("cuMemPoolGetAttribute", pool, [&](Pool& p, Card&) -> Result {
    if (!v) return ERROR_INVALID_VALUE;
    switch (attr) {
      case 1: case 2: case 3: memcpy(v, &p.reuse[attr - 1], sizeof(int)); return SUCCESS;
      case 4: memcpy(v, &p.threshold, 8); return SUCCESS;
      case 5: memcpy(v, &p.reserved, 8); return SUCCESS;
      case 6: memcpy(v, &p.reserved_high, 8); return SUCCESS;
      case 7: memcpy(v, &p.used, 8); return SUCCESS;
      case 8: memcpy(v, &p.used_high, 8); return SUCCESS;
      default: return ERROR_INVALID_VALUE;
    }
  });
}

EMU_API Result cuMemPoolSetAttribute(void* pool, int attr, void* v) {
  return pool_call("cuMemPoolSetAttribute", pool, [&](Pool& p, Card&) -> Result {
    if (!v) return ERROR_INVALID_VALUE;
    uint64_t n = 0;
    if (attr >= 4) memcpy(&n, v, 8);
    switch (attr) {
      case 1: case 2: case 3: memcpy(&p.reuse[attr - 1], v, sizeof(int)); return SUCCESS;
      case 4: p.threshold = n; return SUCCESS;
      case 6:
        if (n) return ERROR_INVALID_VALUE;
        p.reserved_high = p.reserved;
        return SUCCESS;
      case 8:
        if (n) return ERROR_INVALID_VALUE;
        p.used_high = p.promised;
        return SUCCESS;
      default: return ERROR_INVALID_VALUE;
    }
  });
}

EMU_API Result cuMemHostAlloc(void** p, size_t n, unsigned flags) {
  return call("cuMemHostAlloc", Current, [&](auto& c, Lock&) -> Result {
    World& w = world();
    if (!p || n == 0 || flags > 7) return ERROR_INVALID_VALUE;
    if (w.config.pinned && w.pinned_bytes + n > w.config.pinned) return ERROR_OUT_OF_MEMORY;
    uint64_t pages = round_up(n, page());
    void* m = mmap(nullptr, pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED) return ERROR_OUT_OF_MEMORY;
    Pinned h;
    h.size = n;
    h.ours = true;
    h.pages = pages;
    h.context = c.get();
    h.copies = std::make_shared<std::atomic<int>>(0);
    w.pinned[id(m)] = h;
    w.pinned_bytes += n;
    w.pinned_peak = std::max(w.pinned_peak, w.pinned_bytes);
    *p = m;
    return SUCCESS;
  });
}

// too_early tells of host memory that goes while a copy of it is queued.
static void too_early(Context& c, const Pinned& h, const char* what) {
  if (*h.copies == 0) return;
  World& w = world();
  {
    Lock l(w.faults_m);
    w.early++;
  }
  poison(c, ERROR_ILLEGAL_ADDRESS, what);
}

EMU_API Result cuMemFreeHost(void* p) {
  return call("cuMemFreeHost", Current | Ends, [&](auto& c, Lock&) -> Result {
    World& w = world();
    if (!p) return SUCCESS;
    auto it = w.pinned.find(id(p));
    if (it == w.pinned.end() || !it->second.ours) return ERROR_INVALID_VALUE;
    too_early(*c, it->second, "pinned memory was freed before its copies were done");
    munmap(p, it->second.pages);
    w.pinned_bytes -= it->second.size;
    w.pinned.erase(it);
    return SUCCESS;
  });
}

EMU_API Result cuMemHostRegister_v2(void* p, size_t n, unsigned flags) {
  return call("cuMemHostRegister", Current, [&](auto& c, Lock&) -> Result {
    World& w = world();
    if (!p || n == 0 || flags > 15 || id(p) + n < id(p)) return ERROR_INVALID_VALUE;
    // Whole pages are locked, and a page once only.
    uint64_t first = id(p) / page() * page(), end = round_up(id(p) + n, page());
    for (const auto& h : w.pinned) {
      uint64_t a = h.first / page() * page(), b = round_up(h.first + h.second.size, page());
      if (a < end && first < b) return ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    }
    if (w.config.pinned && w.pinned_bytes + n > w.config.pinned) return ERROR_OUT_OF_MEMORY;
    if (msync(reinterpret_cast<void*>(first), end - first, MS_ASYNC) != 0 && errno == ENOMEM)
      return ERROR_INVALID_VALUE;  // not all of it is memory
    Pinned h;
    h.size = n;
    h.context = c.get();
    h.copies = std::make_shared<std::atomic<int>>(0);
    w.pinned[id(p)] = h;
    w.pinned_bytes += n;
    w.pinned_peak = std::max(w.pinned_peak, w.pinned_bytes);
    return SUCCESS;
  });
}

EMU_API Result cuMemHostUnregister(void* p) {
  return call("cuMemHostUnregister", Current | Ends, [&](auto& c, Lock&) -> Result {
    World& w = world();
    if (!p) return ERROR_INVALID_VALUE;
    auto it = w.pinned.find(id(p));
    if (it == w.pinned.end() || it->second.ours) return ERROR_HOST_MEMORY_NOT_REGISTERED;
    too_early(*c, it->second, "host memory was unregistered before its copies were done");
    w.pinned_bytes -= it->second.size;
    w.pinned.erase(it);
    return SUCCESS;
  });
}

EMU_API Result cuMemHostGetDevicePointer_v2(uint64_t* d, void* p, unsigned flags) {
  return call("cuMemHostGetDevicePointer", Current, [&](auto&, Lock&) -> Result {
    if (!d || flags || !pinned_at(p, 1)) return ERROR_INVALID_VALUE;
    *d = id(p);
    return SUCCESS;
  });
}
