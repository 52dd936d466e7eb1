#include "kernels/contract/adapter.h"
#include "kernels/contract/ops/op_contract.h"
#include "kernels/contract/streams.h"

namespace arn {
namespace {

// In place of an op that is not built in: no step of it passes.
constexpr OpContract kAbsentOp = {
    Op::kMixStreams,
    "absent",
    kHasIn | kHasOut | kInDecoder,
    [](const Step&, StepOperands*) {},
    [](const StepCheck& check) { return check.UnsupportedError("op", "is not built in"); },
    [](const StepInRun&, StepWork*) {},
    nullptr};

// In the order of Op.
constexpr const OpContract* kOps[] = {
    &kEmbedOp,
    &kRopeAnglesOp,
    &kNormOp,
    &kLinearOp,
    &kQkvRopeOp,
    &kAttentionOp,
    &kGatedActOp,
    &kActOp,
    &kRouteOp,
    &kExpertsOp,
    &kLogitsOp,
    &kConvOp,
    &kScanOp,
    &kFeaturesOp,
    &kIm2colOp,
    &kAddPositionsOp,
    &kSelfAttentionOp,
    &kStoreKvOp,
    &kScaleRowOp,
    &kMultiplyOp,
    &kHeadLinearOp,
    &kLinearAttentionOp,
    &kGateOp,
    &kPoolOp,
    kHasStreams ? &kMixStreamsOp : &kAbsentOp,
    kHasStreams ? &kMatchRmsOp : &kAbsentOp,
    kHasStreams ? &kThresholdOp : &kAbsentOp,
    kHasAdapters ? &kAdaptOp : &kAbsentOp,
    &kAddEmbeddingsOp,
    &kClampOp,
    kHasAdapters ? &kSteerOp : &kAbsentOp,
    &kNormRowsOp,
};
static_assert(sizeof kOps / sizeof kOps[0] == kOpCount);

}  // namespace

const OpContract& ContractOf(Op op) { return *kOps[static_cast<uint32_t>(op)]; }

const char* OpName(Op op) { return ContractOf(op).name; }

StepOperands OperandsOf(const Step& step) {
  StepOperands out;
  ContractOf(step.op()).operands(step, &out);
  return out;
}

}  // namespace arn
