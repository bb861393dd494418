// What the driver's tests run on the emulator.
#include "rt.cuh"

namespace CURVE_NS {

// As the PTX of the tests on a card.
KERNEL(add)(const u32* a, const u32* b, u32* out, u32 n) {
  u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}
EXPORT(add)

}  // namespace CURVE_NS
