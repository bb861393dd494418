// What tests tell the emulator, and ask it. A program that calls nothing of
// this has what SNARKLINE_EMULATOR says in the environment, as JSON, or else one
// card as in config.h.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "api.h"

namespace emu {
namespace {

void make_cards(World& w) {
  for (size_t i = 0; i < w.config.cards.size() && !w.config.none; i++) {
    auto c = std::make_unique<Card>();
    c->config = w.config.cards[i];
    uint64_t h = 0xcbf29ce484222325 + i;  // the same in every process
    for (char ch : c->config.name) h = (h ^ static_cast<unsigned char>(ch)) * 0x100000001b3;
    for (int k = 0; k < 16; k++) {
      h = (h ^ uint64_t(k)) * 0x100000001b3;
      c->uuid[k] = static_cast<unsigned char>(h >> 32);
    }
    c->pool = std::make_shared<Pool>(int(i));
    add(c->pool);
    w.cards.push_back(std::move(c));
  }
}

void clear(World& w, Lock& l) {
  w.ready = false;
  for (auto& c : w.cards)
    if (c->context) dissolve(c->context, l);
  w.objects.clear();
  w.cards.clear();
  w.pinned_peak = w.pinned_bytes;
  share_close();
  stop_pool();
  Lock k(w.faults_m);
  w.faults.clear();
  w.corruptions.clear();
  w.call_counts.clear();
  w.launches.clear();
  w.calls = w.corrupted = w.pageable = w.early = 0;
}

std::string configure(const Config& config) {
  World& w = world();
  Lock l(w.m);
  clear(w, l);
  w.config = config;
  int threads = config.threads > 0 ? config.threads : int(std::thread::hardware_concurrency());
  set_order(config.order);
  set_pool(config.mode == Eager ? 1 : std::max(1, threads));
  std::string error;
  if (!config.share.empty() && !share_open(config.share, &error)) return error;
  make_cards(w);
  return "";
}

std::once_flag first;

void configure_first() {
  Config c;
  if (const char* json = getenv("SNARKLINE_EMULATOR")) {
    std::string bad = parse_config(json, &c);
    if (!bad.empty()) fprintf(stderr, "emulator: SNARKLINE_EMULATOR: %s\n", bad.c_str());
  }
  std::string bad = configure(c);
  if (!bad.empty()) fprintf(stderr, "emulator: %s\n", bad.c_str());
}

void field(std::string& s, const char* name, uint64_t v) {
  if (s.back() != '{') s += ',';
  s += quote(name) + ":" + std::to_string(v);
}

void counts(std::string& s, const char* name, const std::map<std::string, uint64_t>& m) {
  if (s.back() != '{') s += ',';
  s += quote(name) + ":{";
  for (auto& e : m) field(s, e.first.c_str(), e.second);
  s += '}';
}

std::string card_stats(World& w, size_t index) {
  Card& c = *w.cards[index];
  uint64_t streams = 0, events = 0, modules = 0, classic = 0, pooled = 0, pinned = 0, registered = 0, pinned_n = 0,
           registered_n = 0;
  for (auto& o : w.objects) {
    Object* p = o.second.get();
    streams += p->kind == Object::IsStream && static_cast<Stream*>(p)->card == int(index);
    events += p->kind == Object::IsEvent && static_cast<Event*>(p)->context->card == int(index);
    modules += p->kind == Object::IsModule && static_cast<Module*>(p)->context->card == int(index);
  }
  for (auto& b : w.blocks)
    if (b.second.card == int(index)) (b.second.pooled ? pooled : classic)++;
  for (auto& p : w.pinned) {
    if (p.second.context->card != int(index)) continue;
    (p.second.ours ? pinned : registered) += p.second.size;
    (p.second.ours ? pinned_n : registered_n)++;
  }
  std::string s = "{";
  field(s, "used", used_of(c));
  field(s, "peak", c.peak);
  field(s, "classic", c.classic);
  field(s, "classic_blocks", classic);
  field(s, "pool_used", c.pool->used);
  field(s, "pool_reserved", c.pool->reserved);
  field(s, "pool_blocks", pooled);
  field(s, "pinned", pinned);
  field(s, "pinned_blocks", pinned_n);
  field(s, "registered", registered);
  field(s, "registrations", registered_n);
  field(s, "streams", streams);
  field(s, "events", events);
  field(s, "modules", modules);
  field(s, "context", c.context ? c.context->references : 0);
  field(s, "bytes_in", c.in);
  field(s, "bytes_out", c.out);
  field(s, "busy_ns", c.busy);
  return s + "}";
}

}  // namespace

void be_configured() { std::call_once(first, configure_first); }

}  // namespace emu

