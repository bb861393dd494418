#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <functional>

namespace emu {
namespace {

// Reader reads JSON as it goes; what it calls for a field reads the value.
struct Reader {
  const char* p;
  std::string bad;

  void space() {
    while (isspace(static_cast<unsigned char>(*p))) p++;
  }
  bool fail(const std::string& what) {
    if (bad.empty()) bad = what + " at \"" + std::string(p, strnlen(p, 20)) + "\"";
    return false;
  }
  bool eat(char c) {
    space();
    if (*p != c) return false;
    p++;
    return true;
  }
  bool word(const char* w) {
    space();
    size_t n = strlen(w);
    if (strncmp(p, w, n) != 0) return false;
    p += n;
    return true;
  }
  bool text(std::string* out) {
    if (!eat('"')) return fail("a string is missing");
    out->clear();
    while (*p && *p != '"') {
      if (*p == '\\') {
        p++;
        switch (*p) {
          case 'n': *out += '\n'; break;
          case 't': *out += '\t'; break;
          case 'u': {
            unsigned v = 0;
            if (sscanf(p + 1, "%4x", &v) != 1 || v > 0x7f) return fail("an escape that is not ASCII");
            *out += char(v);
            p += 4;
            break;
          }
          case 0: return fail("an unfinished string");
          default: *out += *p;
        }
        p++;
      } else {
        *out += *p++;
      }
    }
    return eat('"') || fail("an unfinished string");
  }
  bool boolean(bool* out) {
    if (word("true")) return *out = true;
    if (word("false")) return !(*out = false);
    return fail("true or false is missing");
  }
  template <class T> bool number(T* out) {
    space();
    char* end;
    double v = strtod(p, &end);
    if (end == p) return fail("a number is missing");
    bool whole = true;
    for (const char* q = p; q < end; q++) whole = whole && isdigit(static_cast<unsigned char>(*q));
    *out = whole ? T(strtoull(p, nullptr, 10)) : T(v);
    p = end;
    return true;
  }
  bool object(const std::function<bool(const std::string&)>& field) {
    if (!eat('{')) return fail("an object is missing");
    if (eat('}')) return true;
    do {
      std::string k;
      if (!text(&k) || !(eat(':') || fail("a colon is missing"))) return false;
      if (word("null")) continue;
      if (!field(k)) return fail("field " + k);
    } while (eat(','));
    return eat('}') || fail("an unfinished object");
  }
  bool array(const std::function<bool()>& each) {
    if (!eat('[')) return fail("an array is missing");
    if (eat(']')) return true;
    do
      if (!each()) return false;
    while (eat(','));
    return eat(']') || fail("an unfinished array");
  }
};

bool read_card(Reader& r, CardConfig* c) {
  return r.object([&](const std::string& k) {
    if (k == "name") return r.text(&c->name);
    if (k == "total") return r.number(&c->total);
    if (k == "others") return r.number(&c->others);
    if (k == "context") return r.number(&c->context);
    if (k == "sms") return r.number(&c->sms);
    if (k == "major") return r.number(&c->major);
    if (k == "minor") return r.number(&c->minor);
    if (k == "shared") return r.number(&c->shared);
    if (k == "l2") return r.number(&c->l2);
    if (k == "launch") return r.number(&c->launch);
    return r.fail("unknown field " + k);
  });
}

}  // namespace

std::string parse_config(const char* json, Config* out) {
  Reader r{json, {}};
  bool ok = r.object([&](const std::string& k) {
    if (k == "cards") {
      out->cards.clear();
      return r.array([&] {
        out->cards.emplace_back();
        return read_card(r, &out->cards.back());
      });
    }
    if (k == "none") return r.boolean(&out->none);
    if (k == "threads") return r.number(&out->threads);
    if (k == "driver") return r.number(&out->driver);
    if (k == "driver_text") return r.text(&out->driver_text);
    if (k == "share") return r.text(&out->share);
    if (k == "order") return r.number(&out->order);
    if (k == "granule") return r.number(&out->granule);
    if (k == "pinned") return r.number(&out->pinned);
    if (k == "poison") return r.boolean(&out->poison);
    if (k == "release") return r.boolean(&out->release);
    if (k == "no_revival") return r.boolean(&out->no_revival);
    if (k == "mode") {
      std::string m;
      if (!r.text(&m)) return false;
      if (m == "async") out->mode = Async;
      else if (m == "late") out->mode = Late;
      else if (m == "eager") out->mode = Eager;
      else return r.fail("mode is async, late or eager");
      return true;
    }
    return r.fail("unknown field " + k);
  });
  if (ok && out->cards.size() > 16) return "more than 16 cards";
  if (ok && out->granule == 0) return "a granule of 0";
  if (ok && out->cards.empty()) out->none = true;
  if (ok) {
    for (const auto& c : out->cards)
      if (c.shared > 255 << 10) return "shared memory above 255 KiB";
    return "";
  }
  return r.bad.empty() ? "no configuration" : r.bad;
}

std::string quote(const std::string& s) {
  std::string out = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 32) {
      char b[8];
      snprintf(b, sizeof b, "\\u%04x", c);
      out += b;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace emu
