// Self-test of a device that runs an embedder: a made-up text, several times, against the CPU. Not
// in libraries without devices.
#include <cstring>

#include "platform/base/arith.h"
#include "platform/base/hash.h"
#include "runtime/embedding/embedder.h"
#include "runtime/memory/run_once.h"
#include "runtime/model/self_test.h"

namespace arn {
namespace {

constexpr uint32_t kTestTokens = 24, kTestRepeats = 3;

}  // namespace

Status Embedder::ExpectRow(const RunArgs& args, float* expected, Diag* diag) const {
  const auto keep = [&](const Program& program, const Memory& memory) {
    const Value& result = program.values[ResultOf(program)];
    std::memcpy(expected, memory.As<float>(result.slice), result.width * sizeof(float));
  };
  return RunOnce(plan_.self_test, plan_.program, plan_.options.n_threads, 1, args, keep, diag);
}

Status Embedder::TestDevice(Diag* diag) {
  const uint32_t n = Min(kTestTokens, plan_.options.max_tokens);
  auto* tokens = memory_.As<int32_t>(plan_.tokens);
  for (uint32_t i = 0; i < n; ++i) {
    tokens[i] = static_cast<int32_t>((i * 2654435761u >> 8) % plan_.program.vocab);
  }
  auto* sequence = memory_.As<SequenceRows>(plan_.sequences);
  *sequence = {0, n, 0, nullptr};
  RunArgs args;
  args.is_encoder = true;
  args.tokens = {tokens, n};
  args.sequences = {sequence, 1};
  args.logit_rows = LogitRows::kNone;
  const uint32_t width = plan_.program.values[ResultOf(plan_.program)].width;
  const Result<Span<std::byte>> pages = ReservePages(width * sizeof(float));
  if (!pages.ok()) return diag->Fail(pages.status(), "not enough memory for the device self-test");
  auto* expected = reinterpret_cast<float*>(pages.value().data());
  Status status = ExpectRow(args, expected, diag);
  const char* device = plan_.backend->device->name(state_);
  uint64_t first = 0;
  for (uint32_t repeat = 0; status == Status::kOk && repeat < kTestRepeats; ++repeat) {
    const float* row = nullptr;
    status = Run(args, &row, diag);
    if (status != Status::kOk) break;
    status =
        CompareResults({device, "value", "a text's results", "CPU's"}, expected, row, width, diag);
    const uint64_t hash = Xxh64(row, width * sizeof(float));
    if (repeat == 0) first = hash;
    if (status != Status::kOk || first == hash) continue;
    status = diag->Fail(Status::kDevice, "%s gives different results for the same input", device);
  }
  ReleasePages(pages.value());
  if (status == Status::kOk) plan_.backend->device->trust(state_);
  return status;
}

}  // namespace arn
