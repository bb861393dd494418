// The few calls of NVML that tell of a card's load and of who else uses it.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api.h"

namespace emu {
namespace {

enum { Fine_ = 0, Uninitialized = 1, InvalidArgument = 2, NotFound = 6, InsufficientSize = 7 };

bool started = false;

struct Seen {  // at the last question
  Clock::time_point at = Clock::now();
  uint64_t busy = 0, in = 0, out = 0;
  unsigned load = 0;
};
std::vector<Seen> seen_load, seen_bytes;

std::string uuid_text(const Card& c) {
  char b[64];
  char* p = b + sprintf(b, "GPU-");
  for (int i = 0; i < 16; i++) p += sprintf(p, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", c.uuid[i]);
  return b;
}

Card* card(void* handle) {
  World& w = world();
  uint64_t i = id(handle);
  return i >= 1 && i <= w.cards.size() ? w.cards[i - 1].get() : nullptr;
}

int fit(const std::string& s, char* out, unsigned n) {
  if (!out) return InvalidArgument;
  if (n <= s.size()) return InsufficientSize;
  memcpy(out, s.c_str(), s.size() + 1);
  return Fine_;
}

template <class F> int nvml(const char* name, F body) {
  bool sticky = false;
  if (Result r = struck(name, false, &sticky)) return r;
  Lock l(world().m);
  if (!started) return Uninitialized;
  return body();
}

}  // namespace
}  // namespace emu

using namespace emu;

EMU_API int nvmlInit_v2() {
  be_configured();
  bool sticky = false;
  if (Result r = struck("nvmlInit", false, &sticky)) return r;
  Lock l(world().m);
  started = true;
  return Fine_;
}

EMU_API int nvmlShutdown() {
  return nvml("nvmlShutdown", [&] {
    started = false;
    return Fine_;
  });
}

EMU_API const char* nvmlErrorString(int code) {
  switch (code) {
    case Fine_: return "The operation was successful";
    case Uninitialized: return "NVML was not first initialized with nvmlInit()";
    case InvalidArgument: return "A supplied argument is invalid";
    case 3: return "The requested operation is not available on target device";
    case 4: return "The current user does not have permission for operation";
    case NotFound: return "A query to find an object was unsuccessful";
    case InsufficientSize: return "An input argument is not large enough";
    case 9: return "NVIDIA driver is not loaded";
    case 12: return "Library not found";
    case 15: return "The GPU is lost";
    default: return "Unknown error";
  }
}

EMU_API int nvmlSystemGetDriverVersion(char* out, unsigned n) {
  return nvml("nvmlSystemGetDriverVersion", [&] { return fit(world().config.driver_text, out, n); });
}

EMU_API int nvmlDeviceGetCount_v2(unsigned* n) {
  return nvml("nvmlDeviceGetCount", [&]() -> int {
    if (!n) return InvalidArgument;
    *n = unsigned(world().cards.size());
    return Fine_;
  });
}

EMU_API int nvmlDeviceGetHandleByIndex_v2(unsigned i, void** out) {
  return nvml("nvmlDeviceGetHandleByIndex", [&]() -> int {
    if (!out || i >= world().cards.size()) return InvalidArgument;
    *out = as_handle<void>(i + 1);
    return Fine_;
  });
}

EMU_API int nvmlDeviceGetHandleByUUID(const char* uuid, void** out) {
  return nvml("nvmlDeviceGetHandleByUUID", [&]() -> int {
    if (!out || !uuid) return InvalidArgument;
    World& w = world();
    for (size_t i = 0; i < w.cards.size(); i++)
      if (uuid_text(*w.cards[i]) == uuid) {
        *out = as_handle<void>(i + 1);
        return Fine_;
      }
    return NotFound;
  });
}

EMU_API int nvmlDeviceGetName(void* d, char* out, unsigned n) {
  return nvml("nvmlDeviceGetName", [&]() -> int {
    Card* c = card(d);
    return c ? fit(c->config.name, out, n) : InvalidArgument;
  });
}

EMU_API int nvmlDeviceGetUUID(void* d, char* out, unsigned n) {
  return nvml("nvmlDeviceGetUUID", [&]() -> int {
    Card* c = card(d);
    return c ? fit(uuid_text(*c), out, n) : InvalidArgument;
  });
}

struct nvmlUtilization {
  unsigned gpu, memory;
};

// Percent of the time since the last question in which a kernel ran.
EMU_API int nvmlDeviceGetUtilizationRates(void* d, nvmlUtilization* out) {
  return nvml("nvmlDeviceGetUtilizationRates", [&]() -> int {
    Card* c = card(d);
    if (!c || !out) return InvalidArgument;
    seen_load.resize(world().cards.size());
    Seen& s = seen_load[id(d) - 1];
    auto now = Clock::now();
    uint64_t ns = uint64_t(std::chrono::nanoseconds(now - s.at).count()), busy = c->busy;
    if (ns > 100000) {
      s.load = unsigned(std::min<uint64_t>(100, 100 * (busy - s.busy) / ns));
      s.at = now;
      s.busy = busy;
    }
    out->gpu = std::max(s.load, c->running > 0 ? 1u : 0u);
    out->memory = out->gpu / 2;
    return Fine_;
  });
}

struct nvmlMemory {
  unsigned long long total, free, used;
};

EMU_API int nvmlDeviceGetMemoryInfo(void* d, nvmlMemory* out) {
  return nvml("nvmlDeviceGetMemoryInfo", [&]() -> int {
    Card* c = card(d);
    if (!c || !out) return InvalidArgument;
    out->total = c->config.total;
    out->used = used_of(*c);
    out->free = out->total - out->used;
    return Fine_;
  });
}

struct nvmlProcessInfo {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};

EMU_API int nvmlDeviceGetComputeRunningProcesses_v3(void* d, unsigned* n, nvmlProcessInfo* out) {
  return nvml("nvmlDeviceGetComputeRunningProcesses", [&]() -> int {
    Card* c = card(d);
    if (!c || !n) return InvalidArgument;
    std::vector<nvmlProcessInfo> all;
    uint64_t own = c->classic + c->contexts + c->pool->reserved;
    if (c->context || own) all.push_back({unsigned(getpid()), own, ~0u, ~0u});
    if (c->config.others) all.push_back({1, c->config.others, ~0u, ~0u});
    for (auto& p : share_processes(int(id(d)) - 1)) all.push_back({unsigned(p.first), p.second, ~0u, ~0u});
    unsigned room = *n;
    *n = unsigned(all.size());
    if (room < all.size() || (!out && !all.empty())) return InsufficientSize;
    for (size_t i = 0; i < all.size(); i++) out[i] = all[i];
    return Fine_;
  });
}

// KB a second since the last question; 0: to the host, 1: to the card.
EMU_API int nvmlDeviceGetPcieThroughput(void* d, int counter, unsigned* out) {
  return nvml("nvmlDeviceGetPcieThroughput", [&]() -> int {
    Card* c = card(d);
    if (!c || !out || counter < 0 || counter > 1) return InvalidArgument;
    seen_bytes.resize(2 * world().cards.size());
    Seen& s = seen_bytes[2 * (id(d) - 1) + uint64_t(counter)];
    auto now = Clock::now();
    double seconds = std::chrono::duration<double>(now - s.at).count();
    uint64_t bytes = counter ? c->in : c->out, &before = counter ? s.in : s.out;
    *out = seconds > 0 ? unsigned(double(bytes - before) / 1024 / seconds) : 0;
    before = bytes;
    s.at = now;
    return Fine_;
  });
}
