// A program over the emulator's calls for the address sanitizer: it is linked
// with the runtime and probe.cu. It says "fine" at its end.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

extern "C" {
int emu_configure(const char*, char*, size_t);
void emu_fault(const char*, uint64_t, int, int);
void emu_corrupt(const char*, uint64_t);
size_t emu_stats(char*, size_t);
size_t emu_kernels(char*, size_t);
int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(void**, int);
int cuDevicePrimaryCtxRelease_v2(int);
int cuDevicePrimaryCtxReset_v2(int);
int cuCtxSetCurrent(void*);
int cuCtxSynchronize();
int cuMemAlloc_v2(uint64_t*, size_t);
int cuMemFree_v2(uint64_t);
int cuMemAllocAsync(uint64_t*, size_t, void*);
int cuMemFreeAsync(uint64_t, void*);
int cuMemHostAlloc(void**, size_t, unsigned);
int cuMemFreeHost(void*);
int cuMemHostRegister_v2(void*, size_t, unsigned);
int cuMemHostUnregister(void*);
int cuMemcpyHtoDAsync_v2(uint64_t, const void*, size_t, void*);
int cuMemcpyDtoHAsync_v2(void*, uint64_t, size_t, void*);
int cuMemcpyHtoD_v2(uint64_t, const void*, size_t);
int cuMemcpyDtoH_v2(void*, uint64_t, size_t);
int cuMemsetD32Async(uint64_t, unsigned, size_t, void*);
int cuStreamCreate(void**, unsigned);
int cuStreamDestroy_v2(void*);
int cuStreamSynchronize(void*);
int cuStreamWaitEvent(void*, void*, unsigned);
int cuEventCreate(void**, unsigned);
int cuEventDestroy_v2(void*);
int cuEventRecord(void*, void*);
int cuEventSynchronize(void*);
int cuEventElapsedTime(float*, void*, void*);
int cuModuleLoadDataEx(void**, const void*, unsigned, int*, void**);
int cuModuleUnload(void*);
int cuModuleGetFunction(void**, void*, const char*);
int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
}

#define MUST(x)                                                       \
  do {                                                                \
    int code_ = (x);                                                  \
    if (code_) {                                                      \
      fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #x, code_); \
      _exit(1);                                                        \
    }                                                                 \
  } while (0)
#define WANT(code, x)                                                 \
  do {                                                                \
    int code_ = (x);                                                  \
    if (code_ != (code)) {                                            \
      fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #x, code_); \
      _exit(1);                                                        \
    }                                                                 \
  } while (0)
#define CHECK(x)                                               \
  do {                                                         \
    if (!(x)) {                                                \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x);  \
      _exit(1);                                                 \
    }                                                          \
  } while (0)

static std::string ptx() {
  std::vector<char> names(1 << 16);
  emu_kernels(names.data(), names.size());
  std::string s = ".version 7.8\n.target sm_80\n";
  for (char* n = strtok(names.data(), "\n"); n; n = strtok(nullptr, "\n"))
    s += std::string(".visible .entry ") + n + "(\n)\n{\n\tret;\n}\n";
  return s;
}

struct Made {
  void *context, *stream, *module;
};

static Made make() {
  Made m;
  MUST(cuDevicePrimaryCtxRetain(&m.context, 0));
  MUST(cuCtxSetCurrent(m.context));
  MUST(cuStreamCreate(&m.stream, 1));
  char log[100];
  int keys[] = {5, 6};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  MUST(cuModuleLoadDataEx(&m.module, ptx().c_str(), 2, keys, values));
  WANT(218, cuModuleLoadDataEx(&m.context, "no", 2, keys, values));
  MUST(cuDevicePrimaryCtxRetain(&m.context, 0));
  MUST(cuDevicePrimaryCtxRelease_v2(0));
  return m;
}

static int launch(const Made& m, const char* name, unsigned grid, unsigned block, unsigned shared,
                  std::vector<uint64_t> args) {
  void* f;
  MUST(cuModuleGetFunction(&f, m.module, (std::string(name) + "_bls12381").c_str()));
  std::vector<void*> p;
  for (auto& a : args) p.push_back(&a);
  p.push_back(nullptr);
  return cuLaunchKernel(f, grid, 1, 1, block, 1, 1, shared, m.stream, p.data(), nullptr);
}

