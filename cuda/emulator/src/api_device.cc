// cuInit, devices, primary contexts.
#include <stdio.h>
#include <string.h>

#include <algorithm>

#include "api.h"

namespace emu {

__thread uint64_t current_context EMU_TLS;

// By thread, with world().m held.
static std::multimap<std::thread::id, std::shared_ptr<Stream>>& noted() {
  static auto m = new std::multimap<std::thread::id, std::shared_ptr<Stream>>;
  return *m;
}

// The streams that a call queued work in: Eager runs it before the call returns.
static void note_stream(const std::shared_ptr<Stream>& s) {
  if (world().config.mode == Eager) noted().insert({std::this_thread::get_id(), s});
}

static void run_noted() {
  std::vector<std::shared_ptr<Stream>> all;
  {
    Lock l(world().m);
    auto mine = noted().equal_range(std::this_thread::get_id());
    for (auto it = mine.first; it != mine.second; ++it) all.push_back(it->second);
    noted().erase(mine.first, mine.second);
  }
  for (auto& s : all) run_now(*s);
}

static std::shared_ptr<Context> context_here(Result* why) {
  auto c = current_context ? find<Context>(current_context, Object::IsContext) : nullptr;
  *why = !c ? ERROR_INVALID_CONTEXT : c->destroyed ? ERROR_CONTEXT_IS_DESTROYED : SUCCESS;
  return *why ? nullptr : c;
}

Result call_body(const char* name, unsigned needs, Body body) {
  be_configured();
  World& w = world();
  bool sticky = false;
  Result hit = needs & Free ? SUCCESS : struck(name, true, &sticky);
  Result r = SUCCESS;
  std::shared_ptr<Context> c;
  {
    Lock l(w.m);
    if ((needs & Ready) && !w.ready) return ERROR_NOT_INITIALIZED;
    if ((needs & Current) == Current) {
      c = context_here(&r);
      if (!c) return r;
      if (c->poison) return c->poison;
    }
    if (hit && !(needs & Ends)) {
      if (sticky && c) poison(*c, hit, nullptr);
      return hit;
    }
    r = body.go(body.f, c, l);
    if (hit && r == SUCCESS) {
      r = hit;
      if (sticky && c) poison(*c, hit, nullptr);
    }
  }
  if (w.config.mode == Eager) {
    run_noted();
    if (c && c->poison && r == SUCCESS) r = c->poison;
  }
  return r;
}

std::shared_ptr<Stream> stream_of(const std::shared_ptr<Context>& c, void* handle) {
  if (id(handle) <= 1) {
    if (!c->null) {
      c->null = open_stream(c, 0, 0);
      c->null->null = true;
    }
    return c->null;
  }
  auto s = find<Stream>(id(handle), Object::IsStream);
  return s && s->context == c.get() ? s : nullptr;
}

uint64_t queue(const std::shared_ptr<Stream>& s, std::function<void(bool)> run) {
  note_stream(s);
  return enqueue(s, std::move(run));
}

void wait_context(const std::shared_ptr<Context>& c, Lock& l) {
  std::vector<std::pair<std::shared_ptr<Stream>, uint64_t>> all;
  for (auto& s : c->streams) {
    Lock k(s->m);
    all.push_back({s, s->queued});
  }
  l.unlock();
  for (auto& p : all) wait_for(*p.first, p.second);
  l.lock();
}

void host_waited(Context& c) {
  World& w = world();
  if (!w.config.release) return;
  Card& card = *w.cards[size_t(c.card)];
  Pool& p = *card.pool;
  uint64_t keep = std::max({p.used, p.promised, p.threshold});
  if (p.reserved > keep) give(card, c.card, p.reserved - keep, &p.reserved);
}

static Card* card_at(int device) {
  World& w = world();
  return device < 0 || size_t(device) >= w.cards.size() ? nullptr : w.cards[size_t(device)].get();
}

}  // namespace emu

