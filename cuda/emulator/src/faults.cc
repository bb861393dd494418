// Faults that tests ask for, and the counts of calls that they are asked by.
#include <string.h>

#include "state.h"

namespace emu {

// base is a call's name without its version.
static std::string base(const std::string& name) {
  size_t n = name.size();
  if (n > 3 && name[n - 3] == '_' && name[n - 2] == 'v') return name.substr(0, n - 3);
  return name;
}

Result struck(const char* call, bool counted, bool* sticky) {
  World& w = world();
  std::string name = base(call);
  Lock l(w.faults_m);
  w.call_counts[name]++;
  if (counted) w.calls++;
  Result code = SUCCESS;
  for (auto it = w.faults.begin(); it != w.faults.end();) {
    if (!(it->call == name || (counted && it->call.empty()))) {
      ++it;
      continue;
    }
    if (--it->n > 0) {
      ++it;
      continue;
    }
    code = it->code;
    *sticky = it->sticky;
    it = w.faults.erase(it);
  }
  return code;
}

bool named_like(const std::string& asked, const std::string& kernel) {
  return asked.empty() || asked == kernel || asked + "_bls12381" == kernel || asked + "_bn254" == kernel;
}

bool corruption_due(const std::string& kernel) {
  World& w = world();
  Lock l(w.faults_m);
  w.launches[kernel]++;
  for (auto it = w.corruptions.begin(); it != w.corruptions.end(); ++it) {
    if (!named_like(it->kernel, kernel) || --it->n > 0) continue;
    w.corruptions.erase(it);
    return true;
  }
  return false;
}

}  // namespace emu
