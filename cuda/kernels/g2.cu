// Sums in G2: four times the bytes of G1, so fewer threads an SM.
#include "msm.cuh"

namespace CURVE_NS {

#if CURVE == 381
GROUP_KERNELS(g2, fp2, 64, 4, 64, 3, 4)
#else
GROUP_KERNELS(g2, fp2, 64, 6, 64, 4, 6)
#endif

}  // namespace CURVE_NS
