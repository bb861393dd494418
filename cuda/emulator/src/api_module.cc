// Modules, their functions, launches.
#include <stdio.h>
#include <string.h>

#include <algorithm>

#include "api.h"
#include "ptx.h"

namespace emu {
namespace {

const emu_export* compiled(const std::string& name) {
  for (const emu_export* e = exports(); e; e = e->next)
    if (name == e->name) return e;
  return nullptr;
}

// Options that the emulator knows: where to write what is wrong.
struct JitLog {
  char* at = nullptr;
  size_t room = 0;
  JitLog(unsigned n, const int* keys, void* const* values) {
    for (unsigned i = 0; i < n; i++) {
      if (keys[i] == 5) at = static_cast<char*>(values[i]);
      if (keys[i] == 6) room = size_t(values[i]);
    }
  }
  void say(const std::string& s) {
    if (at && room) snprintf(at, room, "emulator: %s", s.c_str());
  }
};

// The newest PTX that a driver reads.
int newest_ptx(int driver) {
  int major = driver / 1000, minor = driver % 1000 / 10;
  return 10 * (major - 4) + std::min(minor, 9);
}

Result load(const std::shared_ptr<Context>& c, void** out, const void* image, JitLog log) {
  if (!out || !image) return ERROR_INVALID_VALUE;
  if (strncmp(static_cast<const char*>(image), "\x7f" "ELF", 4) == 0) {
    log.say("a cubin: there is no card of that kind here");
    return ERROR_NO_BINARY_FOR_GPU;
  }
  Ptx ptx;
  std::string wrong = parse_ptx(static_cast<const char*>(image), &ptx);
  if (!wrong.empty()) {
    log.say("not PTX: " + wrong);
    return ERROR_INVALID_PTX;
  }
  World& w = world();
  const CardConfig& card = w.cards[size_t(c->card)]->config;
  if (ptx.version > newest_ptx(w.config.driver)) {
    log.say("unsupported .version " + std::to_string(ptx.version / 10) + "." + std::to_string(ptx.version % 10));
    return ERROR_UNSUPPORTED_PTX_VERSION;
  }
  if (ptx.target > 10 * card.major + card.minor) {
    log.say("the target sm_" + std::to_string(ptx.target) + " is newer than the card");
    return ERROR_NO_BINARY_FOR_GPU;
  }
  auto m = std::make_shared<Module>(c.get());
  for (auto& e : ptx.entries) m->entries[e.name] = e;
  *out = as_handle<void>(add(m));
  return SUCCESS;
}

// A copy of what the context's memory holds, to find what a kernel wrote. Blocks
// come and go with world().m held, as it is in both methods.
struct Snapshot {
  std::map<uint64_t, std::vector<unsigned char>> parts;
  uint64_t seed = 0;

  void take(Context& c, const Launch& l) {
    Lock k(world().m);
    auto& blocks = world().blocks;
    for (int all = 0; all < 2 && parts.empty(); all++)
      for (auto& b : blocks) {
        if (b.second.context != &c) continue;
        if (!all && std::find(l.written.begin(), l.written.end(), b.first) == l.written.end()) continue;
        auto p = reinterpret_cast<unsigned char*>(b.first);
        parts[b.first].assign(p, p + b.second.size);
      }
  }

