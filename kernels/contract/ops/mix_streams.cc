#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

struct MixStreamsContract : OpDefaults<MixStreamsParams> {
  static void Operands(const MixStreamsParams& p, StepOperands* out) {
    for (uint32_t i = 0; i < p.n_streams && i < kMaxStreams; ++i) {
      out->AddValue(static_cast<ValueId>(p.streams + i));
    }
    out->AddValue(p.coefs);
    out->AddWeight(p.scale);
  }

  static Status Check(const MixStreamsParams& p, const StepCheck& check) {
    const uint32_t in = check.step().in, width = check.Width(check.step().in), n = p.n_streams;
    if (n == 0 || n > kMaxStreams) return check.ValueError("streams", n, kMaxStreams);
    if (p.active >= n) return check.ValueError("active stream", p.active, n);
    if (static_cast<uint32_t>(p.rule) >= kStreamRuleCount) {
      return check.ValueError("rule", static_cast<uint32_t>(p.rule), kStreamRuleCount - 1);
    }
    for (uint32_t i = 0; i < n; ++i) {
      const uint32_t id = uint32_t{p.streams} + i;
      if (id == in || id >= kNoValue) return check.ValueError("stream", id, kNoValue);
      ARN_TRY(check.HasWidth("stream's width", static_cast<ValueId>(id), width));
    }
    if (p.scale != kNoWeight) {
      if (p.rule != StreamRule::kCorrect) return check.ValueError("scale", p.scale, kNoWeight);
      ARN_TRY(check.Vector("scale", p.scale, width));
    }
    if (p.rule == StreamRule::kMean) return check.Equals("coefficients", p.coefs, kNoValue);
    const uint32_t n_coefs = p.rule == StreamRule::kPredict ? n * n : n;
    return check.HasWidth("coefficients' width", p.coefs, n_coefs);
  }

  static void Dump(const MixStreamsParams& p, const Step&, StepText* text) {
    constexpr const char* kNames[] = {"predict", "correct", "mean"};
    static_assert(sizeof kNames / sizeof kNames[0] == kStreamRuleCount);
    text->Print(" %s %%%u to %%%u active %u", kNames[static_cast<uint32_t>(p.rule)], p.streams,
                p.streams + p.n_streams - 1u, p.active);
    if (p.coefs != kNoValue) text->Print(" coefs %%%u", p.coefs);
    text->PrintWeight("scale", p.scale);
  }
};

}  // namespace

constinit const OpContract kMixStreamsOp =
    MakeOp<MixStreamsContract>("mix_streams", kHasIn | kInDecoder);

}  // namespace arn
