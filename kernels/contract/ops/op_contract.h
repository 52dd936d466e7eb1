// The contract of an op apart from its parameters: one row of the table in
// kernels/contract/ops/op_table.cc, defined in the op's own file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/contract/backend.h"
#include "kernels/contract/descriptions.h"
#include "kernels/contract/ops/step_check.h"
#include "kernels/contract/ops/step_text.h"
#include "kernels/contract/program.h"
#include "kernels/contract/step_work.h"
#include "platform/base/status.h"

namespace arn {

// A step in a run, for its work.
struct StepInRun {
  const Program& program;
  const Step& step;
  const RunArgs& args;
  uint64_t rows;  // of the value it writes

  const Weight& weight(WeightId id) const { return program.weights[id]; }
  uint32_t width(ValueId id) const { return program.values[id].width; }
};

struct OpContract {
  Op op;
  const char* name;
  uint32_t traits;  // OpTrait flags
  void (*operands)(const Step& step, StepOperands* out);
  Status (*check)(const StepCheck& check);
  // Adds to the bytes of StepOperands::weights.
  void (*work)(const StepInRun& run, StepWork* work);
  void (*dump)(const Step& step, StepText* text);
};

enum OpTrait : uint32_t {
  kHasIn = 1,           // Step::in is a value; otherwise it is kNoValue
  kHasOut = 2,          // the same of Step::out; an op without works in place, or writes elsewhere
  kInEncoder = 4,       // may be an encoder step
  kInDecoder = 8,       // may be a decoder step
  kTakesFactors = 16,   // values may have several rows per row of the run
  kChangesFactor = 32,  // in and out may have different row factors
  kTakesPooled = 64,    // values may have a row per sequence
};

const OpContract& ContractOf(Op op);

// For the work of ops. A multiply-add is two operations.
void AddMatmul(const Weight& weight, uint64_t rows, StepWork* work);
// `pairs`: (query, visible key) pairs, with one multiply-add per element for q.k and one for p.v.
void AddAttention(const AttentionKind& kind, DType type, uint64_t pairs, StepWork* work);
// Returns the number of sequences that continue from a state.
uint64_t SequencesUnderWay(const RunArgs& args);

// Defaults of an op's contract. An op's file defines a struct derived from this one, with the
// functions that the op needs.
template <typename OpParams>
struct OpDefaults {
  using Params = OpParams;
  static void Operands(const Params&, StepOperands*) {}
  static Status Check(const Params&, const StepCheck&) { return Status::kOk; }
  static void Work(const Params&, const StepInRun&, StepWork*) {}
  static void Dump(const Params&, const Step&, StepText*) {}
};

// Returns null in libraries without descriptions.
template <typename Contract>
constexpr auto DumpOf() -> void (*)(const Step&, StepText*) {
  if constexpr (kHasDescriptions) {
    return [](const Step& step, StepText* text) {
      Contract::Dump(step.Get<typename Contract::Params>(), step, text);
    };
  } else {
    return nullptr;
  }
}

// Makes the row of an op from its struct.
template <typename Contract>
constexpr OpContract MakeOp(const char* name, uint32_t traits) {
  using Params = typename Contract::Params;
  return {Params::kOp,
          name,
          traits,
          [](const Step& step, StepOperands* out) { Contract::Operands(step.Get<Params>(), out); },
          [](const StepCheck& check) { return Contract::Check(check.step().Get<Params>(), check); },
          [](const StepInRun& run, StepWork* work) {
            Contract::Work(run.step.Get<Params>(), run, work);
          },
          DumpOf<Contract>()};
}

// One per op, defined in the file of its name.
extern const OpContract kEmbedOp, kRopeAnglesOp, kNormOp, kLinearOp, kQkvRopeOp, kAttentionOp;
extern const OpContract kGatedActOp, kActOp, kRouteOp, kExpertsOp, kLogitsOp, kConvOp, kScanOp;
extern const OpContract kFeaturesOp, kIm2colOp, kAddPositionsOp, kSelfAttentionOp, kStoreKvOp;
extern const OpContract kScaleRowOp, kMultiplyOp, kHeadLinearOp;
extern const OpContract kLinearAttentionOp, kGateOp, kPoolOp;
extern const OpContract kMixStreamsOp, kMatchRmsOp, kThresholdOp, kAdaptOp;
extern const OpContract kAddEmbeddingsOp, kClampOp, kSteerOp, kNormRowsOp;

}  // namespace arn