  // flip changes one bit of one byte that is not what it was.
  bool flip() {
    Lock k(world().m);
    uint64_t changed = 0;
    for (auto it = parts.begin(); it != parts.end();) it = world().blocks.count(it->first) ? ++it : parts.erase(it);
    for (auto& p : parts) {
      auto now = reinterpret_cast<unsigned char*>(p.first);
      for (size_t i = 0; i < p.second.size(); i++) changed += now[i] != p.second[i];
    }
    if (!changed) return false;
    uint64_t pick = seed * 0x9e3779b97f4a7c15 % changed;
    for (auto& p : parts) {
      auto now = reinterpret_cast<unsigned char*>(p.first);
      for (size_t i = 0; i < p.second.size(); i++)
        if (now[i] != p.second[i] && pick-- == 0) {
          now[i] ^= static_cast<unsigned char>(1u << (seed % 8));
          return true;
        }
    }
    return false;
  }
};

const char* why(Trouble t) {
  switch (t) {
    case BadAddress: return "a kernel touches memory that is not there";
    case StackOverflow: return "a kernel needs more stack than there is";
    case Deadlock: return "a kernel's threads wait for ever";
    case BadMask: return "a kernel's warp operation has a wrong mask";
    case DividedByZero: return "a kernel divides by zero";
    case Trapped: return "a kernel does what is not defined";
    default: return "";
  }
}

Result code_of(Trouble t) {
  switch (t) {
    case BadAddress: return ERROR_ILLEGAL_ADDRESS;
    case Deadlock: return ERROR_LAUNCH_TIMEOUT;
    case StackOverflow: return ERROR_HARDWARE_STACK_ERROR;
    case Trapped: return ERROR_ILLEGAL_INSTRUCTION;
    default: return ERROR_LAUNCH_FAILED;
  }
}

void run_launch(Context& c, Card& card, const Launch& l) {
  bool sticky = false;
  std::string name = l.kernel->name;
  Result hit = struck("kernel", false, &sticky);
  if (Result more = struck(("kernel:" + name).c_str(), false, &sticky)) hit = more;
  if (hit) return poison(c, hit, nullptr);
  Snapshot before;
  bool due = corruption_due(name);
  if (due) {
    Lock k(world().faults_m);
    before.seed = world().launches[name] + world().corrupted + 1;
    k.unlock();
    before.take(c, l);
  }
  auto from = Clock::now();
  card.running++;
  Trouble t = run_grid(l);
  if (card.config.launch) std::this_thread::sleep_for(std::chrono::microseconds(card.config.launch));
  card.running--;
  card.busy += uint64_t(std::chrono::nanoseconds(Clock::now() - from).count());
  if (t != Fine) return poison(c, code_of(t), (std::string(why(t)) + ": " + name).c_str());
  if (due && before.flip()) {
    Lock k(world().faults_m);
    world().corrupted++;
  }
}

// known says whether p may be an argument: no address, or one that holds.
bool known(Context& c, uint64_t p) {
  return p == 0 || block_at(c, p, 0) || pinned_at(reinterpret_cast<void*>(p), 0);
}

Result launch(const std::shared_ptr<Context>& c, void* f, uint3 grid, uint3 block, unsigned shared, void* stream,
              void** params, void** extra) {
  auto fn = find<Function>(id(f), Object::IsFunction);
  auto s = stream_of(c, stream);
  if (!fn || fn->context != c.get() || !s) return ERROR_INVALID_HANDLE;
  if (!grid.x || !grid.y || !grid.z || grid.x > 0x7fffffff || grid.y > 65535 || grid.z > 65535)
    return ERROR_INVALID_VALUE;
  if (!block.x || !block.y || !block.z || block.x > 1024 || block.y > 1024 || block.z > 64) return ERROR_INVALID_VALUE;
  if (u64(block.x) * block.y * block.z > fn->most_threads) return ERROR_INVALID_VALUE;
  if (shared > fn->dynamic) return ERROR_INVALID_VALUE;
  const emu_export& k = *fn->kernel;
  if (extra || (k.count && !params)) return ERROR_INVALID_VALUE;

  auto l = std::make_shared<Launch>();
  l->kernel = &k;
  l->grid = grid;
  l->block = block;
  l->shared = shared;
  std::vector<size_t> at;
  size_t bytes = 0;
  for (u32 i = 0; i < k.count; i++) {
    bytes = (bytes + 15) / 16 * 16;
    at.push_back(bytes);
    bytes += k.sizes[i];
  }
  l->bytes.resize(bytes);
  for (u32 i = 0; i < k.count; i++) {
    memcpy(&l->bytes[at[i]], params[i], k.sizes[i]);
    l->params.push_back(&l->bytes[at[i]]);
    // Structs may carry addresses too, of what is written for all that is known.
    for (u32 o = 0; o + 8 <= k.sizes[i]; o += 8) {
      uint64_t p;
      memcpy(&p, &l->bytes[at[i] + o], 8);
      if (k.pointers[i] != 1)
        if (Block* b = block_at(*c, p, 0)) l->written.push_back(b->map.at);
      if (k.pointers[i] && !known(*c, p)) {
        char text[200];
        snprintf(text, sizeof text, "argument %u of kernel %s, %p, is no memory of this device", i, k.name,
                 reinterpret_cast<void*>(p));
        queue(s, [c, said = std::string(text)](bool dead) {
          if (!dead) poison(*c, ERROR_ILLEGAL_ADDRESS, said.c_str());
        });
        return SUCCESS;
      }
    }
  }
  Card& card = *world().cards[size_t(c->card)];
  queue(s, [c, l, &card](bool dead) {
    if (!dead) run_launch(*c, card, *l);
  });
  return SUCCESS;
}

}  // namespace
}  // namespace emu

