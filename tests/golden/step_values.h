// The program of a bundle, run step by step on a backend: what a value holds after any of its
// steps. Beside the runtime's own sessions, which show only logits, keys and values.
#pragma once

#include <filesystem>
#include <vector>

#include "kernels/backend.h"
#include "runtime/memory/session_plan.h"
#include "runtime/model/model.h"

namespace arn::test {

class StepValues {
 public:
  // Opens the bundle and plans one sequence of `context` tokens with an f32 cache. The test fails,
  // and nothing else may be called, when is_open() is false.
  StepValues(const std::filesystem::path& bundle, const Backend* backend, uint32_t context);
  ~StepValues();
  StepValues(const StepValues&) = delete;
  StepValues& operator=(const StepValues&) = delete;

  bool is_open() const { return model_ != nullptr; }
  // The model's own steps: the pieces that programs for Run are made of.
  std::vector<Step> steps() const;
  // The place in steps() of the layer's `nth` step of that kind, counted from 0. The test fails,
  // and 0 is returned, when there is none.
  size_t Find(Op op, uint32_t layer, uint32_t nth = 0) const;

  // Runs `steps` on `ids` from an empty sequence. Returns `value`, [ids, its width]; with kNoValue
  // the logits after each token, [ids, vocab]. All values lie apart, so that a step may write to
  // any of them. Empty, and the test fails, when a run fails.
  std::vector<float> Run(const std::vector<Step>& steps, const std::vector<int32_t>& ids,
                         ValueId value) const;
  // What the model's step `at` writes. (`out`, or `in` of steps that work in place.)
  std::vector<float> After(size_t at, const std::vector<int32_t>& ids) const;

 private:
  Model* model_ = nullptr;
  const Backend* backend_;
  mutable SessionPlan plan_;
};

}  // namespace arn::test
