// Streams and events.
#include "api.h"

namespace emu {

static Result make_stream(const std::shared_ptr<Context>& c, void** out, unsigned flags, int priority) {
  if (!out || flags > 1) return ERROR_INVALID_VALUE;
  auto s = open_stream(c, flags, priority);
  *out = as_handle<void>(add(s));
  return SUCCESS;
}

static std::shared_ptr<Event> event_of(const std::shared_ptr<Context>& c, void* handle) {
  auto e = find<Event>(id(handle), Object::IsEvent);
  return e && e->context == c.get() ? e : nullptr;
}

constexpr unsigned NoTiming = 2;

// want says that the event's last record is wanted, and whether it is done.
static bool want(Event& e, uint64_t* version) {
  Lock k(e.m);
  *version = e.recorded;
  bool done = e.done >= e.recorded;
  auto s = e.stream.lock();
  uint64_t ticket = e.ticket;
  k.unlock();
  if (!done && s) reached(*s, ticket);
  return done;
}

static void wait_event(Event& e, uint64_t version) {
  Lock k(e.m);
  auto s = e.stream.lock();
  uint64_t ticket = e.ticket;
  k.unlock();
  if (s) {
    reached(*s, ticket);
    if (world().config.mode == Eager) run_now(*s);
  }
  k.lock();
  e.changed.wait(k, [&] { return e.done >= version; });
}

static Result elapsed(const std::shared_ptr<Context>& c, float* ms, void* start, void* end) {
  auto a = event_of(c, start), b = event_of(c, end);
  if (!ms) return ERROR_INVALID_VALUE;
  if (!a || !b || (a->flags & NoTiming) || (b->flags & NoTiming) || !a->recorded || !b->recorded)
    return ERROR_INVALID_HANDLE;
  uint64_t v;
  bool ready = want(*a, &v);
  ready = want(*b, &v) && ready;
  if (!ready) return ERROR_NOT_READY;
  Lock k(a->m), k2(b->m, std::defer_lock);
  if (a != b) k2.lock();
  *ms = std::chrono::duration<float, std::milli>(b->at - a->at).count();
  return SUCCESS;
}

}  // namespace emu

using namespace emu;

EMU_API Result cuStreamCreate(void** out, unsigned flags) {
  return call("cuStreamCreate", Current, [&](auto& c, Lock&) -> Result { return make_stream(c, out, flags, 0); });
}

EMU_API Result cuStreamCreateWithPriority(void** out, unsigned flags, int priority) {
  return call("cuStreamCreateWithPriority", Current,
              [&](auto& c, Lock&) -> Result { return make_stream(c, out, flags, priority); });
}

EMU_API Result cuStreamDestroy_v2(void* stream) {
  return call("cuStreamDestroy", Current | Ends, [&](auto& c, Lock&) -> Result {
    auto s = find<Stream>(id(stream), Object::IsStream);
    if (!s || s->context != c.get()) return ERROR_INVALID_HANDLE;
    world().objects.erase(id(stream));
    close_stream(s);  // what is queued is still done
    return SUCCESS;
  });
}

EMU_API Result cuStreamSynchronize(void* stream) {
  return call("cuStreamSynchronize", Current, [&](auto& c, Lock& l) -> Result {
    auto s = stream_of(c, stream);
    if (!s) return ERROR_INVALID_HANDLE;
    if (s->null) {
      wait_context(c, l);
    } else {
      uint64_t ticket;
      {
        Lock k(s->m);
        ticket = s->queued;
      }
      l.unlock();
      wait_for(*s, ticket);
      l.lock();
    }
    if (c->poison) return c->poison;
    host_waited(*c);
    return SUCCESS;
  });
}

EMU_API Result cuStreamQuery(void* stream) {
  return call("cuStreamQuery", Current, [&](auto& c, Lock&) -> Result {
    auto s = stream_of(c, stream);
    if (!s) return ERROR_INVALID_HANDLE;
    uint64_t ticket;
    {
      Lock k(s->m);
      ticket = s->queued;
    }
    return reached(*s, ticket) ? Result(c->poison) : ERROR_NOT_READY;
  });
}

EMU_API Result cuStreamWaitEvent(void* stream, void* event, unsigned) {
  return call("cuStreamWaitEvent", Current, [&](auto& c, Lock&) -> Result {
    auto s = stream_of(c, stream);
    auto e = find<Event>(id(event), Object::IsEvent);  // of any context
    if (!s || !e) return ERROR_INVALID_HANDLE;
    uint64_t version;
    {
      Lock k(e->m);
      version = e->recorded;
      if (e->done >= version) return SUCCESS;
    }
    queue(s, [e, version](bool) { wait_event(*e, version); });
    return SUCCESS;
  });
}

EMU_API Result cuEventCreate(void** out, unsigned flags) {
  return call("cuEventCreate", Current, [&](auto& c, Lock&) -> Result {
    if (!out || flags > 7) return ERROR_INVALID_VALUE;
    *out = as_handle<void>(add(std::make_shared<Event>(c.get(), flags)));
    return SUCCESS;
  });
}

EMU_API Result cuEventDestroy_v2(void* event) {
  return call("cuEventDestroy", Current | Ends, [&](auto& c, Lock&) -> Result {
    if (!event_of(c, event)) return ERROR_INVALID_HANDLE;
    world().objects.erase(id(event));
    return SUCCESS;
  });
}

EMU_API Result cuEventRecord(void* event, void* stream) {
  return call("cuEventRecord", Current, [&](auto& c, Lock&) -> Result {
    auto e = event_of(c, event);
    auto s = stream_of(c, stream);
    if (!e || !s) return ERROR_INVALID_HANDLE;
    uint64_t version;
    {
      Lock k(e->m);
      version = ++e->recorded;
    }
    uint64_t ticket = queue(s, [e, version](bool) {
      Lock k(e->m);
      if (version > e->done) e->done = version;
      e->at = Clock::now();
      e->changed.notify_all();
    });
    Lock k(e->m);
    e->stream = s;
    e->ticket = ticket;
    return SUCCESS;
  });
}

EMU_API Result cuEventQuery(void* event) {
  return call("cuEventQuery", Current, [&](auto& c, Lock&) -> Result {
    auto e = event_of(c, event);
    if (!e) return ERROR_INVALID_HANDLE;
    uint64_t version;
    if (!want(*e, &version)) return ERROR_NOT_READY;
    return c->poison;
  });
}

EMU_API Result cuEventSynchronize(void* event) {
  return call("cuEventSynchronize", Current, [&](auto& c, Lock& l) -> Result {
    auto e = event_of(c, event);
    if (!e) return ERROR_INVALID_HANDLE;
    uint64_t version;
    want(*e, &version);
    l.unlock();
    wait_event(*e, version);
    l.lock();
    if (c->poison) return c->poison;
    host_waited(*c);
    return SUCCESS;
  });
}

EMU_API Result cuEventElapsedTime(float* ms, void* start, void* end) {
  return call("cuEventElapsedTime", Current, [&](auto& c, Lock&) -> Result { return elapsed(c, ms, start, end); });
}

EMU_API Result cuEventElapsedTime_v2(float* ms, void* start, void* end) {
  return call("cuEventElapsedTime", Current, [&](auto& c, Lock&) -> Result { return elapsed(c, ms, start, end); });
}
