// A stand-in for libcuda and NVML that is just large enough to test the binding:
// every call keeps the books, and any call can be made to fail. Work happens at
// once. Addresses are given out lowest first, so that they come back after a
// reset. The only kernel is add.
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <pthread.h>
#include <unistd.h>

typedef int R;
typedef uintptr_t H;

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static int version = 12040, cards = 1, major = 8;
static char fault_name[64];
static int fault_n, fault_code, fault_always;
static int late;    // calls that give something back do so and then fail
static int pending; // what this one fails with
static long calls;

#define SLOT (1 << 16)
#define SLOTS 1024
static char arena[SLOTS * SLOT] __attribute__((aligned(SLOT)));
static int slot_of[SLOTS]; // number of slots of an allocation that begins here, negated inside it
static long memory, streams, events, modules, registered, contexts;
static uintptr_t reg[256];
static H handles; // never the same twice
static char is[1 << 20]; // what a handle is of: 's', 'e', 'm'
static int retained, sticky;
static int ended; // the sticky error survives a reset
static __thread H current;

static R enter(const char *name, int context) {
  pthread_mutex_lock(&mu);
  calls++;
  int code = 0;
  if (fault_code && (!fault_name[0] || !strcmp(fault_name, name))) {
    if (fault_always || --fault_n == 0) {
      code = fault_code;
      if (!fault_always) fault_code = 0;
    }
  }
  if (late && code && code < 700 && (strstr(name, "Free") || strstr(name, "Destroy") || strstr(name, "Unload") || strstr(name, "Unregister") || strstr(name, "Release"))) {
    pending = code;
    code = 0;
  }
  if (code >= 700 && code < 720 && code != 701 && code != 705 && code != 712) sticky = code;
  if (!code && context && sticky) code = sticky;
  if (!code && context > 1 && !current) code = 201;
  if (code) { pending = 0; pthread_mutex_unlock(&mu); }
  return code;
}
#define ENTER(context) { R r_ = enter(__func__, context); if (r_) return r_; }
#define LEAVE(code) do { R l_ = code; if (!l_) l_ = pending; pending = 0; pthread_mutex_unlock(&mu); return l_; } while (0)

// --- control
void standin_setup(int v, int n, int m) {
  pthread_mutex_lock(&mu);
  late = pending = 0; version = v; cards = n; major = m; fault_code = 0; sticky = 0; calls = 0; ended = 0;
  pthread_mutex_unlock(&mu);
}
void standin_fault(const char *name, int n, int code) {
  pthread_mutex_lock(&mu);
  snprintf(fault_name, sizeof fault_name, "%s", name);
  fault_n = n; fault_code = code; fault_always = n == 0;
  pthread_mutex_unlock(&mu);
}
void standin_late(int v) { late = v; }
void standin_ended(int v) { ended = v; }
long standin_calls(void) { return calls; }
// What is alive, as one line.
void standin_live(char *out, int n) {
  pthread_mutex_lock(&mu);
  snprintf(out, n, "contexts %ld memory %ld streams %ld events %ld modules %ld registered %ld",
    contexts, memory, streams, events, modules, registered);
  pthread_mutex_unlock(&mu);
}

