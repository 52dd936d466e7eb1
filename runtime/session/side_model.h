// SideModel: a model that runs beside a session's, on one text. It has a cache, an executor and a
// thread pool of its own, all in one slice of the session's block, made of the same parts as the
// session.
#pragma once

#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "runtime/session/core.h"
#include "runtime/session/executor.h"
#include "runtime/session/recompute.h"
#include "runtime/session/runner.h"
#include "runtime/session/sequences.h"
#include "runtime/session/throttle.h"

namespace arn {

// A mean of times in nanoseconds, of which the latest weigh most; 0: none is known.
class MeanNs {
 public:
  // Adds n things that have taken this long together.
  void Add(uint64_t ns, size_t n);
  uint64_t Of(size_t n) const { return static_cast<uint64_t>(mean_ * static_cast<double>(n)); }

 private:
  double mean_ = 0;
};

class SideModel {
 public:
  // `block`: memory of plan.TotalBytes(). `model` and `target` must outlive the object. A model
  // with a lender uses the KV pages of `target`.
  SideModel(const Model& model, SessionCore* target, const SessionPlan& plan, std::byte* block);
  ~SideModel() { executor_.Unload(); }
  SideModel(const SideModel&) = delete;
  SideModel& operator=(const SideModel&) = delete;

  // `plan`: that of the constructor, with the options that are read only while it is loaded. A
  // failure is explained in *diag.
  Status Load(const SessionPlan& plan, Diag* diag);

  const SessionPlan& plan() const { return core_.plan; }
  // The tokens that have run.
  Span<const int32_t> Ids() const { return sequences_.Ids(0); }
  // Drops the tokens from `n` on.
  Status Rewind(size_t n) { return sequences_.Rewind(static_cast<uint32_t>(n)); }
  // Runs tokens, at most a chunk, behind the others. features: SessionPart::features. kCancelled if
  // the session's call is cancelled.
  Status Run(Span<const int32_t> ids, Span<const float> features, LogitRows logit_rows);
  // Runs the token at position + 1 of a sequence of the lender, whose pages are in `tables`. Its
  // query is rotated by that position and attends to what the token at `position` attends to.
  // features: [width of the lender]. REQUIRES: the model has a lender, and its pages are there.
  Status RunBehind(const PageTable* tables, uint32_t position, int32_t id,
                   Span<const float> features);
  // Returns the likeliest token after the last run, which had logits.
  int32_t Best();
  // Returns row `row` of the last run. REQUIRES: Program::final_rows.
  const float* FinalRow(size_t row) const;
  // Adds what ran to the session's statistics. Failures are forgotten: without guesses the text
  // goes on.
  void EndCall();

 private:
  SessionCore& target_;
  SessionCore core_;
  Throttle throttle_;
  Executor executor_;
  Sequences sequences_;
  Recompute recompute_;
  Runner runner_;
};

}  // namespace arn