using namespace emu;

EMU_API Result cuInit(unsigned flags) {
  return call("cuInit", Nothing, [&](auto&, Lock&) -> Result {
    World& w = world();
    if (flags) return ERROR_INVALID_VALUE;
    if (w.cards.empty()) return ERROR_NO_DEVICE;
    install_handler();
    w.ready = true;
    return SUCCESS;
  });
}

EMU_API Result cuDriverGetVersion(int* v) {
  return call("cuDriverGetVersion", Free, [&](auto&, Lock&) -> Result {
    if (!v) return ERROR_INVALID_VALUE;
    *v = world().config.driver;
    return SUCCESS;
  });
}

EMU_API Result cuDeviceGetCount(int* n) {
  return call("cuDeviceGetCount", Ready, [&](auto&, Lock&) -> Result {
    if (!n) return ERROR_INVALID_VALUE;
    *n = int(world().cards.size());
    return SUCCESS;
  });
}

EMU_API Result cuDeviceGet(int* device, int ordinal) {
  return call("cuDeviceGet", Ready, [&](auto&, Lock&) -> Result {
    if (!device) return ERROR_INVALID_VALUE;
    if (!card_at(ordinal)) return ERROR_INVALID_DEVICE;
    *device = ordinal;
    return SUCCESS;
  });
}

EMU_API Result cuDeviceGetName(char* name, int n, int device) {
  return call("cuDeviceGetName", Ready, [&](auto&, Lock&) -> Result {
    Card* c = card_at(device);
    if (!c) return ERROR_INVALID_DEVICE;
    if (!name || n <= 0) return ERROR_INVALID_VALUE;
    snprintf(name, size_t(n), "%s", c->config.name.c_str());
    return SUCCESS;
  });
}

EMU_API Result cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
  return call("cuDeviceGetUuid", Ready, [&](auto&, Lock&) -> Result {
    Card* c = card_at(device);
    if (!c) return ERROR_INVALID_DEVICE;
    if (!uuid) return ERROR_INVALID_VALUE;
    memcpy(uuid, c->uuid, 16);
    return SUCCESS;
  });
}

EMU_API Result cuDeviceTotalMem_v2(size_t* bytes, int device) {
  return call("cuDeviceTotalMem", Ready, [&](auto&, Lock&) -> Result {
    Card* c = card_at(device);
    if (!c) return ERROR_INVALID_DEVICE;
    if (!bytes) return ERROR_INVALID_VALUE;
    *bytes = c->config.total;
    return SUCCESS;
  });
}

EMU_API Result cuDeviceGetPCIBusId(char* text, int n, int device) {
  return call("cuDeviceGetPCIBusId", Ready, [&](auto&, Lock&) -> Result {
    if (!card_at(device)) return ERROR_INVALID_DEVICE;
    if (!text || n < 13) return ERROR_INVALID_VALUE;
    snprintf(text, size_t(n), "0000:%02x:00.0", device + 1);
    return SUCCESS;
  });
}

static int attribute(const Card& c, int device, int a) {
  switch (a) {
    case 1: case 2: case 3: return 1024;  // threads of a block, its x, its y
    case 4: return 64;
    case 5: return 0x7fffffff;
    case 6: case 7: return 65535;
    case 8: return 48 << 10;              // shared memory of a block
    case 9: return 64 << 10;
    case 10: return 32;
    case 12: case 82: return 64 << 10;    // registers of a block, of an SM
    case 13: case 36: return 1000000;     // kHz
    case 16: return c.config.sms;
    case 19: case 31: case 40: case 41: case 78: case 79: case 80: case 91: case 99: case 115: return 1;
    case 33: return device + 1;           // PCI bus
    case 38: return int(c.config.l2);
    case 39: return 2048;
    case 75: return c.config.major;
    case 76: return c.config.minor;
    case 81: return int(c.config.shared) + 1024;
    case 97: return int(c.config.shared);
    case 106: return 32;
    case 111: return 1024;
    default: return 0;
  }
}

