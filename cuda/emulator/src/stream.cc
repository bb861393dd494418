// Streams: a queue and a thread each, so that what was queued happens later.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>

#include <algorithm>

#include "state.h"
#include "thread.h"

namespace emu {

Stream::Stream(Context* c, unsigned flags, int priority)
    : Object(IsStream), context(c), card(c->card), flags(flags), priority(priority) {}

static void do_op(Stream& s, Op& op) {
  op.run(s.context->poison != 0);
  op.run = nullptr;  // before anybody is told, so that what it held is let go
}

static void work(std::shared_ptr<Stream> s) {
  const bool late = world().config.mode == Late;
  Lock l(s->m);
  for (;;) {
    s->changed.wait(l, [&] { return !s->queue.empty() || s->closing; });
    if (s->queue.empty()) break;
    if (late) {  // until somebody wants it, or hardly anybody ever will
      auto until = s->queue.front().queued + std::chrono::milliseconds(20);
      s->changed.wait_until(l, until, [&] { return s->wanted > s->done || s->closing; });
    }
    Op op = std::move(s->queue.front());
    s->queue.pop_front();
    l.unlock();
    do_op(*s, op);
    l.lock();
    s->done++;
    s->changed.notify_all();
  }
  s->gone = true;
  s->changed.notify_all();
}

std::shared_ptr<Stream> open_stream(const std::shared_ptr<Context>& c, unsigned flags, int priority) {
  auto s = std::make_shared<Stream>(c.get(), flags, priority);
  auto& all = c->streams;  // those that have closed are let go now
  for (auto it = all.begin(); it != all.end();) {
    Lock l((*it)->m);
    bool gone = (*it)->gone;
    l.unlock();
    if (gone) {
      if ((*it)->worker.joinable()) (*it)->worker.join();
      it = all.erase(it);
    } else {
      ++it;
    }
  }
  all.push_back(s);
  if (world().config.mode != Eager) s->worker = spawn([s] { work(s); });
  return s;
}

static uint64_t push(Stream& s, std::function<void(bool)> run) {
  Lock l(s.m);
  s.queue.push_back({std::move(run), Clock::now()});
  s.changed.notify_all();
  return ++s.queued;
}

// after makes what comes next in s wait for all that is in other.
static void after(Stream& s, const std::shared_ptr<Stream>& other) {
  uint64_t ticket;
  {
    Lock l(other->m);
    if (other->done == other->queued) return;
    ticket = other->queued;
  }
  push(s, [other, ticket](bool) { wait_for(*other, ticket); });
}

uint64_t enqueue(const std::shared_ptr<Stream>& s, std::function<void(bool)> run) {
  Context& c = *s->context;
  constexpr unsigned NonBlocking = 1;
  if (s->null) {  // the default stream and the others wait for each other
    for (auto& o : c.streams)
      if (o != s && !(o->flags & NonBlocking)) after(*s, o);
  } else if (c.null && !(s->flags & NonBlocking)) {
    after(*s, c.null);
  }
  return push(*s, std::move(run));
}

void wait_for(Stream& s, uint64_t ticket) {
  if (world().config.mode == Eager) run_now(s);
  Lock l(s.m);
  s.wanted = std::max(s.wanted, ticket);
  s.changed.notify_all();
  s.changed.wait(l, [&] { return s.done >= ticket; });
}

bool reached(Stream& s, uint64_t ticket) {
  Lock l(s.m);
  s.wanted = std::max(s.wanted, ticket);
  s.changed.notify_all();
  return s.done >= ticket;
}

void run_now(Stream& s) {
  Lock l(s.m);
  while (!s.queue.empty()) {
    Op op = std::move(s.queue.front());
    s.queue.pop_front();
    l.unlock();
    do_op(s, op);
    l.lock();
    s.done++;
    s.changed.notify_all();
  }
}

void close_stream(const std::shared_ptr<Stream>& s) {
  Lock l(s->m);
  s->closing = true;
  s->changed.notify_all();
}

void join_stream(const std::shared_ptr<Stream>& s) {
  if (s->worker.joinable()) s->worker.join();
  run_now(*s);
}

namespace {
// The stack on which the thread hears of a fault: its own may be at its end.
struct SignalStack {
  void* at = nullptr;
  static constexpr size_t Bytes = 64 << 10;
  SignalStack() {
    at = mmap(nullptr, Bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return;
    stack_t s = {};
    s.ss_sp = at;
    s.ss_size = Bytes;
    sigaltstack(&s, nullptr);
  }
  ~SignalStack() {
    if (at == MAP_FAILED) return;
    stack_t s = {};
    s.ss_flags = SS_DISABLE;
    sigaltstack(&s, nullptr);
    munmap(at, Bytes);
  }
};

struct sigaction old_actions[65];

void on_fault(int sig, siginfo_t* info, void* context) {
  if (guards_now()) {
    pthread_sigmask(SIG_SETMASK, &static_cast<ucontext_t*>(context)->uc_sigmask, nullptr);
    caught(info->si_addr, sig);
  }
  // Not ours: Go's, say.
  struct sigaction& old = old_actions[sig];
  if (old.sa_flags & SA_SIGINFO) return old.sa_sigaction(sig, info, context);
  if (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN) return old.sa_handler(sig);
  signal(sig, SIG_DFL);  // the instruction runs again, and ends the process
}
}  // namespace

std::thread spawn(std::function<void()> f) {
  // The process's signals are for its own threads. Faults come here all the same.
  sigset_t all, old;
  sigfillset(&all);
  for (int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigdelset(&all, s);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  std::thread t([f = std::move(f)] {
    SignalStack stack;
    f();
  });
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  return t;
}

void install_handler() {
  static bool done = false;
  if (done) return;
  done = true;
  for (int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) {
    struct sigaction a = {};
    a.sa_sigaction = on_fault;
    a.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigfillset(&a.sa_mask);
    sigaction(s, &a, &old_actions[s]);
  }
}

}  // namespace emu
