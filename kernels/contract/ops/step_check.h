// Checks of a step: error messages, and what the ops have in common.
#pragma once

#include <cstdint>

#include "kernels/contract/program.h"
#include "platform/base/diag.h"
#include "platform/base/status.h"

namespace arn {

class StepCheck {
 public:
  // index: the step's index in the program.
  StepCheck(const Program& program, const Step& step, uint32_t index, Diag* diag)
      : program_(program), step_(step), index_(index), diag_(diag) {}

  const Program& program() const { return program_; }
  const Step& step() const { return step_; }
  bool is_encoder() const { return index_ < program_.n_encoder_steps; }

  // Return the error. `problem` is a predicate, e.g. "are not f32 rows".
  Status ValueError(const char* what, uint64_t found, uint64_t expected) const;
  Status UnsupportedError(const char* what, const char* problem) const;

  Status Equals(const char* what, uint64_t found, uint64_t expected) const {
    return found == expected ? Status::kOk : ValueError(what, found, expected);
  }
  Status Exists(const char* what, ValueId id) const {
    return id < program_.values.size() ? Status::kOk : ValueError(what, id, program_.values.size());
  }
  // Returns 0 if the value does not exist.
  uint32_t Width(ValueId id) const {
    return id < program_.values.size() ? program_.values[id].width : 0;
  }
  Status HasWidth(const char* what, ValueId id, uint64_t width) const {
    ARN_TRY(Exists(what, id));
    return Equals(what, Width(id), width);
  }
  // In and out are different values.
  Status NotInPlace() const {
    return step_.in == step_.out ? ValueError("output", step_.out, kNoValue) : Status::kOk;
  }

  // A matrix of a matmul.
  Status Matrix(WeightId id, uint32_t rows, uint32_t cols) const;
  Status Vector(const char* what, WeightId id, uint32_t size) const;
  Status Norm(NormKind kind, WeightId weight, WeightId bias, uint32_t width) const;
  // f32 rows, `most` of them at most, with at most 2^20 columns.
  Status FloatRows(const char* what, WeightId id, uint32_t most, const Weight** out) const;
  // One f32 row of `width` per position.
  Status Positions(WeightId id, uint32_t n_positions, uint32_t width) const;
  // limit: kClampedSwiglu, which only ops with a gate take.
  Status IsKnown(Activation activation, bool has_gate, float limit) const;

  // The kind of an attention step, with heads.
  Status Kind(uint32_t index, const AttentionKind** out) const;
  // The kind of a step on the pages of a group, and its input [q | k | v], or q with shares_kv.
  Status PagedKind(uint32_t index, uint32_t group_layer, bool shares_kv,
                   const AttentionKind** out) const;
  Status RelativePositionBias(WeightId id, const AttentionKind& kind, bool both_ways) const;
  // `floats` of a layer's state from `offset` on.
  Status State(uint32_t group, uint32_t group_layer, uint32_t offset, uint64_t floats) const;

 private:
  const Program& program_;
  const Step& step_;
  const uint32_t index_;
  Diag* const diag_;
};

}  // namespace arn
