// CPU feature detection, shared by everything that chooses kernels.
#pragma once

#include <cstdint>

#include "platform/base/status.h"

namespace arn::cpu {

// Initialises cpuinfo, so that cpuinfo_has_...() of cpuinfo.h is valid; later calls return kOk at
// once. Thread-safe. On x86 it executes CPUID; on ARM it reads the process's auxiliary vector. On
// ARM it also determines the strongest core from /sys, by which XNNPACK chooses its f32 kernels,
// and falls back to the generic kernels if /sys has no such data.
// Returns kIo or kOutOfMemory if the process has no descriptor or memory left for the read; the
// next call tries again.
Status KnowCpu();

// Returns Highway's targets of this CPU, and makes its dynamic dispatch choose among them.
// Thread-safe. Detects them once: CPUID costs a virtual machine up to a millisecond.
int64_t ChooseTargets();

// True if this CPU has dot products of four bytes that Highway's targets leave out: VNNI beside
// AVX-512, or ARM's dotprod.
bool HasByteDots();

}  // namespace arn::cpu
