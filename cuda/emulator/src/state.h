// What the emulated driver holds: cards, contexts and what was made in them.
//
// One lock, world().m, guards all of it but the queues of streams and the state
// of events, which have their own. It is never held while something waits.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "arena.h"
#include "block.h"
#include "codes.h"
#include "config.h"

namespace emu {

using Result = int;
using Lock = std::unique_lock<std::mutex>;
using Clock = std::chrono::steady_clock;

struct Context;
struct Stream;

// Object is what a handle stands for. Handles are numbers that are never given
// twice, so that one whose object is gone is known.
struct Object {
  enum Kind { IsContext = 1, IsStream, IsEvent, IsModule, IsFunction, IsPool };
  const Kind kind;
  uint64_t handle = 0;
  explicit Object(Kind k) : kind(k) {}
  virtual ~Object() {}
};

struct Op {
  std::function<void(bool dead)> run;  // dead: the context is; do only what must be done
  Clock::time_point queued;
};

struct Stream : Object {
  Context* context;
  int card;
  unsigned flags;
  int priority;
  bool null = false;
  std::mutex m;
  std::condition_variable changed;
  std::deque<Op> queue;
  uint64_t queued = 0, done = 0, wanted = 0;
  bool closing = false, gone = false;
  std::thread worker;
  Stream(Context* c, unsigned flags, int priority);
};

struct Event : Object {
  Context* context;
  unsigned flags;
  std::mutex m;
  std::condition_variable changed;
  uint64_t recorded = 0, done = 0;
  Clock::time_point at;
  std::weak_ptr<Stream> stream;  // of the last record
  uint64_t ticket = 0;           // there
  Event(Context* c, unsigned flags) : Object(IsEvent), context(c), flags(flags) {}
};

struct Function : Object {
  Context* context;
  const emu_export* kernel;
  unsigned shared = 0, most_threads = 1024, dynamic = 48 << 10;
  Function(Context* c, const emu_export* k) : Object(IsFunction), context(c), kernel(k) {}
};

struct Entry {  // of a module
  std::string name;
  unsigned shared = 0, most_threads = 0;
};

struct Module : Object {
  Context* context;
  std::map<std::string, Entry> entries;
  std::map<std::string, std::shared_ptr<Function>> functions;
  explicit Module(Context* c) : Object(IsModule), context(c) {}
};

// Block is device memory.
struct Block {
  Mapping map;
  uint64_t size = 0, counted = 0;
  int card = 0;
  Context* context = nullptr;
  bool pooled = false;
  bool freed = false;  // told to be, though work queued before may use it yet
};

// Pinned is page-locked host memory.
struct Pinned {
  uint64_t size = 0;
  bool ours = false;  // allocated, not registered
  uint64_t pages = 0;  // bytes, of what is ours
  Context* context = nullptr;
  std::shared_ptr<std::atomic<int>> copies;  // queued
};

struct Pool : Object {
  int card;
  uint64_t reserved = 0;
  uint64_t used = 0, promised = 0;  // promised: less what is freed when its stream gets there
  uint64_t reserved_high = 0, used_high = 0, threshold = 0;
  int reuse[3] = {1, 1, 1};
  explicit Pool(int c) : Object(IsPool), card(c) {}
};

struct Card {
  CardConfig config;
  unsigned char uuid[16];
  std::shared_ptr<Context> context;
  std::shared_ptr<Pool> pool;
  uint64_t classic = 0, contexts = 0, peak = 0, foreign = 0;  // foreign: of other processes, as last seen
  std::atomic<uint64_t> busy{0}, in{0}, out{0};  // nanoseconds of kernels, bytes copied
  std::atomic<int> running{0};
  std::atomic<int> dead{0};  // with no_revival: what ended a context of it first
};

struct Context : Object {
  int card;
  unsigned references = 0;
  std::atomic<int> poison{0};
  bool destroyed = false;
  std::vector<std::shared_ptr<Stream>> streams;  // with those that close
  std::shared_ptr<Stream> null;
  explicit Context(int c) : Object(IsContext), card(c) {}
};

struct Fault {
  std::string call;
  uint64_t n;
  int code;
  bool sticky;
};

struct Corruption {
  std::string kernel;
  uint64_t n;
};

struct World {
  std::mutex m;
  Config config;
  bool ready = false;  // cuInit was called
  std::vector<std::unique_ptr<Card>> cards;
  std::unordered_map<uint64_t, std::shared_ptr<Object>> objects;
  std::map<uintptr_t, Block> blocks;
  std::map<uintptr_t, Pinned> pinned;
  uint64_t next_handle = 1;
  uint64_t pinned_bytes = 0, pinned_peak = 0;

  std::mutex faults_m;
  std::vector<Fault> faults;
  std::vector<Corruption> corruptions;
  std::map<std::string, uint64_t> call_counts, launches;
  uint64_t calls = 0, corrupted = 0, pageable = 0, early = 0;
};

World& world();
void be_configured();  // as a process that has said nothing is, if it has not

// Memory of a card, with world().m held. take answers 0 or 2.
uint64_t used_of(Card& c);
Result take(Card& c, int index, uint64_t bytes, uint64_t* counter);
void give(Card& c, int index, uint64_t bytes, uint64_t* counter);
// Part of share.cc: what other processes use of card index; adjust changes ours
// if the sum stays within limit.
bool share_open(const std::string& path, std::string* error);
void share_close();
uint64_t share_others(int index);
bool share_adjust(int index, uint64_t before, uint64_t after, uint64_t limit);
std::vector<std::pair<int, uint64_t>> share_processes(int index);

// Objects, with world().m held.
uint64_t add(std::shared_ptr<Object> o);
template <class T> std::shared_ptr<T> find(uint64_t handle, Object::Kind kind) {
  auto& w = world();
  auto it = w.objects.find(handle);
  if (it == w.objects.end() || it->second->kind != kind) return nullptr;
  return std::static_pointer_cast<T>(it->second);
}

// poison ends a context: the first code stays.
void poison(Context& c, Result code, const char* why);
// dissolve takes apart all that a context holds. world().m is held and given up
// in between.
void dissolve(std::shared_ptr<Context> c, Lock& lock);

// Streams. enqueue takes world().m held, and answers the ticket of the op.
std::shared_ptr<Stream> open_stream(const std::shared_ptr<Context>& c, unsigned flags, int priority);
uint64_t enqueue(const std::shared_ptr<Stream>& s, std::function<void(bool)> run);
void wait_for(Stream& s, uint64_t ticket);  // no lock held
bool reached(Stream& s, uint64_t ticket);   // and says that somebody wants it
void close_stream(const std::shared_ptr<Stream>& s);
void join_stream(const std::shared_ptr<Stream>& s);  // no lock held
void run_now(Stream& s);                             // what is queued, on this thread: for Eager

// Kernels.
struct Launch {
  const emu_export* kernel;
  std::vector<unsigned char> bytes;
  std::vector<void*> params;
  uint3 grid, block;
  u32 shared;
  std::vector<uintptr_t> written;  // the blocks that its arguments point to, to be written
};
Trouble run_grid(const Launch& l);
void set_pool(int threads);  // how many run blocks; they start when there is work
void stop_pool();

// Faults. struck answers the code of a fault that is due, or 0. Calls are
// counted if they are told to be.
Result struck(const char* call, bool counted, bool* sticky);
bool corruption_due(const std::string& kernel);
bool named_like(const std::string& asked, const std::string& kernel);

void install_handler();

}  // namespace emu
