// The calls, compiled together: their headers cost more than they do.
#include "api_copy.cc"
#include "api_device.cc"
#include "api_memory.cc"
#include "api_misc.cc"
#include "api_module.cc"
#include "api_stream.cc"
#include "nvml.cc"
