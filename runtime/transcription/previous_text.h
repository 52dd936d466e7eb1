// PreviousText: the last tokens before a window, with which its prompt may begin.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/span.h"
#include "runtime/transcription/token_rules.h"

namespace arn {

class PreviousText {
 public:
  // `kept`: room for the tokens that are kept; must outlive it.
  explicit PreviousText(Span<int32_t> kept) : kept_(kept) {}
  void Add(Span<const int32_t> ids);
  // Leaves out the second of two times at the segment's end, as transformers does
  // (_pad_to_max_length): the next window begins with it.
  void AddSegment(const TokenRules& rules, Span<const int32_t> ids);
  Span<const int32_t> ids() const { return {kept_.data(), n_}; }

 private:
  Span<int32_t> kept_;
  size_t n_ = 0;
};

}  // namespace arn
