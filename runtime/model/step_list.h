// Collects the steps and values of a program.
#pragma once

#include <cstdint>

#include "kernels/contract/program.h"
#include "platform/base/arith.h"
#include "platform/base/span.h"
#include "runtime/model/decoder_program.h"

namespace arn {

// Collects steps and extends the lifetimes of the values they use.
class StepList {
 public:
  StepList(Span<Step> steps, Span<Value> values) : steps_(steps), values_(values) {}

  ValueId NewValue(const char* name, uint32_t width) {
    const ValueId id = n_values_++;
    values_[id].name = name;
    values_[id].width = width;
    values_[id].first_step = UINT32_MAX;
    return id;
  }

  // Marks an encoder value with row_factor rows per row of a run.
  void MarkEncoder(ValueId id, uint16_t row_factor) {
    values_[id].is_encoder = true;
    values_[id].row_factor = row_factor;
  }

  void Add(const Step& step) {
    Touch(step.in);
    Touch(step.out);
    Touch(step.angles);
    Touch(step.topk);
    Touch(step.time_steps);
    Touch(step.mix);
    for (uint32_t i = 0; i < 4 && step.scratch != kNoValue; ++i) {
      Touch(static_cast<ValueId>(step.scratch + i));
    }
    steps_[n_steps_++] = step;
  }

  // Stops tracking a value's lifetime: later layers repeat the first layer's pattern. Values that
  // cross layers stay tracked.
  void FreezeLifetimes(ValueId id) { frozen_ |= uint64_t{1} << id; }

  uint32_t n_steps() const { return n_steps_; }
  uint32_t n_values() const { return n_values_; }

 private:
  void Touch(ValueId id) {
    if (id == kNoValue || (frozen_ >> id & 1) != 0) return;
    Value& value = values_[id];
    value.first_step = Min(value.first_step, n_steps_);
    value.last_step = n_steps_;
  }

  Span<Step> steps_;
  Span<Value> values_;
  uint32_t n_steps_ = 0;
  ValueId n_values_ = 0;
  uint64_t frozen_ = 0;
};
static_assert(kMaxValues <= 64);

}  // namespace arn
