// The one kernel of the emulator that this package's tests build.
#include "rt.cuh"

namespace CURVE_NS {

KERNEL(touch)(u32* p) { *p += 1; }
EXPORT(touch)

}  // namespace CURVE_NS
