// Session: one sequence of tokens being generated. It lives inside its own block of memory, and
// nothing is allocated after Create().
#pragma once

#include <atomic>
#include <cstdint>

#include "platform/base/diag.h"
#include "runtime/cache/sequence_cache.h"
#include "runtime/memory/session_plan.h"
#include "runtime/model/model.h"
#include "runtime/sampling/sampler.h"

namespace arn {

enum class Finish : uint32_t {
  kNone = 0,
  kEos = 1,
  kStop = 2,
  kLength = 3,
  kContext = 4,
  kCallback = 5,
  kCancelled = 6,
};

struct GenerateOptions {
  uint32_t max_tokens = 0;  // 0: no limit of its own
  bool ignore_eos = false;
  Span<const StringView> stops;
  Span<const int32_t> extra_eos_ids;
  // Called for every new token with the text that can be shown. Non-zero ends. May be null.
  int32_t (*callback)(void* user, int32_t id, const char* text, size_t text_bytes) = nullptr;
  void* user = nullptr;
};

struct GenerateResult {
  uint32_t n_tokens = 0;
  Finish finish = Finish::kNone;
};

struct SessionStats {
  uint64_t prefill_tokens = 0;
  uint64_t prefill_ns = 0;
  uint64_t decode_tokens = 0;
  uint64_t decode_ns = 0;
};

class Session {
 public:
  // Builds a session in `block` (plan.TotalBytes(), aligned to kRegionAlign). `owned` pages, if
  // any, are released by Destroy(). On failure nothing of the block is in use and the caller still
  // owns `owned`.
  static Status Create(const Model& model, const SessionPlan& plan, Span<std::byte> block,
                       Span<std::byte> owned, Session** out, Diag* diag);
  static void Destroy(Session* session);

  // arenite.h documents these.
  Status Prefill(Span<const int32_t> ids);
  Status PrefillLogits(Span<const int32_t> ids, const float** out_logits);
  Status Logits(const float** out_logits) const;
  Status SetSampling(const SamplingOptions& options);
  Status Sample(int32_t* out_id);
  Status Decode(int32_t* out_id);
  Status Generate(const GenerateOptions& options, GenerateResult* out);
  void Reset();
  void Cancel() { cancel_.store(1, std::memory_order_relaxed); }

  uint32_t length() const { return cache_.length(); }
  const SessionPlan& plan() const { return plan_; }
  const SessionStats& stats() const { return stats_; }
  void ResetStats() { stats_ = SessionStats(); }
  uint64_t kv_used_bytes() const { return cache_.UsedBytes(); }
  // Bytes that one decode step reads: every weight that a step names, but one row of the embedding.
  uint64_t WeightBytesPerToken() const;
  // And the keys and values that it attends to at the present length.
  uint64_t KvBytesReadPerToken() const;
  uint64_t create_ns() const { return create_ns_; }
  Diag* diag() { return &diag_; }
  const Diag& diag() const { return diag_; }

 private:
  Session(const Model& model, const SessionPlan& plan, Span<std::byte> block,
          Span<std::byte> owned);

  Status CheckTokens(Span<const int32_t> ids);
  // Runs at most one chunk and commits it.
  Status RunChunk(Span<const int32_t> ids, LogitRows logit_rows);
  Status RunOne(int32_t id);
  bool IsEnd(int32_t id, const GenerateOptions& options) const;

  const Model& model_;
  SessionPlan plan_;
  Memory memory_;
  Span<std::byte> owned_;
  void* backend_state_ = nullptr;
  SequenceCache cache_;
  Sampler sampler_;
  bool logits_ready_ = false;
  std::atomic<uint32_t> cancel_{0};
  SessionStats stats_;
  uint64_t create_ns_ = 0;
  mutable Diag diag_;  // not state: what the last failure said
};

}  // namespace arn
