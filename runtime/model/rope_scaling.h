// RoPE scaled by a session, for contexts beyond the one the checkpoint was trained for.
#pragma once

#include "platform/base/diag.h"
#include "runtime/model/model_spec.h"

namespace arn {

enum class RopeScalingType : uint8_t { kNone = 0, kLinear = 1, kYarn = 2 };

struct RopeScaling {
  RopeScalingType type = RopeScalingType::kNone;
  float factor = 0.0f;  // of the context

  bool exists() const { return type != RopeScalingType::kNone; }
};

// Sets *out_context to the tokens that the model takes with the scaling. Fails if the factor is out
// of range, if the checkpoint has a scaling of its own, or if its RoPE is not what limits the
// context.
Status CheckRopeScaling(const ModelSpec& spec, const RopeScaling& scaling, uint32_t* out_context,
                        Diag* diag);

// Writes the table to inv_freq [rotary_dim / 2], and makes *rope, a copy of the model's, use it:
// as if config.json had the scaling, with max_position_embeddings as the original context.
// REQUIRES: CheckRopeScaling.
void ScaleRope(const ModelSpec& spec, const RopeScaling& scaling, float* inv_freq, RopeKind* rope);

}  // namespace arn
