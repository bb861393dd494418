// Sums in G1.
#include "msm.cuh"

namespace CURVE_NS {

GROUP_KERNELS(g1, fp, 128, 4, 128, 3, 8)

}  // namespace CURVE_NS
