// What the emulator is told to be.
#pragma once
#include <stdint.h>

#include <string>
#include <vector>

namespace emu {

struct CardConfig {
  std::string name = "Snarkline emulated GPU";
  uint64_t total = 1ull << 30;    // bytes of memory
  uint64_t others = 0;            // bytes that programs outside the emulator have
  uint64_t context = 0;           // bytes that a context takes
  int sms = 4, major = 9, minor = 0;
  uint64_t shared = 232448;       // bytes of shared memory that a block may have, opted in
  uint64_t l2 = 50 << 20;
  uint64_t launch = 0;            // microseconds that each launch takes beyond its work, asleep
};

enum Mode { Async, Late, Eager };

struct Config {
  std::vector<CardConfig> cards{1};
  bool none = false;              // no card
  int threads = 0;                // that run blocks; 0: one a CPU
  int driver = 13000;
  std::string driver_text = "580.95.05";
  std::string share;              // a file that says what other processes use
  Mode mode = Async;
  uint32_t order = 0;             // how a block's threads start; see set_order
  uint64_t granule = 512;         // allocations are counted in these
  uint64_t pinned = 0;            // most bytes of pinned memory; 0: no limit
  bool poison = true;             // new device memory holds 0xa5, not zeros
  bool no_revival = false;        // after a sticky error a card has no context any more
  bool release = false;           // the pool gives back what passes its threshold when the host waits
};

// parse_config reads JSON; the error is empty if all is well.
std::string parse_config(const char* json, Config* out);

// quote writes s as JSON.
std::string quote(const std::string& s);

}  // namespace emu
