// SessionCore: what all parts of a session share. Every part holds a reference to it; it holds none
// to them.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

#include "platform/base/diag.h"
#include "platform/base/layout.h"
#include "runtime/memory/session_plan.h"
#include "runtime/model/model.h"

namespace arn {

struct SessionStats {
  uint64_t prefill_tokens = 0;
  uint64_t prefill_ns = 0;
  uint64_t decode_tokens = 0;
  uint64_t decode_ns = 0;
  uint64_t recomputed_tokens = 0;  // that had run before: after a rewind, or for lost logits
  uint64_t guesses_proposed = 0;   // tokens run before they were chosen
  uint64_t guesses_accepted = 0;   // those that were then chosen
  uint64_t guess_runs = 0;         // runs with guesses, each with one token that was chosen before
  uint64_t draft_ns = 0;           // of the draft model
  // Totals over all runs; each weight counts once per run (StepWork).
  uint64_t weight_bytes_read = 0;
  uint64_t kv_bytes_read = 0;
};

struct SessionCore {
  // REQUIRES: memory is PartitionBlock(of_plan, block) of a block of of_plan.TotalBytes(), or has
  // the KV region of the lender's. The model must outlive the core. Drops the strings of the plan's
  // options, which are valid only while a session is created.
  SessionCore(const Model& of_model, const SessionPlan& of_plan, const Memory& of_memory)
      : model(of_model), memory(of_memory), plan(of_plan) {
    chunk_rows = plan.options.prefill_chunk;
    plan.options.lender = nullptr;
    plan.options.device = plan.options.device_folder = nullptr;
    plan.options.thermal_zone = plan.options.system_root = nullptr;
    if (plan.options.rope_scaling.exists()) {
      ScaleRope(model.spec, plan.options.rope_scaling, memory.As<float>(plan.scaled_rope),
                &plan.ropes[0]);
    }
    plan.Bind();
    if (!kHasAdapters || plan.options.adapters.empty()) return;
    auto* adapters = memory.As<const AdapterBundle*>(plan.adapters);
    std::memcpy(adapters, plan.options.adapters.data(),
                plan.options.adapters.size() * sizeof *adapters);
    plan.options.adapters = {adapters, plan.options.adapters.size()};
  }
  SessionCore(const SessionCore&) = delete;
  SessionCore& operator=(const SessionCore&) = delete;

  void ClearCancel() { cancel.store(0, std::memory_order_relaxed); }

  const Model& model;
  const Memory memory;
  std::atomic<uint32_t> cancel{0};  // non-zero: the call in progress, or the next one, is to end
  bool is_in_callback = false;      // a callback runs that a call of this session made
  bool is_behind_logits = false;  // its token has no logits: others before it run together with it
  uint32_t chunk_rows = 0;        // tokens of a prompt in a run; the plan's prefill_chunk or fewer
  SessionStats stats;
  Diag diag;  // message of the last failure
  SessionPlan plan;
};

// Marks that a callback of the caller runs, for its own lifetime.
class InCallback {
 public:
  explicit InCallback(SessionCore* core) : core_(core) { core_->is_in_callback = true; }
  ~InCallback() { core_->is_in_callback = false; }
  InCallback(const InCallback&) = delete;
  InCallback& operator=(const InCallback&) = delete;

 private:
  SessionCore* core_;
};

}  // namespace arn
