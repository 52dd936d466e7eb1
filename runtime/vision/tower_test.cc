// Self-test of a device that runs a vision tower: a few made-up patches, several times, against the
// CPU. Not in libraries without devices.
#include <cstring>

#include "kernels/contract/check.h"
#include "platform/base/arith.h"
#include "platform/base/hash.h"
#include "runtime/memory/run_once.h"
#include "runtime/vision/tower_runner.h"

namespace arn {
namespace {

constexpr uint32_t kTestTokens = 16, kTestSide = 4, kTestRepeats = 3;

}  // namespace

// Runs on the fallback, or on a backend that is loaded for this run alone.
Status TowerRunner::ExpectRows(const RunArgs& args, float* expected, Diag* diag) {
  const auto keep = [&](const Program& program, const Memory& memory) {
    for (uint32_t i = 0; i < n_results(); ++i) {
      const uint64_t n = ResultFloats(i, args);
      std::memcpy(expected, memory.As<float>(program.values[i].slice), n * sizeof(float));
      expected += n;
    }
  };
  if (plan_.fallback != nullptr) {
    ARN_TRY(plan_.fallback->run(fallback_, args, diag));
    keep(plan_.program, memory_);
    return Status::kOk;
  }
  return RunOnce(plan_.self_test, plan_.program, plan_.options.n_threads,
                 PooledRows(plan_.program, args), args, keep, diag);
}

Status TowerRunner::TestRows(const RunArgs& args, float* expected, Diag* diag) {
  ARN_TRY(ExpectRows(args, expected, diag));
  uint64_t first = 0;
  const char* device = plan_.backend->device->name(planned_);
  for (uint32_t repeat = 0; repeat < kTestRepeats; ++repeat) {
    ARN_TRY(RunPlanned(args, diag));
    const float* of_value = expected;
    uint64_t hash = 0;
    for (uint32_t i = 0; i < n_results(); ++i) {
      const uint64_t n = ResultFloats(i, args);
      ARN_TRY(CompareResults({device, "value", "a tower's rows", "CPU's"}, of_value, Rows(i),
                             static_cast<uint32_t>(n), diag));
      hash ^= Xxh64(Rows(i), n * sizeof(float));
      of_value += n;
    }
    if (repeat == 0) first = hash;
    if (first == hash) continue;
    return diag->Fail(Status::kDevice, "%s gives different results for the same input", device);
  }
  return Status::kOk;
}

Status TowerRunner::TestDevice(const VisionSpec& vision, Diag* diag) {
  const uint32_t merged = vision.merged_patches();
  const uint32_t tokens = Min(kTestTokens, plan_.program.max_pooled_rows), n = tokens * merged;
  const auto pattern = [](uint32_t i) { return static_cast<float>(i * 2654435761u >> 16); };
  auto* rows = memory_.As<float>(plan_.rows);
  for (uint32_t i = 0; i < n * vision.patch_row_floats(); ++i) rows[i] = pattern(i) / 32768.0f - 1;
  auto* sequence = memory_.As<SequenceRows>(plan_.sequence);
  *sequence = {0, n, 0, nullptr};
  RunArgs args;
  args.is_encoder = true;
  args.features = {rows, size_t{n} * vision.patch_row_floats()};
  args.sequences = {sequence, 1};
  args.logit_rows = LogitRows::kNone;
  if (plan_.axis_positions.bytes != 0) {
    auto* by_axis = memory_.As<uint32_t>(plan_.axis_positions);
    for (uint32_t i = 0; i < n; ++i) {
      const uint32_t token = i / merged;
      by_axis[i * kRopeAxes] = 0;
      by_axis[i * kRopeAxes + 1] = token / kTestSide;
      by_axis[i * kRopeAxes + 2] = token % kTestSide;
    }
    args.axis_positions = {by_axis, size_t{n} * kRopeAxes};
  }
  if (vision.window_side != 0 && tokens > 1) {
    auto* windows = memory_.As<SequenceRows>(plan_.windows);
    const uint32_t half = tokens / 2 * merged;
    windows[0] = {0, half, 0, nullptr};
    windows[1] = {half, n - half, 0, nullptr};
    args.parts = {windows, 2};
  }
  uint64_t floats = 0;
  for (uint32_t i = 0; i < n_results(); ++i) floats += ResultFloats(i, args);
  const Result<Span<std::byte>> pages = ReservePages(floats * sizeof(float));
  if (!pages.ok()) return diag->Fail(pages.status(), "not enough memory for the device self-test");
  const Status status = TestRows(args, reinterpret_cast<float*>(pages.value().data()), diag);
  ReleasePages(pages.value());
  return status;
}

}  // namespace arn
