// Executor: the backends of a session. Runs programs on the one in use, and counts what runs cost.
//
// The fallback backend is loaded at creation, so a switch to it allocates nothing. The executor
// knows no sequences: after a switch the KV pages are empty, and the caller has to fill them.
#pragma once

#include "kernels/contract/backend.h"
#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "runtime/session/core.h"
#include "runtime/session/profile.h"
#include "runtime/session/work_meter.h"

namespace arn {

class Executor {
 public:
  // Called before every matmul with the tensor's name (MatmulObserver).
  using OnMatmul = void (*)(void* user, const char* tensor, const float* rows, size_t n_rows,
                            size_t width, const float* sums, size_t out_width);

  explicit Executor(SessionCore* core);
  // The observer of matmuls calls back: an executor stays where it is.
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Loads the fallback backend, if the plan has one, and the planned one. Starts on the fallback if
  // the planned one cannot be loaded. `wanted` is the plan with the options that are read only
  // here.
  Status Load(const SessionPlan& wanted, Diag* diag);
  // Unloads what is loaded. Nothing runs afterwards.
  void Unload();

  // Backend in use, and what it says about itself ("" if it says nothing).
  const Backend& backend() const { return *in_use_->backend; }
  bool is_planned_in_use() const { return in_use_ == &planned_; }
  bool has_fallback() const { return fallback_.backend != nullptr; }
  const char* device_name() const;
  const char* kernel_names() const;
  const char* quirks() const;
  uint64_t imported_bytes() const;
  // Returns the CPUs that the threads may run on now.
  ThreadCpus ReadCpus() const;

  // Calls the backend in use; what they require and return is said at Backend's entries. A failure
  // is explained in the core's diag.
  Status Run(const RunArgs& args) { return backend().run(in_use_->state, args, &core_.diag); }
  Status Decode(const DecodeArgs& args, DecodeResult* out) {
    return backend().tokens->decode(in_use_->state, args, out, &core_.diag);
  }
  Status ReadLogits(Span<float> to, const std::atomic<uint32_t>* cancel) {
    return backend().logits->read(in_use_->state, to, cancel, &core_.diag);
  }
  Status ReadKv(Slice from, Span<std::byte> to) const {
    return backend().kv_read(in_use_->state, from, to);
  }
  Status WriteKv(Slice to, Span<const std::byte> from) {
    return backend().kv_write(in_use_->state, to, from);
  }
  // Tells the backend that its device has passed the self-test.
  void TrustDevice();

  // Prepares a run that is to be profiled and observed. Call Count() if it succeeds.
  void Observe(RunArgs* args);
  // Adds a successful run to the profile and the session's stats.
  void Count(const RunArgs& args);
  // Adds a step that was run within Decode() to the stats.
  void CountStep(const RunArgs& args);
  // True if runs are profiled or observed, which needs each of them to be a call of its own.
  bool is_observed() const { return profile_.is_on() || on_matmul_ != nullptr; }
  // Null removes the observer.
  void ObserveMatmuls(OnMatmul on_matmul, void* user);
  StepProfile& profile() { return profile_; }
  const StepProfile& profile() const { return profile_; }

  // True if the status is a device failure and the fallback can take over.
  bool CanFallBack(Status status) const;
  // Makes the fallback the backend in use, for a failure that the core's diag explains; clears the
  // diag. REQUIRES: CanFallBack(failure).
  void SwitchToFallback(Status failure);
  // As above, for a reason found outside a run. REQUIRES: has_fallback().
  void SwitchToFallback(const Diag& reason);
  // Why the planned backend is not in use; "" if it is.
  const char* fallback_reason() const { return fallback_reason_.text(); }

  // Makes the fallback the backend in use for its lifetime, to compare the two. The KV pages stay
  // where they are. REQUIRES: has_fallback(), and the planned backend is in use.
  class OnFallback {
   public:
    explicit OnFallback(Executor* executor) : executor_(executor) {
      executor_->in_use_ = &executor_->fallback_;
    }
    ~OnFallback() { executor_->in_use_ = &executor_->planned_; }
    OnFallback(const OnFallback&) = delete;
    OnFallback& operator=(const OnFallback&) = delete;

   private:
    Executor* executor_;
  };

 private:
  struct Loaded {
    const Backend* backend = nullptr;
    void* state = nullptr;
  };
  void ActivateFallback();
  // Sets the core's chunk_rows to what suits the backend in use.
  void ChooseChunk();

  SessionCore& core_;
  Loaded planned_, fallback_;
  const Loaded* in_use_ = &planned_;
  Diag fallback_reason_;
  StepProfile profile_;
  WorkMeter meter_;
  MatmulObserver observer_;
  OnMatmul on_matmul_ = nullptr;
  void* on_matmul_user_ = nullptr;
};

}  // namespace arn
