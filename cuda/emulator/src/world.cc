#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>

#include "state.h"

namespace emu {

// Never destroyed: threads use it until the process ends.
World& world() {
  static World* w = new World;
  return *w;
}

static uint64_t own(const Card& c) { return c.classic + c.contexts + c.pool->reserved; }

uint64_t used_of(Card& c) {
  auto& w = world();
  for (size_t i = 0; i < w.cards.size(); i++)
    if (w.cards[i].get() == &c) c.foreign = share_others(int(i));
  return std::min(c.config.total, c.config.others + own(c) + c.foreign);
}

Result take(Card& c, int index, uint64_t bytes, uint64_t* counter) {
  uint64_t now = own(c);
  uint64_t limit = c.config.total - std::min(c.config.total, c.config.others);
  if (bytes > limit || now + bytes > limit || !share_adjust(index, now, now + bytes, limit)) return ERROR_OUT_OF_MEMORY;
  *counter += bytes;
  c.peak = std::max(c.peak, now + bytes);
  return SUCCESS;
}

void give(Card& c, int index, uint64_t bytes, uint64_t* counter) {
  uint64_t now = own(c);
  *counter -= bytes;
  share_adjust(index, now, now - bytes, ~0ull);
}

uint64_t add(std::shared_ptr<Object> o) {
  auto& w = world();
  // An address that no memory has: whoever looks through it, fails.
  o->handle = 0x00e5000000000000ull + 8 * w.next_handle++;
  w.objects[o->handle] = o;
  return o->handle;
}

void poison(Context& c, Result code, const char* why) {
  int none = 0;
  if (!c.poison.compare_exchange_strong(none, code)) return;
  if (world().config.no_revival && !c.destroyed) {
    int alive = 0;
    world().cards[size_t(c.card)]->dead.compare_exchange_strong(alive, code);
  }
  if (why && *why)
    fprintf(stderr, "emulator: the context of card %d ends with error %d: %s\n", c.card, code, why);
}

void dissolve(std::shared_ptr<Context> c, Lock& lock) {
  auto& w = world();
  Card& card = *w.cards[size_t(c->card)];
  c->destroyed = true;
  if (card.context == c) card.context = nullptr;
  poison(*c, ERROR_CONTEXT_IS_DESTROYED, nullptr);
  auto streams = std::move(c->streams);
  for (auto& s : streams) close_stream(s);
  lock.unlock();
  for (auto& s : streams) join_stream(s);
  lock.lock();
  c->null = nullptr;
  for (auto it = w.objects.begin(); it != w.objects.end();) {
    Context* of = nullptr;
    switch (it->second->kind) {
      case Object::IsStream: of = static_cast<Stream*>(it->second.get())->context; break;
      case Object::IsEvent: of = static_cast<Event*>(it->second.get())->context; break;
      case Object::IsModule: of = static_cast<Module*>(it->second.get())->context; break;
      case Object::IsFunction: of = static_cast<Function*>(it->second.get())->context; break;
      default: break;
    }
    it = of == c.get() ? w.objects.erase(it) : std::next(it);
  }
  for (auto it = w.blocks.begin(); it != w.blocks.end();) {
    Block& b = it->second;
    if (b.context != c.get()) {
      ++it;
      continue;
    }
    unmap_pages(b.map);
    if (b.pooled) {
      card.pool->used -= b.counted;
      if (!b.freed) card.pool->promised -= b.counted;
    } else {
      give(card, c->card, b.counted, &card.classic);
    }
    it = w.blocks.erase(it);
  }
  give(card, c->card, card.pool->reserved, &card.pool->reserved);
  card.pool->threshold = card.pool->reserved_high = card.pool->used_high = 0;
  give(card, c->card, card.contexts, &card.contexts);
  for (auto it = w.pinned.begin(); it != w.pinned.end();) {
    if (it->second.context != c.get()) {
      ++it;
      continue;
    }
    w.pinned_bytes -= it->second.size;
    if (it->second.ours) munmap(reinterpret_cast<void*>(it->first), it->second.pages);
    it = w.pinned.erase(it);
  }
}

}  // namespace emu
