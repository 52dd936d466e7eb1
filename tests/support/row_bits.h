// Which weights give a row the same bits alone and among others on this CPU (docs/architecture.md,
// "The same result").
#pragma once

#include "platform/base/dtype.h"
#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace arn::test {

inline bool RowsKeepTheirBits(DType weights) {
  // Kernels of this project.
  if (weights == DType::kF16 || weights == DType::kBf16 || weights > DType::kInt4) return true;
#if defined(__x86_64__)
  return true;
#elif defined(__aarch64__) && defined(__linux__)
  // XNNPACK's f32 kernel for one row sums in several parts; its int8 pair for CPUs with dot
  // products, but without i8mm, rounds once or twice at the end.
  if (weights == DType::kF32) return false;
  const bool has_dot = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
  const bool has_i8mm = (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
  return weights == DType::kInt4 || !has_dot || has_i8mm;
#else
  return false;  // XNNPACK's kernels were not compared
#endif
}

}  // namespace arn::test
