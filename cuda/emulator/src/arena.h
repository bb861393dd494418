// Device memory: pages of a range of addresses that nothing else in the process
// gets, with pages between them that no access survives. What is freed is gone
// at once, and its addresses come back late.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace emu {

// Mapping is one allocation: at its end a page that is not there.
struct Mapping {
  uintptr_t at = 0, first = 0, bytes = 0;  // the pages
};

// map_pages gives n bytes at an address of a multiple of 256; at is 0 when the
// machine has none. fill: what is in it is not zeros.
Mapping map_pages(size_t n, bool fill);
void unmap_pages(const Mapping& m);
// in_arena says whether an address could be a device's.
bool in_arena(uintptr_t p);

}  // namespace emu
