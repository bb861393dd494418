// Memory of a card is what all processes use of it together: a small file,
// mapped by each, says so. A process holds a lock on its row as long as it
// lives, so that the row of one that was killed is known to be free.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "state.h"

namespace emu {
namespace {

constexpr int Rows = 64, Cards = 16;

struct Row {
  int64_t pid;
  uint64_t bytes[Cards];
};

struct Share {
  int fd = -1;
  Row* rows = nullptr;
  int mine = -1;
} share;

#ifdef F_OFD_SETLK
bool lock_row(int fd, int row) {
  struct flock l = {};
  l.l_type = F_WRLCK;
  l.l_whence = SEEK_SET;
  l.l_start = off_t(sizeof(Row)) * Rows + row;
  l.l_len = 1;
  return fcntl(fd, F_OFD_SETLK, &l) == 0;
}
bool alive(int fd, int row) {
  struct flock l = {};
  l.l_type = F_WRLCK;
  l.l_whence = SEEK_SET;
  l.l_start = off_t(sizeof(Row)) * Rows + row;
  l.l_len = 1;
  return fcntl(fd, F_OFD_GETLK, &l) != 0 || l.l_type != F_UNLCK;
}
#else
bool lock_row(int, int row) { return share.rows[row].pid == 0 || kill(pid_t(share.rows[row].pid), 0) != 0; }
bool alive(int, int row) { return share.rows[row].pid != 0 && kill(pid_t(share.rows[row].pid), 0) == 0; }
#endif

struct Hold {
  Hold() {
    while (flock(share.fd, LOCK_EX) != 0 && errno == EINTR) {}
  }
  ~Hold() { flock(share.fd, LOCK_UN); }
};

uint64_t others(int card) {
  uint64_t sum = 0;
  for (int i = 0; i < Rows; i++) {
    if (i == share.mine || share.rows[i].pid == 0) continue;
    if (!alive(share.fd, i)) {
      memset(&share.rows[i], 0, sizeof(Row));
      continue;
    }
    sum += share.rows[i].bytes[card];
  }
  return sum;
}

}  // namespace

bool share_open(const std::string& path, std::string* error) {
  share.fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (share.fd < 0) {
    *error = "share: " + path + ": " + strerror(errno);
    return false;
  }
  Hold h;
  struct stat st;
  if (fstat(share.fd, &st) != 0 || (size_t(st.st_size) < sizeof(Row) * Rows && ftruncate(share.fd, sizeof(Row) * Rows) != 0)) {
    *error = "share: " + path + ": " + strerror(errno);
    return false;
  }
  void* p = mmap(nullptr, sizeof(Row) * Rows, PROT_READ | PROT_WRITE, MAP_SHARED, share.fd, 0);
  if (p == MAP_FAILED) {
    *error = "share: " + path + ": " + strerror(errno);
    return false;
  }
  share.rows = static_cast<Row*>(p);
  for (int i = 0; i < Rows; i++)
    if (lock_row(share.fd, i)) {
      share.mine = i;
      memset(&share.rows[i], 0, sizeof(Row));
      share.rows[i].pid = getpid();
      return true;
    }
  *error = "share: " + path + ": too many processes";
  return false;
}

void share_close() {
  if (share.rows) {
    if (share.mine >= 0) memset(&share.rows[share.mine], 0, sizeof(Row));
    munmap(share.rows, sizeof(Row) * Rows);
  }
  if (share.fd >= 0) close(share.fd);
  share = Share{};
}

uint64_t share_others(int card) {
  if (share.mine < 0) return 0;
  Hold h;
  return others(card);
}

bool share_adjust(int card, uint64_t before, uint64_t after, uint64_t limit) {
  if (share.mine < 0) return after <= limit;
  Hold h;
  if (after > before && after + others(card) > limit) return false;
  share.rows[share.mine].bytes[card] = after;
  return true;
}

std::vector<std::pair<int, uint64_t>> share_processes(int card) {
  std::vector<std::pair<int, uint64_t>> out;
  if (share.mine < 0) return out;
  Hold h;
  others(card);
  for (int i = 0; i < Rows; i++)
    if (i != share.mine && share.rows[i].bytes[card]) out.push_back({int(share.rows[i].pid), share.rows[i].bytes[card]});
  return out;
}

}  // namespace emu
