// Request: one prompt, how its reply is made, and how far it is.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/span.h"
#include "runtime/constrain/token_constraint.h"
#include "runtime/sampling/sampling_options.h"

namespace arn {

// A prompt and how its reply is made. Arrays and texts are the caller's, unchanged until the
// request has ended.
struct Request {
  Span<const int32_t> prompt;
  Span<const float> embeddings;  // in place of some of its tokens; empty: none
  SamplingOptions sampling;
  TokenConstraintOptions constraint;
  bool has_constraint = false;
  bool constraint_waits = false;          // it begins when the caller says so
  Span<const uint32_t> adapters;          // indices of the session's
  const float* adapter_scales = nullptr;  // null: 1
  Span<const int32_t> extra_eos_ids;
  Span<const StringView> stops;
  uint32_t max_tokens = 0;  // 0: until a stop token or a full context
  bool ignore_eos = false;
  bool one_by_one = false;  // no more than one token in a step
  bool no_guesses = false;
  void* user = nullptr;
};

enum class RequestPhase : uint8_t {
  kFree,     // of a record: it has no request
  kWaiting,  // for a sequence
  kPrompt,   // a part of the prompt has not run
  kReply,
  kEnded,  // its last event has not been taken
};

// A request from its submission until its last event is taken.
struct RequestRecord {
  static constexpr uint32_t kNoMark = UINT32_MAX;

  Request request;
  uint64_t id = 0;
  RequestPhase phase = RequestPhase::kFree;
  bool is_paused = false;
  // Tokens that have been reported and have not run, in memory of the sequence.
  Span<const int32_t> chosen;
  TokenConstraint* compiled = nullptr;  // that the caller compiled, in place of the request's own
  Span<const int32_t> forced;           // tokens that come before others are chosen
  uint32_t sequence = 0;                // in kPrompt and kReply
  uint32_t n_kept = 0;                  // leading tokens of the prompt that did not run
  uint32_t mark = kNoMark;              // position where the recurrent states are kept
  uint32_t border = 0;      // position that a chunk ends at, for a request that waits for it
  uint32_t n_tokens = 0;    // of the reply
  uint32_t n_put = 0;       // part of them: in this step
  uint64_t n_proposed = 0;  // guesses of the reply
  uint64_t n_accepted = 0;  // those that were then chosen
  uint64_t since = 0;       // the step in which it had its last row, or the one before it began

  bool is_running() const {
    return phase == RequestPhase::kPrompt || phase == RequestPhase::kReply;
  }
  uint32_t n_prompt() const { return static_cast<uint32_t>(request.prompt.size()); }
  // True if a run takes the prompt alone.
  bool runs_alone() const { return !request.embeddings.empty(); }
};

}  // namespace arn
