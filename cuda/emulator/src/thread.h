// The emulator's own threads, and how they hear of faults.
#pragma once
#include <functional>
#include <thread>

namespace emu {
// spawn makes a thread that gets none of the process's signals.
std::thread spawn(std::function<void()> f);
}  // namespace emu