// --- driver
static R make(H *h, char kind) { *h = ++handles % sizeof is; is[*h] = kind; return 0; }
static int end(H h, char kind) { if (h >= sizeof is || is[h] != kind) return 0; is[h] = 0; return 1; }
R cuInit(unsigned f) { ENTER(0); LEAVE(cards ? 0 : 100); }
R cuDriverGetVersion(int *v) { ENTER(0); *v = version; LEAVE(0); }
R cuGetErrorName(R c, const char **s) {
  switch (c) {
  case 1: *s = "CUDA_ERROR_INVALID_VALUE"; return 0;
  case 2: *s = "CUDA_ERROR_OUT_OF_MEMORY"; return 0;
  case 100: *s = "CUDA_ERROR_NO_DEVICE"; return 0;
  case 218: *s = "CUDA_ERROR_INVALID_PTX"; return 0;
  case 700: *s = "CUDA_ERROR_ILLEGAL_ADDRESS"; return 0;
  case 712: *s = "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"; return 0;
  case 999: *s = "CUDA_ERROR_UNKNOWN"; return 0;
  }
  *s = 0; return 1;
}
R cuGetErrorString(R c, const char **s) {
  if (c == 0 || c > 999) { *s = 0; return 1; }
  *s = c == 2 ? "out of memory" : c == 700 ? "an illegal memory access was encountered" : "as the stand-in was told";
  return 0;
}
R cuDeviceGetCount(int *n) { ENTER(0); *n = cards; LEAVE(0); }
R cuDeviceGet(int *d, int i) { ENTER(0); *d = i; LEAVE(i < cards ? 0 : 101); }
R cuDeviceGetName(char *s, int n, int d) { ENTER(0); snprintf(s, n, "Stand-in %d", d); LEAVE(0); }
R cuDeviceGetUuid_v2(unsigned char *u, int d) { ENTER(0); for (int i = 0; i < 16; i++) u[i] = i + 16 * d; LEAVE(0); }
R cuDeviceGetAttribute(int *v, int a, int d) {
  ENTER(0);
  *v = a == 16 ? 4 : a == 38 ? 1 << 20 : a == 75 ? major : a == 76 ? 6 : a == 97 ? 99 << 10 : 0;
  LEAVE(0);
}
R cuDeviceTotalMem_v2(size_t *n, int d) { ENTER(0); *n = sizeof arena; LEAVE(0); }
R cuDeviceGetPCIBusId(char *s, int n, int d) { ENTER(0); snprintf(s, n, "0000:3B:%02d.0", d); LEAVE(0); }
static void destroy(void) {
  memset(slot_of, 0, sizeof slot_of);
  memset(reg, 0, sizeof reg);
  memset(is, 0, sizeof is);
  memory = streams = events = modules = registered = contexts = 0;
  if (!ended) sticky = 0;
}
R cuDevicePrimaryCtxSetFlags_v2(int d, unsigned f) { ENTER(0); LEAVE(0); }
R cuDevicePrimaryCtxRetain(H *c, int d) { ENTER(0); retained++; contexts = 1; *c = 0x1000; LEAVE(0); }
R cuDevicePrimaryCtxRelease_v2(int d) { ENTER(0); if (retained > 0 && --retained == 0) destroy(); LEAVE(0); }
R cuDevicePrimaryCtxGetState(int d, unsigned *flags, int *active) { ENTER(0); *flags = 0; *active = contexts; LEAVE(0); }
R cuDevicePrimaryCtxReset_v2(int d) { ENTER(0); destroy(); contexts = retained > 0; LEAVE(0); }
R cuCtxSetCurrent(H c) { ENTER(0); current = c; LEAVE(0); }
R cuCtxSynchronize(void) { ENTER(2); LEAVE(0); }
R cuCtxGetStreamPriorityRange(int *l, int *g) { ENTER(2); *l = 0; *g = -5; LEAVE(0); }
R cuMemGetInfo_v2(size_t *f, size_t *t) {
  ENTER(2);
  int used = 0;
  for (int i = 0; i < SLOTS; i++) used += slot_of[i] != 0;
  *t = sizeof arena; *f = (size_t)(SLOTS - used) * SLOT;
  LEAVE(0);
}
static H take(size_t n) {
  int want = (n + SLOT - 1) / SLOT, run = 0;
  for (int i = 0; i < SLOTS; i++) {
    run = slot_of[i] ? 0 : run + 1;
    if (run == want) {
      int at = i - want + 1;
      for (int j = at; j <= i; j++) slot_of[j] = -1;
      slot_of[at] = want;
      return (H)(arena + (size_t)at * SLOT);
    }
  }
  return 0;
}
static int give(H p) {
  size_t at = (p - (H)arena) / SLOT;
  if (p < (H)arena || at >= SLOTS || slot_of[at] <= 0) return 0;
  int n = slot_of[at];
  for (int j = 0; j < n; j++) slot_of[at + j] = 0;
  return n;
}
R cuMemAlloc_v2(H *p, size_t n) { ENTER(2); if (!n) LEAVE(1); *p = take(n); if (!*p) LEAVE(2); memory++; LEAVE(0); }
R cuMemFree_v2(H p) { ENTER(2); if (!give(p)) LEAVE(1); memory--; LEAVE(0); }
R cuMemAllocAsync(H *p, size_t n, H s) { ENTER(2); if (!n) LEAVE(1); *p = take(n); if (!*p) LEAVE(2); memory++; LEAVE(0); }
R cuMemFreeAsync(H p, H s) { ENTER(2); if (!give(p)) LEAVE(1); memory--; LEAVE(0); }
R cuDeviceGetDefaultMemPool(H *p, int d) { ENTER(0); *p = 0x2000; LEAVE(0); }
R cuMemPoolTrimTo(H p, size_t n) { ENTER(2); LEAVE(0); }
R cuMemPoolGetAttribute(H p, int a, uint64_t *v) { ENTER(2); *v = a == 5 ? 2 * SLOT : a == 7 ? SLOT : 0; LEAVE(0); }
R cuMemPoolSetAttribute(H p, int a, uint64_t *v) { ENTER(2); LEAVE((a == 4 && *v == ~0ull) || (a == 3 && *(int *)v == 0) ? 0 : 1); }
R cuMemHostRegister_v2(void *p, size_t n, unsigned f) {
  ENTER(2);
  for (int i = 0; i < 256; i++) if (reg[i] == (H)p) LEAVE(712);
  for (int i = 0; i < 256; i++) if (!reg[i]) { reg[i] = (H)p; registered++; LEAVE(0); }
  LEAVE(2);
}
R cuMemHostUnregister(void *p) {
  ENTER(2);
  for (int i = 0; i < 256; i++) if (reg[i] == (H)p) { reg[i] = 0; registered--; LEAVE(0); }
  LEAVE(713);
}
R cuMemcpyHtoDAsync_v2(H d, const void *s, size_t n, H st) { ENTER(2); memcpy((void *)d, s, n); LEAVE(0); }
R cuMemcpyDtoHAsync_v2(void *d, H s, size_t n, H st) { ENTER(2); memcpy(d, (void *)s, n); LEAVE(0); }
R cuMemcpyDtoDAsync_v2(H d, H s, size_t n, H st) { ENTER(2); memmove((void *)d, (void *)s, n); LEAVE(0); }
R cuMemsetD8Async(H d, unsigned char v, size_t n, H st) { ENTER(2); memset((void *)d, v, n); LEAVE(0); }
R cuStreamCreateWithPriority(H *s, unsigned f, int p) { ENTER(2); if (f != 1) LEAVE(1); streams++; LEAVE(make(s, 's')); }
R cuStreamDestroy_v2(H s) { ENTER(2); if (!end(s, 's')) LEAVE(400); streams--; LEAVE(0); }
R cuStreamSynchronize(H s) { ENTER(2); LEAVE(0); }
R cuStreamWaitEvent(H s, H e, unsigned f) { ENTER(2); LEAVE(0); }
R cuEventCreate(H *e, unsigned f) { ENTER(2); if (!(f & 1)) LEAVE(1); events++; LEAVE(make(e, 'e')); }
R cuEventDestroy_v2(H e) { ENTER(2); if (!end(e, 'e')) LEAVE(400); events--; LEAVE(0); }
R cuEventRecord(H e, H s) { ENTER(2); LEAVE(0); }
R cuEventQuery(H e) { ENTER(2); LEAVE(0); }
R cuEventSynchronize(H e) { ENTER(2); LEAVE(0); }
R cuEventElapsedTime(float *ms, H a, H b) { ENTER(2); *ms = 1.5f; LEAVE(0); }
R cuModuleLoadDataEx(H *m, const char *image, unsigned n, int *options, void **values) {
  ENTER(2);
  if (!strstr(image, ".entry add")) {
    for (unsigned i = 0; i < n; i++)
      if (options[i] == 5) snprintf(values[i], 64, "line 1; no kernel add\n");
    LEAVE(218);
  }
  modules++;
  LEAVE(make(m, 'm'));
}
R cuModuleUnload(H m) { ENTER(2); if (!end(m, 'm')) LEAVE(400); modules--; LEAVE(0); }
R cuModuleGetFunction(H *f, H m, const char *name) { ENTER(2); if (strcmp(name, "add")) LEAVE(500); *f = 0x6000; LEAVE(0); }
R cuFuncSetAttribute(H f, int a, int v) { ENTER(2); LEAVE(a == 8 && v == (99 << 10) - 16 ? 0 : 1); }
R cuFuncGetAttribute(int *v, int a, H f) { ENTER(2); *v = a == 1 ? 16 : a == 4 ? 12 : 0; LEAVE(0); }
R cuLaunchKernel(H f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, H s, void **params, void **extra) {
  ENTER(2);
  if (f != 0x6000 || !gx || !gy || !gz || !bx || !by || !bz || bx > 1024 || extra) LEAVE(1);
  const uint32_t *a = *(const uint32_t **)params[0], *b = *(const uint32_t **)params[1];
  uint32_t *out = *(uint32_t **)params[2], n = *(uint32_t *)params[3];
  if ((char *)out < arena || (char *)out >= arena + sizeof arena) { sticky = 700; LEAVE(0); }
  uint64_t threads = (uint64_t)gx * bx;
  for (uint32_t i = 0; i < n && i < threads; i++) out[i] = a[i] + b[i];
  LEAVE(0);
}

