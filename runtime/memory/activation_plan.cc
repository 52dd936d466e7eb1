#include "runtime/memory/activation_plan.h"

#include "platform/base/arith.h"
#include "runtime/model/decoder_program.h"

namespace arn {
namespace {

bool AliveTogether(const Value& a, const Value& b) {
  return a.first_step <= b.last_step && b.first_step <= a.last_step;
}

uint64_t ValueBytes(const Program& program, const Value& value) {
  return value.width * MaxRowsOf(program, value) * sizeof(float);
}

// Includes the gap after each value that kernels may over-read.
uint64_t PaddedBytes(const Program& program, const Value& value) {
  return AlignUp(ValueBytes(program, value) + kOverreadBytes, kSliceAlign);
}

// Returns the lowest offset where `value` overlaps no placed value with a common step.
uint64_t LowestOffset(const Program& program, const Value& value, uint64_t bytes,
                      const bool* placed) {
  const Span<const Value> values(program.values.data(), program.values.size());
  uint64_t offset = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t i = 0; i < values.size(); ++i) {
      const Value& other = values[i];
      if (!placed[i] || !AliveTogether(value, other)) continue;
      const uint64_t end = other.slice.offset + PaddedBytes(program, other);
      if (offset < end && other.slice.offset < offset + bytes) {
        offset = end;
        moved = true;
      }
    }
  }
  return offset;
}

}  // namespace

Status PlanActivations(const Program& program, Layout* layout) {
  const Span<Value> values = program.values;
  if (values.size() > kMaxValues) return Status::kInternal;
  bool placed[kMaxValues] = {};
  uint64_t total = 0;
  for (;;) {
    size_t largest = values.size();
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i].view_of != kNoValue || placed[i]) continue;
      if (largest == values.size() ||
          ValueBytes(program, values[i]) > ValueBytes(program, values[largest])) {
        largest = i;
      }
    }
    if (largest == values.size()) break;
    Value& value = values[largest];
    const uint64_t bytes = PaddedBytes(program, value);
    value.slice.region = Region::kActivations;
    value.slice.bytes = ValueBytes(program, value);
    value.slice.offset = LowestOffset(program, value, bytes, placed);
    placed[largest] = true;
    total = Max(total, value.slice.offset + bytes);
  }
  ARN_ASSIGN(const Slice block, layout->Add(Region::kActivations, total));
  for (Value& value : values) {
    if (value.view_of == kNoValue) {
      value.slice.offset += block.offset;
      continue;
    }
    value.slice = values[value.view_of].slice;
    value.slice.bytes = ValueBytes(program, value);
  }
  return Status::kOk;
}

}  // namespace arn
