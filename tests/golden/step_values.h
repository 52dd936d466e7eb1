// Runs a bundle's Program step by step on a backend and reads any value after any step. A session
// only exposes logits, K and V.
#pragma once

#include <filesystem>
#include <vector>

#include "kernels/contract/backend.h"
#include "runtime/memory/session_plan.h"
#include "runtime/model/model.h"

namespace arn::test {

class StepValues {
 public:
  // Opens the bundle and plans one sequence of `context` tokens with an f32 cache. On failure the
  // test fails and is_open() is false; no other method may be called then.
  // of_mtp: of the model's multi-token prediction head, which it must have.
  StepValues(const std::filesystem::path& bundle, const Backend* backend, uint32_t context,
             bool of_mtp = false);
  ~StepValues();
  StepValues(const StepValues&) = delete;
  StepValues& operator=(const StepValues&) = delete;

  bool is_open() const { return model_ != nullptr; }
  // Returns the model's own steps, from which programs for Run are built.
  std::vector<Step> steps() const;
  // Returns them with the last one that leaves the final rows, and the value of these; of the head,
  // or of a model that has one.
  std::vector<Step> StepsForMtp(ValueId* rows) const;
  // Returns the index in steps() of the layer's `nth` step with `op`, counted from 0. Fails the
  // test and returns 0 if there is none.
  size_t Find(Op op, uint32_t layer, uint32_t nth = 0) const;

  // Runs `steps` on `ids` from an empty sequence. Returns `value` as [ids, width], or with kNoValue
  // the logits after each token as [ids, vocab]. Values do not alias, so a step may write to any of
  // them. Fails the test and returns an empty vector if a run fails.
  // features: of each token, if the program reads them.
  std::vector<float> Run(const std::vector<Step>& steps, const std::vector<int32_t>& ids,
                         ValueId value, const std::vector<float>& features = {}) const;
  // Returns the output of the model's step `at`: `out`, or `in` for an in-place step.
  std::vector<float> After(size_t at, const std::vector<int32_t>& ids) const;

 private:
  Model* model_ = nullptr;
  bool of_mtp_;
  const Backend* backend_;
  mutable SessionPlan plan_;
};

}  // namespace arn::test
