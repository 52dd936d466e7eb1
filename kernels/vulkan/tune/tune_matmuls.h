// Auto-tunes the matmul variants (matmul_variants.h): measures them on the program's heaviest
// shapes when a session is created, within a time budget. Later sessions measure the rest.
#pragma once

#include <cstdint>

#include "kernels/vulkan/lower/lower.h"

namespace arn::vulkan {

// Result for one matmul shape in one mode. Written to a file as is.
struct TunedMatmul {
  uint32_t mode = 0, dtype = 0;
  uint32_t rows = 0, cols = 0;  // of the weights
  uint32_t n_tried = 0;         // variants, from the first on
  uint32_t best = 0;
  uint64_t best_ns = 0;
};

static_assert(sizeof(TunedMatmul) == 32);

// Newest first; when full, the oldest are dropped.
struct TuningRecord {
  static constexpr uint32_t kMost = 64;
  uint32_t n = 0;
  TunedMatmul matmuls[kMost];

  // Reads a file's content; leaves the record empty if it is invalid.
  void Read(Span<const std::byte> bytes);
  Span<const std::byte> Bytes() const {
    return {reinterpret_cast<const std::byte*>(matmuls), n * sizeof(TunedMatmul)};
  }
};

// Interface that runs and times dispatches; tests replace it.
class MatmulMeter {
 public:
  // Measures the total time of the dispatches, run one after the other on `rows` rows each. Returns
  // kUnsupported if the device's compiler rejects them.
  virtual Status Measure(Span<const Dispatch> dispatches, uint32_t rows, uint64_t* ns,
                         Diag* diag) = 0;
  virtual uint64_t NowNs() = 0;

 protected:
  ~MatmulMeter() = default;
};

inline constexpr uint64_t kTuningBudgetNs = 200'000'000;
// Limits of one measurement: dispatches of a shape, up to this many multiplications.
inline constexpr uint32_t kMostTimed = 8;
inline constexpr uint64_t kMostTimedWork = uint64_t{1} << 28;

// Origin of the choices. kFixed: defaults, nothing remembered or measured.
enum class Tuning : uint8_t { kFixed, kRemembered, kMeasured, kUnfinished };
const char* TuningName(Tuning tuning);

// Sets traits->choices from the record, and measures missing entries. weights, workspace: as for
// Lowering. *tuning: kRemembered if nothing had to be measured, kUnfinished if the budget ended
// first.
// Returns an error if the device fails.
Status TuneMatmuls(const Program& program, Span<const DeviceWeight> weights,
                   const Workspace& workspace, MatmulMeter* meter, TuningRecord* record,
                   Traits* traits, Tuning* tuning, Diag* diag);

// Writes e.g. "int8 gemv-4 gemv-4 gemm-64x64, int4 ...; measured": for each weight type in the
// program, the variants for one row, few and many rows.
void DescribeMatmuls(const Program& program, const Traits& traits, Tuning tuning, char* out,
                     size_t bytes);

}  // namespace arn::vulkan
