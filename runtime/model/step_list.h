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
    if (n_values_ == values_.size()) {
      is_full_ = true;
      return 0;
    }
    const ValueId id = n_values_++;
    values_[id].name = name;
    values_[id].width = width;
    values_[id].first_step = UINT32_MAX;
    return id;
  }

  // Returns the value of this width in the bytes of `whole`: `whole` itself or a view of it.
  // REQUIRES: `whole` is no view and at least as wide.
  ValueId Narrowed(ValueId whole, uint32_t width) {
    for (ValueId at = whole; at < n_values_; ++at) {
      const bool has_its_bytes = at == whole || values_[at].view_of == whole;
      if (has_its_bytes && values_[at].width == width) return at;
    }
    const ValueId id = NewValue(values_[whole].name, width);
    if (is_full_) return 0;
    values_[id].view_of = whole;
    values_[id].is_encoder = values_[whole].is_encoder;
    values_[id].row_factor = values_[whole].row_factor;
    values_[id].more_rows = values_[whole].more_rows;
    return id;
  }

  uint32_t WidthOf(ValueId id) const { return values_[id].width; }

  // Marks an encoder value with row_factor rows per row of a run, and more_rows.
  void MarkEncoder(ValueId id, uint16_t row_factor, uint16_t more_rows = 0) {
    values_[id].is_encoder = true;
    values_[id].row_factor = row_factor;
    values_[id].more_rows = more_rows;
  }

  void Add(const Step& step) {
    Touch(step.in);
    Touch(step.out);
    const StepOperands operands = OperandsOf(step);
    for (uint32_t i = 0; i < operands.n_values; ++i) Touch(operands.values[i]);
    steps_[n_steps_++] = step;
  }

  // Gives the views the lifetimes of the values they view.
  void FinishViews() {
    for (Value& value : values_.subspan(0, n_values_)) {
      if (value.view_of == kNoValue) continue;
      value.first_step = values_[value.view_of].first_step;
      value.last_step = values_[value.view_of].last_step;
    }
  }

  // Stops tracking a value's lifetime: later layers repeat the first layer's pattern. Values that
  // cross layers stay tracked.
  void FreezeLifetimes(ValueId id) { is_frozen_[id] = true; }

  uint32_t n_steps() const { return n_steps_; }
  uint32_t n_values() const { return n_values_; }
  // True if there was no room for a value. The steps are then not usable.
  bool is_full() const { return is_full_; }

 private:
  void Touch(ValueId id) {
    if (id == kNoValue) return;
    if (values_[id].view_of != kNoValue) id = values_[id].view_of;
    if (is_frozen_[id]) return;
    Value& value = values_[id];
    value.first_step = Min(value.first_step, n_steps_);
    value.last_step = n_steps_;
  }

  Span<Step> steps_;
  Span<Value> values_;
  uint32_t n_steps_ = 0;
  ValueId n_values_ = 0;
  bool is_frozen_[kMaxValues] = {};
  bool is_full_ = false;
};

}  // namespace arn
