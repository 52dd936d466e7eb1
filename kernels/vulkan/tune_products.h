// Which variants of products (product_variants.h) are fast: measured over the program's heaviest
// shapes when a session is created, as far as a budget of time goes; what it does not reach is left
// to later sessions.
#pragma once

#include <cstdint>

#include "kernels/vulkan/lower.h"

namespace arn::vulkan {

// What is known of the products of one shape in one kind of run. Goes to a file as it is.
struct TunedProduct {
  uint32_t mode = 0, dtype = 0;
  uint32_t rows = 0, cols = 0;  // of the weights
  uint32_t n_tried = 0;         // variants, from the first on
  uint32_t best = 0;
  uint64_t best_ns = 0;
};

static_assert(sizeof(TunedProduct) == 32);

// The newest come first; the oldest fall out when there are more.
struct TuningRecord {
  static constexpr uint32_t kMost = 64;
  uint32_t n = 0;
  TunedProduct products[kMost];

  // Takes what a file holds, if it makes sense; else there is nothing.
  void Read(Span<const std::byte> bytes);
  Span<const std::byte> Bytes() const {
    return {reinterpret_cast<const std::byte*>(products), n * sizeof(TunedProduct)};
  }
};

// Runs dispatches on a device, or says that it did.
class ProductMeter {
 public:
  // How long they take one after the other, each with so many rows of a run. kUnsupported: the
  // device's compiler does not take them.
  virtual Status Measure(Span<const Dispatch> dispatches, uint32_t rows, uint64_t* ns,
                         Diag* diag) = 0;
  virtual uint64_t NowNs() = 0;

 protected:
  ~ProductMeter() = default;
};

inline constexpr uint64_t kTuningBudgetNs = 200'000'000;
// What is measured at once: so many dispatches of a shape, as far as this many multiplications go.
inline constexpr uint32_t kMostTimed = 8;
inline constexpr uint64_t kMostTimedWork = uint64_t{1} << 28;
inline constexpr uint32_t kManyTimedRows = 128;

// Where choices come from. kFixed: nothing is remembered, and nothing was measured.
enum class Tuning : uint8_t { kFixed, kRemembered, kMeasured, kUnfinished };
const char* TuningName(Tuning tuning);

// Sets traits->choices from the record, and measures what it does not say yet. weights, workspace:
// as of Lowering. *tuning: kRemembered when there was nothing to measure, kUnfinished when the
// budget has ended before all was. Fails when the device does.
Status TuneProducts(const Program& program, Span<const DeviceWeight> weights,
                    const Workspace& workspace, ProductMeter* meter, TuningRecord* record,
                    Traits* traits, Tuning* tuning, Diag* diag);

// "int8 gemv-4 gemv-4 gemm-64x64, int4 ...; measured": of each type of weights that the program
// multiplies by, the variants of one row, few and many.
void DescribeProducts(const Program& program, const Traits& traits, Tuning tuning, char* out,
                      size_t bytes);

}  // namespace arn::vulkan