using namespace emu;

EMU_API Result cuModuleLoadDataEx(void** m, const void* image, unsigned n, int* keys, void** values) {
  return call("cuModuleLoadDataEx", Current,
              [&](auto& c, Lock&) -> Result { return load(c, m, image, JitLog(n, keys, values)); });
}

EMU_API Result cuModuleLoadData(void** m, const void* image) {
  return call("cuModuleLoadData", Current,
              [&](auto& c, Lock&) -> Result { return load(c, m, image, JitLog(0, nullptr, nullptr)); });
}

EMU_API Result cuModuleUnload(void* module) {
  return call("cuModuleUnload", Current | Ends, [&](auto& c, Lock& l) -> Result {
    auto m = find<Module>(id(module), Object::IsModule);
    if (!m || m->context != c.get()) return ERROR_INVALID_HANDLE;
    wait_context(c, l);
    for (auto& f : m->functions) world().objects.erase(f.second->handle);
    world().objects.erase(id(module));
    return SUCCESS;
  });
}

EMU_API Result cuModuleGetFunction(void** f, void* module, const char* name) {
  return call("cuModuleGetFunction", Current, [&](auto& c, Lock&) -> Result {
    auto m = find<Module>(id(module), Object::IsModule);
    if (!m || m->context != c.get()) return ERROR_INVALID_HANDLE;
    if (!f || !name) return ERROR_INVALID_VALUE;
    auto entry = m->entries.find(name);
    if (entry == m->entries.end()) return ERROR_NOT_FOUND;
    const emu_export* k = compiled(name);
    if (!k) {
      fprintf(stderr, "emulator: kernel %s is in the PTX, but was not compiled into this library\n", name);
      return ERROR_NOT_FOUND;
    }
    auto& fn = m->functions[name];
    if (!fn) {
      fn = std::make_shared<Function>(c.get(), k);
      fn->shared = entry->second.shared;
      fn->most_threads = std::min(k->threads, entry->second.most_threads ? entry->second.most_threads : 1024u);
      fn->dynamic = (48u << 10) - std::min(48u << 10, fn->shared);
      add(fn);
    }
    *f = as_handle<void>(fn->handle);
    return SUCCESS;
  });
}

EMU_API Result cuFuncGetAttribute(int* v, int attr, void* function) {
  return call("cuFuncGetAttribute", Current, [&](auto& c, Lock&) -> Result {
    auto f = find<Function>(id(function), Object::IsFunction);
    if (!f || f->context != c.get()) return ERROR_INVALID_HANDLE;
    if (!v || attr < 0 || attr > 20) return ERROR_INVALID_VALUE;
    switch (attr) {
      case 0: *v = int(f->most_threads); break;
      case 1: *v = int(f->shared); break;
      case 4: *v = 32; break;  // registers: nothing here has any
      case 5: *v = 78; break;
      case 6: *v = 90; break;
      case 8: *v = int(f->dynamic); break;
      default: *v = 0;
    }
    return SUCCESS;
  });
}

EMU_API Result cuFuncSetAttribute(void* function, int attr, int v) {
  return call("cuFuncSetAttribute", Current, [&](auto& c, Lock&) -> Result {
    auto f = find<Function>(id(function), Object::IsFunction);
    if (!f || f->context != c.get()) return ERROR_INVALID_HANDLE;
    if (attr == 9) return SUCCESS;
    uint64_t most = world().cards[size_t(c->card)]->config.shared;
    if (attr != 8 || v < 0 || uint64_t(v) + f->shared > most) return ERROR_INVALID_VALUE;
    f->dynamic = unsigned(v);
    return SUCCESS;
  });
}

EMU_API Result cuLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                              unsigned shared, void* stream, void** params, void** extra) {
  return call("cuLaunchKernel", Current, [&](auto& c, Lock&) -> Result {
    return launch(c, f, {gx, gy, gz}, {bx, by, bz}, shared, stream, params, extra);
  });
}
