// What the text of a PTX module says about its entry points.
#pragma once
#include <string>
#include <vector>

#include "state.h"

namespace emu {

struct Ptx {
  int version = 0;  // 78 is 7.8
  int target = 0;   // 80 is sm_80
  std::vector<Entry> entries;
};

// parse_ptx answers what is wrong with the text, or nothing.
std::string parse_ptx(const char* text, Ptx* out);

}  // namespace emu
