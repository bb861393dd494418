// Copies and fills.
#include <stdlib.h>
#include <string.h>

#include "api.h"

namespace emu {
namespace {

enum Way { In, Out, Within };

struct Move {
  void* to;
  const void* from;
  uint64_t n;
  static void go(void* p) {
    auto m = static_cast<Move*>(p);
    memmove(m->to, m->from, m->n);
  }
};

struct Fill {
  void* to;
  uint32_t v;
  uint64_t n;
  bool words;
  static void go(void* p) {
    auto f = static_cast<Fill*>(p);
    if (!f->words) {
      memset(f->to, int(f->v), f->n);
      return;
    }
    auto w = static_cast<uint32_t*>(f->to);
    for (uint64_t i = 0; i < f->n; i++) w[i] = f->v;
  }
};

template <class T> void do_guarded(Context& c, T job, const char* what) {
  bool sticky = false;
  if (Result r = struck("copy", false, &sticky)) return poison(c, r, nullptr);
  if (guarded(T::go, &job) != Fine) poison(c, ERROR_ILLEGAL_ADDRESS, what);
}

// copy queues a copy, and says what to wait for in *ticket if the host must
// wait: host memory that is not pinned is read or written before the call
// returns, or soon copied to memory that is the driver's own.
Result copy(const std::shared_ptr<Context>& c, Lock& l, void* stream, uint64_t device, void* host, uint64_t other,
            uint64_t n, Way way, bool sync) {
  World& w = world();
  auto s = stream_of(c, stream);
  if (!s) return ERROR_INVALID_HANDLE;
  if (n == 0) return SUCCESS;
  if (!block_at(*c, device, n)) return ERROR_INVALID_VALUE;
  if (way == Within && !block_at(*c, other, n)) return ERROR_INVALID_VALUE;
  if (way != Within && (!host || in_arena(id(host)))) return ERROR_INVALID_VALUE;
  Card& card = *w.cards[size_t(c->card)];
  std::shared_ptr<std::atomic<int>> copies;
  std::shared_ptr<void> staged;
  auto d = reinterpret_cast<void*>(device);
  Move m{d, host, n};
  if (way == Out) m = {host, d, n};
  if (way == Within) m.from = reinterpret_cast<void*>(other);
  if (way != Within) {
    if (Pinned* p = pinned_at(host, n)) {
      copies = p->copies;
      ++*copies;
    } else {
      Lock k(w.faults_m);
      w.pageable++;
      k.unlock();
      if (way == In && n <= 64 << 10) {
        staged = std::shared_ptr<void>(malloc(n), free);
        memcpy(staged.get(), host, n);
        m.from = staged.get();
      } else {
        sync = true;
      }
    }
  }
  uint64_t ticket = queue(s, [=, &card](bool dead) {
    (void)staged;
    if (!dead) {
      do_guarded(*c, m, "a copy touches memory that is not there");
      if (way == In) card.in += n;
      if (way == Out) card.out += n;
    }
    if (copies) --*copies;
  });
  if (!sync) return SUCCESS;
  l.unlock();
  wait_for(*s, ticket);
  l.lock();
  return c->poison;
}

Result fill(const std::shared_ptr<Context>& c, void* stream, uint64_t to, uint32_t v, uint64_t n, bool words) {
  auto s = stream_of(c, stream);
  if (!s) return ERROR_INVALID_HANDLE;
  if (n == 0) return SUCCESS;
  if (n > ~0ull / 4 || (words && to % 4) || !block_at(*c, to, words ? 4 * n : n)) return ERROR_INVALID_VALUE;
  queue(s, [=](bool dead) {
    if (!dead) do_guarded(*c, Fill{reinterpret_cast<void*>(to), v, n, words}, "a fill touches memory that is not there");
  });
  return SUCCESS;
}

}  // namespace
}  // namespace emu

using namespace emu;

EMU_API Result cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t n, void* stream) {
  return call("cuMemcpyHtoDAsync", Current, [&](auto& c, Lock& l) -> Result {
    return copy(c, l, stream, to, const_cast<void*>(from), 0, n, In, false);
  });
}

EMU_API Result cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t n, void* stream) {
  return call("cuMemcpyDtoHAsync", Current,
              [&](auto& c, Lock& l) -> Result { return copy(c, l, stream, from, to, 0, n, Out, false); });
}

EMU_API Result cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t n, void* stream) {
  return call("cuMemcpyDtoDAsync", Current,
              [&](auto& c, Lock& l) -> Result { return copy(c, l, stream, to, nullptr, from, n, Within, false); });
}

EMU_API Result cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t n) {
  return call("cuMemcpyHtoD", Current, [&](auto& c, Lock& l) -> Result {
    return copy(c, l, nullptr, to, const_cast<void*>(from), 0, n, In, true);
  });
}

EMU_API Result cuMemcpyDtoH_v2(void* to, uint64_t from, size_t n) {
  return call("cuMemcpyDtoH", Current,
              [&](auto& c, Lock& l) -> Result { return copy(c, l, nullptr, from, to, 0, n, Out, true); });
}

EMU_API Result cuMemsetD8Async(uint64_t to, unsigned char v, size_t n, void* stream) {
  return call("cuMemsetD8Async", Current, [&](auto& c, Lock&) -> Result { return fill(c, stream, to, v, n, false); });
}

EMU_API Result cuMemsetD32Async(uint64_t to, unsigned v, size_t n, void* stream) {
  return call("cuMemsetD32Async", Current, [&](auto& c, Lock&) -> Result { return fill(c, stream, to, v, n, true); });
}