static void some_work(const Made& m) {
  const unsigned n = 4096;
  void* host;
  uint64_t in, out;
  MUST(cuMemHostAlloc(&host, 8 * n, 0));
  auto words = static_cast<uint32_t*>(host);
  for (unsigned i = 0; i < n; i++) words[i] = 3 * i;
  MUST(cuMemAlloc_v2(&in, 4 * n));
  MUST(cuMemAllocAsync(&out, 8 * 4 * n, m.stream));
  void *begin, *end, *other;
  MUST(cuEventCreate(&begin, 0));
  MUST(cuEventCreate(&end, 0));
  MUST(cuStreamCreate(&other, 1));
  MUST(cuEventRecord(begin, other));
  MUST(cuMemcpyHtoDAsync_v2(in, host, 4 * n, other));
  MUST(cuEventRecord(end, other));
  MUST(cuStreamWaitEvent(m.stream, end, 0));
  MUST(launch(m, "probe_double", n / 128, 128, 0, {in, out, n}));
  MUST(cuMemcpyDtoHAsync_v2(words + n, out, 4 * n, m.stream));
  MUST(cuStreamSynchronize(m.stream));
  for (unsigned i = 0; i < n; i++) CHECK(words[n + i] == 6 * i);
  MUST(launch(m, "probe_sum", n / 256, 256, 0, {in, out, n}));
  MUST(launch(m, "probe_reverse", 4, 1024, 4096, {in}));
  MUST(launch(m, "probe_divergent", 1, 100, 0, {out}));
  MUST(launch(m, "probe_warp", 1, 96, 0, {in, out}));
  MUST(launch(m, "probe_leave", 1, 70, 0, {out}));
  MUST(launch(m, "probe_copy", 1, 32, 0, {in, out, 0}));
  MUST(cuMemsetD32Async(out, 0, n, m.stream));
  MUST(launch(m, "probe_chain", 200, 32, 0, {out, in}));
  float ms;
  MUST(cuEventSynchronize(end));
  MUST(cuEventElapsedTime(&ms, begin, end));
  MUST(cuStreamSynchronize(m.stream));
  uint32_t pageable[16];
  MUST(cuMemcpyDtoH_v2(pageable, in, sizeof pageable));
  CHECK(pageable[15] == 16);
  MUST(cuMemcpyHtoD_v2(in, pageable, sizeof pageable));
  auto heap = static_cast<char*>(malloc(10000));
  MUST(cuMemHostRegister_v2(heap, 10000, 0));
  WANT(712, cuMemHostRegister_v2(heap + 1, 1, 0));
  MUST(cuMemcpyHtoDAsync_v2(in, heap, 10000, m.stream));
  MUST(cuStreamSynchronize(m.stream));
  MUST(cuMemHostUnregister(heap));
  free(heap);
  emu_corrupt("probe_double", 1);
  MUST(launch(m, "probe_double", n / 128, 128, 0, {in, out, n}));
  MUST(cuStreamDestroy_v2(other));
  MUST(cuEventDestroy_v2(begin));
  MUST(cuEventDestroy_v2(end));
  MUST(cuMemFreeAsync(out, m.stream));
  MUST(cuMemFree_v2(in));
  MUST(cuStreamSynchronize(m.stream));
  MUST(cuMemFreeHost(host));
}

static void run(const char* config) {
  char error[200];
  MUST(emu_configure(config, error, sizeof error));
  MUST(cuInit(0));
  Made m = make();
  some_work(m);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; i++)
    threads.emplace_back([m] {
      Made mine = m;
      void* c;
      MUST(cuDevicePrimaryCtxRetain(&c, 0));
      MUST(cuCtxSetCurrent(c));
      MUST(cuStreamCreate(&mine.stream, 1));
      some_work(mine);
      MUST(cuStreamDestroy_v2(mine.stream));
      MUST(cuDevicePrimaryCtxRelease_v2(0));
    });
  for (auto& t : threads) t.join();

  for (const char* bad : {"probe_hang", "probe_write", "probe_deep", "kernel"}) {
    uint64_t p;
    MUST(cuMemAlloc_v2(&p, 4096));
    MUST(cuMemsetD32Async(p, 1, 1024, m.stream));
    int code = 0;
    if (!strcmp(bad, "probe_hang")) code = launch(m, bad, 3, 64, 0, {p});
    if (!strcmp(bad, "probe_write")) code = launch(m, bad, 3, 1, 0, {p + 4096, 1});
    if (!strcmp(bad, "probe_deep")) code = launch(m, bad, 3, 1, 0, {p, 1000000});
    if (!strcmp(bad, "kernel")) {
      emu_fault("kernel", 1, 719, 1);
      code = launch(m, "probe_divergent", 1, 100, 0, {p});
    }
    if (!code) code = cuCtxSynchronize();
    CHECK(code != 0);
    WANT(code, cuMemFree_v2(p));
    MUST(cuDevicePrimaryCtxReset_v2(0));
    m = make();
    some_work(m);
  }
  MUST(cuModuleUnload(m.module));
  MUST(cuStreamDestroy_v2(m.stream));
  std::vector<char> stats(1 << 16);
  CHECK(emu_stats(stats.data(), stats.size()) < stats.size());
  CHECK(strstr(stats.data(), "\"classic\":0,\"classic_blocks\":0,\"pool_used\":0"));
  MUST(cuDevicePrimaryCtxRelease_v2(0));
}

int main(int argc, char** argv) {
  run("{\"threads\":3}");
  run("{\"threads\":2,\"mode\":\"late\",\"order\":5}");
  run("{\"mode\":\"eager\",\"order\":1}");
  std::string share = argc > 1 ? std::string(",\"share\":\"") + argv[1] + "\"" : "";
  run(("{\"cards\":[{\"total\":1048576},{}],\"release\":true" + share + "}").c_str());
  MUST(emu_configure("{}", nullptr, 0));
  puts("fine");
}