using namespace emu;

// emu_configure makes everything anew, as if the process had just begun, and
// answers 0, or -1 with what is wrong in error.
EMU_API int emu_configure(const char* json, char* error, size_t room) {
  Config c;
  std::string bad = parse_config(json && *json ? json : "{}", &c);
  std::call_once(first, [] {});
  if (bad.empty()) bad = configure(c);
  if (bad.empty()) return 0;
  if (error && room) snprintf(error, room, "%s", bad.c_str());
  return -1;
}

// emu_fault makes the n-th call of that name from now fail with code (n ≥ 1; ""
// is any call that can fail). "copy", "kernel" and "kernel:NAME" are not calls
// but what streams do; those fail later and always for good.
EMU_API void emu_fault(const char* call, uint64_t n, int code, int sticky) {
  World& w = world();
  Lock l(w.faults_m);
  std::string name = call ? call : "";
  size_t at = name.size();
  if (at > 3 && name[at - 3] == '_' && name[at - 2] == 'v') name.resize(at - 3);
  w.faults.push_back({name, n ? n : 1, code, sticky != 0});
}

// emu_clear forgets the faults and corruptions that have not come yet, and
// answers how many there were.
EMU_API int emu_clear() {
  World& w = world();
  Lock l(w.faults_m);
  int n = int(w.faults.size() + w.corruptions.size());
  w.faults.clear();
  w.corruptions.clear();
  return n;
}

EMU_API uint64_t emu_calls() {
  World& w = world();
  Lock l(w.faults_m);
  return w.calls;
}

EMU_API void emu_corrupt(const char* kernel, uint64_t n) {
  World& w = world();
  Lock l(w.faults_m);
  w.corruptions.push_back({kernel ? kernel : "", n ? n : 1});
}

// emu_stats writes JSON, and answers how long it is; ask again with more room
// when that is not below n.
EMU_API size_t emu_stats(char* out, size_t n) {
  be_configured();
  World& w = world();
  std::string s = "{";
  {
    Lock l(w.m);
    s += "\"cards\":[";
    for (size_t i = 0; i < w.cards.size(); i++) s += (i ? "," : "") + card_stats(w, i);
    s += "]";
    field(s, "pinned_peak", w.pinned_peak);
  }
  Lock l(w.faults_m);
  field(s, "calls", w.calls);
  field(s, "pageable", w.pageable);
  field(s, "early", w.early);
  field(s, "corrupted", w.corrupted);
  field(s, "faults", w.faults.size() + w.corruptions.size());
  counts(s, "by_call", w.call_counts);
  counts(s, "kernels", w.launches);
  s += "}";
  if (out && n) snprintf(out, n, "%s", s.c_str());
  return s.size();
}

// emu_kernels writes the names of the kernels compiled in, a line each.
EMU_API size_t emu_kernels(char* out, size_t n) {
  std::vector<std::string> all;
  for (const emu_export* e = exports(); e; e = e->next) all.push_back(e->name);
  std::sort(all.begin(), all.end());
  std::string s;
  for (auto& name : all) s += name + "\n";
  if (out && n) snprintf(out, n, "%s", s.c_str());
  return s.size();
}
