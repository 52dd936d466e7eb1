// Text of a program: counts all bytes, stores those that fit.
#pragma once

#include <cstddef>

#include "kernels/contract/program_dump.h"
#include "platform/base/span.h"

namespace arn {

class StepText {
 public:
  StepText(Span<char> out, WeightNamer name, const void* context)
      : out_(out), name_(name), context_(context) {}

  void Print(const char* format, ...) __attribute__((format(printf, 2, 3)));
  // " field name", or nothing for kNoWeight.
  void PrintWeight(const char* field, WeightId id);
  // " field value", or nothing for `otherwise`.
  void PrintFloat(const char* field, float value, float otherwise);

  size_t size() const { return size_; }

 private:
  Span<char> out_;
  WeightNamer name_;
  const void* context_;
  size_t size_ = 0;
};

}  // namespace arn