// --- NVML
static int nvml_fault;
void standin_nvml(int code) { nvml_fault = code; }
#define NVML if (nvml_fault) return nvml_fault
const char *nvmlErrorString(R c) { return c == 3 ? "Not Supported" : "as the stand-in was told"; }
R nvmlInit_v2(void) { NVML; return 0; }
R nvmlShutdown(void) { return 0; }
R nvmlSystemGetDriverVersion(char *s, unsigned n) { NVML; snprintf(s, n, "580.00"); return 0; }
R nvmlDeviceGetHandleByUUID(const char *u, H *h) { NVML; *h = 7; return strcmp(u, "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f") ? 6 : 0; }
R nvmlDeviceGetName(H h, char *s, unsigned n) { NVML; snprintf(s, n, "Stand-in 0"); return 0; }
R nvmlDeviceGetUtilizationRates(H h, unsigned *u) { NVML; u[0] = 75; u[1] = 40; return 0; }
R nvmlDeviceGetMemoryInfo(H h, uint64_t *m) { NVML; m[0] = 1000; m[1] = 400; m[2] = 600; return 0; }
R nvmlDeviceGetComputeRunningProcesses_v3(H h, unsigned *n, char *list) {
  NVML;
  if (*n < 40) { *n = 40; return 7; }
  *n = 40;
  for (int i = 0; i < 40; i++) {
    uint32_t pid = i == 3 ? (uint32_t)getpid() : 1000000u + i;
    uint64_t used = i == 3 ? 500 : i == 5 ? 100 : 0;
    memcpy(list + 24 * i, &pid, 4);
    memcpy(list + 24 * i + 8, &used, 8);
  }
  return 0;
}
R nvmlDeviceGetPcieThroughput(H h, int counter, unsigned *v) { NVML; *v = counter ? 2048 : 1024; return 0; }
