/* The part of cpuinfo that XNNPACK's tables use, without cpuinfo's own initialisation: that needs
 * /sys and /proc, prints if they are missing, allocates, and never retries after a failure. Its
 * decoders of CPUID, HWCAP and MIDR are used unchanged. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Decodes the features of this CPU, once per process; later calls do nothing. Before it,
 * cpuinfo_initialize() returns false. Cannot fail. Thread-safe. midr: MIDR of the ARM core for
 * which kernels are chosen; 0 if unknown and on other CPUs. */
void cpuinfo_know(uint32_t midr);

#ifdef __cplusplus
}
#endif
