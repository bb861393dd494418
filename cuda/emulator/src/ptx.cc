#include "ptx.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

namespace emu {
namespace {

bool in_name(char c) { return isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%'; }

// directive finds the next " .name " from p on, outside of comments to the end of a line.
const char* directive(const char* p, const char* name) {
  size_t n = strlen(name);
  while ((p = strstr(p, name)) != nullptr) {
    const char* line = p;
    while (line[-1] != '\n' && line[-1] != 0) line--;
    const char* comment = strstr(line, "//");
    if ((!comment || comment > p) && isspace(static_cast<unsigned char>(p[n]))) return p + n;
    p += n;
  }
  return nullptr;
}

std::string name_at(const char* p) {
  while (isspace(static_cast<unsigned char>(*p))) p++;
  const char* q = p;
  while (in_name(*q)) q++;
  return std::string(p, size_t(q - p));
}

unsigned width(const char* type) {  // ".b8" and so on
  for (const char* p = type; *p && !isspace(static_cast<unsigned char>(*p)); p++)
    if (isdigit(static_cast<unsigned char>(*p))) return unsigned(atoi(p)) / 8;
  return 1;
}

// shared_bytes adds up the variables in shared memory that are declared in s.
unsigned shared_bytes(const std::string& s) {
  unsigned sum = 0;
  for (const char* p = s.c_str(); (p = strstr(p, ".shared")) != nullptr;) {
    p += 7;
    if (!isspace(static_cast<unsigned char>(*p))) continue;  // an instruction: ld.shared.u32
    const char* end = strchr(p, ';');
    if (!end) break;
    std::string d(p, size_t(end - p));
    unsigned align = 1, bytes = 0;
    size_t a = d.find(".align");
    if (a != std::string::npos) align = unsigned(atoi(d.c_str() + a + 6));
    for (size_t t = 0; (t = d.find('.', t)) != std::string::npos; t++)
      if (strchr("bus", d[t + 1]) && isdigit(static_cast<unsigned char>(d[t + 2]))) {
        bytes = width(d.c_str() + t + 1);
        break;
      }
    size_t b = d.find('[');
    if (b != std::string::npos) bytes *= unsigned(strtoul(d.c_str() + b + 1, nullptr, 10));
    if (align > 1) sum = (sum + align - 1) / align * align;
    sum += bytes;
    p = end;
  }
  return sum;
}

}  // namespace

std::string parse_ptx(const char* original, Ptx* out) {
  std::string copy = std::string(1, '\0') + original;  // so that a line's begin is found
  const char* text = copy.c_str() + 1;
  const char* v = directive(text, ".version");
  if (!v) return "no .version directive";
  int major = 0, minor = 0;
  char* end;
  major = int(strtol(v, &end, 10));
  if (*end == '.') minor = int(strtol(end + 1, nullptr, 10));
  out->version = 10 * major + minor;
  const char* t = directive(text, ".target");
  if (!t) return "no .target directive";
  std::string target = name_at(t);
  if (target.compare(0, 3, "sm_") != 0) return "a .target that is no sm_";
  out->target = atoi(target.c_str() + 3);
  if (out->version == 0 || out->target == 0) return "a .version or .target without a number";
  for (const char* p = text; (p = directive(p, ".entry")) != nullptr;) {
    Entry e;
    e.name = name_at(p);
    if (e.name.empty()) return "an .entry without a name";
    const char* open = strchr(p, '{');
    const char* next = directive(p, ".entry");
    if (!open || (next && next < open)) return "an .entry without a body: " + e.name;
    const char* body_end = next ? next : copy.c_str() + copy.size();
    e.shared = shared_bytes(std::string(open, size_t(body_end - open)));
    const char* most = directive(p, ".maxntid");
    if (most && most < open) {
      e.most_threads = 1;
      for (char* q = const_cast<char*>(most);; q++) {
        e.most_threads *= unsigned(strtoul(q, &q, 10));
        while (isspace(static_cast<unsigned char>(*q)) && *q != '\n') q++;
        if (*q != ',') break;
      }
    }
    out->entries.push_back(e);
  }
  return "";
}

}  // namespace emu
