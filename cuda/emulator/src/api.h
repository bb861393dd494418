// What every call of the driver's interface does first and last.
#pragma once
#include "state.h"

#define EMU_API extern "C" __attribute__((visibility("default")))

namespace emu {

enum Needs : unsigned {
  Nothing = 0,
  Ready = 1,         // cuInit
  Current = 3,       // and a context on this thread
  Ends = 4,          // it ends something: when told to fail it has done so all the same, as
                     // the driver's own calls do when they pass on what failed before
  Free = 8,          // not counted: a question that cannot fail
};

extern __thread uint64_t current_context EMU_TLS;
// Body is what a call does, with its context (null if it needs none) and
// world().m held.
struct Body {
  void* f;
  Result (*go)(void* f, std::shared_ptr<Context>& c, Lock& l);
};
Result call_body(const char* name, unsigned needs, Body body);
template <class F> Result call(const char* name, unsigned needs, F f) {
  return call_body(name, needs, {&f, [](void* p, std::shared_ptr<Context>& c, Lock& l) -> Result {
                                   return (*static_cast<F*>(p))(c, l);
                                 }});
}

// Of an argument that is a handle.
inline uint64_t id(const void* p) { return reinterpret_cast<uint64_t>(p); }
template <class T> T* as_handle(uint64_t h) { return reinterpret_cast<T*>(h); }

// The stream of that handle (0: the default one) in c, or null.
std::shared_ptr<Stream> stream_of(const std::shared_ptr<Context>& c, void* handle);
// queue is enqueue for calls.
uint64_t queue(const std::shared_ptr<Stream>& s, std::function<void(bool)> run);
// wait_context waits for all that is queued in c. l is given up in between.
void wait_context(const std::shared_ptr<Context>& c, Lock& l);
// host_waited is what the pool does when the host has waited.
void host_waited(Context& c);

// The block that holds n bytes at p, not freed, of c; or null.
Block* block_at(Context& c, uint64_t p, uint64_t n);
// The pinned memory that holds n bytes at p, or null.
Pinned* pinned_at(const void* p, uint64_t n);

}  // namespace emu
