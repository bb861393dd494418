#include "arena.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <mutex>

namespace emu {
namespace {

struct Arena {
  std::mutex m;
  uintptr_t base = 0, end = 0, next = 0;
  std::map<uintptr_t, uintptr_t> live;  // first page, bytes

  bool open() {
    if (base) return true;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
#ifdef MAP_NORESERVE
    flags |= MAP_NORESERVE;
#endif
    for (size_t size = size_t(4) << 40; size >= size_t(16) << 30; size /= 4) {
      void* p = mmap(nullptr, size, PROT_NONE, flags, -1, 0);
      if (p == MAP_FAILED) continue;
      base = next = reinterpret_cast<uintptr_t>(p);
      end = base + size;
      return true;
    }
    return false;
  }

  // place finds room for bytes and a page before them, after the last one given.
  uintptr_t place(size_t bytes, size_t page) {
    for (int round = 0; round < 2; round++) {
      uintptr_t at = next + page;
      for (auto it = live.lower_bound(at - page); it != live.end() && it->first < at + bytes + page; ++it)
        at = it->first + it->second + page;
      if (at + bytes + page <= end) return at;
      next = base;
    }
    return 0;
  }
};

Arena& arena() {
  static Arena* a = new Arena;
  return *a;
}

size_t page_size() {
  static const size_t n = size_t(sysconf(_SC_PAGESIZE));
  return n;
}

}  // namespace

Mapping map_pages(size_t n, bool fill) {
  Arena& a = arena();
  size_t page = page_size(), size = (n + 255) / 256 * 256, bytes = (size + page - 1) / page * page;
  Mapping m;
  {
    std::lock_guard<std::mutex> l(a.m);
    if (!a.open()) return m;
    m.first = a.place(bytes, page);
    if (!m.first) return m;
    void* p = mmap(reinterpret_cast<void*>(m.first), bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (p == MAP_FAILED) return m;
    a.live[m.first] = bytes;
    a.next = m.first + bytes;
  }
  m.bytes = bytes;
  m.at = m.first + bytes - size;
  if (fill) {
    constexpr size_t Most = 64 << 20, Some = 1 << 20;  // a large one is not worth its pages
    auto p = reinterpret_cast<char*>(m.at);
    if (n <= Most) {
      memset(p, 0xa5, n);
    } else {
      memset(p, 0xa5, Some);
      memset(p + n - Some, 0xa5, Some);
    }
  }
  return m;
}

void unmap_pages(const Mapping& m) {
  Arena& a = arena();
  std::lock_guard<std::mutex> l(a.m);
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
#ifdef MAP_NORESERVE
  flags |= MAP_NORESERVE;
#endif
  mmap(reinterpret_cast<void*>(m.first), m.bytes, PROT_NONE, flags, -1, 0);
  a.live.erase(m.first);
}

bool in_arena(uintptr_t p) {
  const Arena& a = arena();
  return a.base && p >= a.base && p < a.end;
}

}  // namespace emu
