// Output of token ids.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/span.h"

namespace arn {

// Stores ids and counts all, including those that do not fit.
class IdSink {
 public:
  explicit IdSink(Span<int32_t> ids) : ids_(ids) {}
  void Put(uint32_t id) {
    if (count_ < ids_.size()) ids_[count_] = static_cast<int32_t>(id);
    ++count_;
  }
  size_t count() const { return count_; }

 private:
  Span<int32_t> ids_;
  size_t count_ = 0;
};

}  // namespace arn