EMU_API Result cuDeviceGetAttribute(int* v, int attr, int device) {
  return call("cuDeviceGetAttribute", Ready, [&](auto&, Lock&) -> Result {
    Card* c = card_at(device);
    if (!c) return ERROR_INVALID_DEVICE;
    if (!v || attr < 1 || attr > 150) return ERROR_INVALID_VALUE;
    *v = attribute(*c, device, attr);
    return SUCCESS;
  });
}

EMU_API Result cuDevicePrimaryCtxRetain(void** out, int device) {
  return call("cuDevicePrimaryCtxRetain", Ready, [&](auto&, Lock&) -> Result {
    Card* card = card_at(device);
    if (!card) return ERROR_INVALID_DEVICE;
    if (!out) return ERROR_INVALID_VALUE;
    if (card->dead) return card->dead;
    if (!card->context) {
      if (Result r = take(*card, device, card->config.context, &card->contexts)) return r;
      card->context = std::make_shared<Context>(device);
      add(card->context);
    }
    card->context->references++;
    *out = as_handle<void>(card->context->handle);
    return SUCCESS;
  });
}

EMU_API Result cuDevicePrimaryCtxRelease_v2(int device) {
  return call("cuDevicePrimaryCtxRelease", Ready | Ends, [&](auto&, Lock& l) -> Result {
    Card* card = card_at(device);
    if (!card) return ERROR_INVALID_DEVICE;
    if (!card->context) return ERROR_INVALID_CONTEXT;
    if (--card->context->references == 0) dissolve(card->context, l);
    return SUCCESS;
  });
}

EMU_API Result cuDevicePrimaryCtxReset_v2(int device) {
  return call("cuDevicePrimaryCtxReset", Ready | Ends, [&](auto&, Lock& l) -> Result {
    Card* card = card_at(device);
    if (!card) return ERROR_INVALID_DEVICE;
    if (card->context) dissolve(card->context, l);
    return SUCCESS;
  });
}

EMU_API Result cuDevicePrimaryCtxSetFlags_v2(int device, unsigned) {
  return call("cuDevicePrimaryCtxSetFlags", Ready,
              [&](auto&, Lock&) -> Result { return card_at(device) ? SUCCESS : ERROR_INVALID_DEVICE; });
}

EMU_API Result cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  return call("cuDevicePrimaryCtxGetState", Ready, [&](auto&, Lock&) -> Result {
    Card* card = card_at(device);
    if (!card) return ERROR_INVALID_DEVICE;
    if (!flags || !active) return ERROR_INVALID_VALUE;
    *flags = 0;
    *active = card->context != nullptr;
    return SUCCESS;
  });
}

EMU_API Result cuCtxSetCurrent(void* context) {
  return call("cuCtxSetCurrent", Ready, [&](auto&, Lock&) -> Result {
    if (context) {
      auto c = find<Context>(id(context), Object::IsContext);
      if (!c) return ERROR_INVALID_CONTEXT;
      if (c->destroyed) return ERROR_CONTEXT_IS_DESTROYED;
    }
    current_context = id(context);
    return SUCCESS;
  });
}

EMU_API Result cuCtxGetCurrent(void** context) {
  return call("cuCtxGetCurrent", Ready | Free, [&](auto&, Lock&) -> Result {
    if (!context) return ERROR_INVALID_VALUE;
    *context = as_handle<void>(current_context);
    return SUCCESS;
  });
}

EMU_API Result cuCtxSynchronize() {
  return call("cuCtxSynchronize", Current, [&](auto& c, Lock& l) -> Result {
    wait_context(c, l);
    if (c->poison) return c->poison;
    host_waited(*c);
    return SUCCESS;
  });
}

EMU_API Result cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return call("cuCtxGetStreamPriorityRange", Current, [&](auto&, Lock&) -> Result {
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return SUCCESS;
  });
}
