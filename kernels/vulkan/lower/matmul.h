// A matmul with one matrix, or with one of several matrices of the same shape.
#pragma once

#include "kernels/vulkan/device/device.h"
#include "kernels/vulkan/lower/lower.h"
#include "platform/base/arith.h"

namespace arn::vulkan {

struct Lowering::Matmul {
  const Step* step = nullptr;
  WeightId weight = kNoWeight;
  Place in, out;
  uint64_t max_rows = 0;       // of the input, in any run
  uint32_t row_factor = 1;     // rows per row of a run
  uint32_t rows_an_input = 1;  // output rows per input row
  bool accumulate = false;
  bool is_quantized = false;  // the dispatch that wrote the input also quantised it
  bool is_logits = false;
  float factor = 1.0f, softcap = 0.0f;             // of logits
  uint32_t first_row = 0, most_rows = UINT32_MAX;  // for logits
};

bool IsInteger(const Weight& weight);

template <typename IdOf>
Lowering::BoundMatrices Lowering::MatricesFrom(uint32_t first, uint32_t n, IdOf id_of) {
  const DeviceWeight head = PlacedAt(id_of(first));
  const uint64_t room = Device::kMaxBindingBytes - Device::kBindingAlign;
  BoundMatrices bound;
  bound.first = first;
  DeviceWeight last = head;
  for (bound.n = 1; first + bound.n < n; ++bound.n) {
    const WeightId id = id_of(first + bound.n);
    const DeviceWeight next = PlacedAt(id);
    const uint64_t stride = next.values - last.values;
    if (program_.weights[id].dtype != program_.weights[id_of(first)].dtype ||
        next.block != head.block || next.heads - next.values != head.heads - head.values ||
        (bound.n > 1 && stride != bound.stride) ||
        bound.n * stride + Max(head.values_bytes, head.heads_bytes) > room) {
      break;
    }
    bound.stride = stride;
    last = next;
  }
  return bound;
}

template <typename Push>
void Lowering::Quantize(Dispatch* d, Push* push, uint64_t matmul_rows) {
  const uint64_t rows = Min(matmul_rows, range_rows_);
  SetQuantized(d->modes, workspace_.quantized, rows);
  Place place = PlaceOf(workspace_.quantized);
  place.range_bytes = QuantizedRangeBytes(rows, push->n);
  Bind(d, 5, place);
  d->constants[kRowQuantizesId] = 1;
  push->values_at = QuantizedHeadWords(rows);
  push->row_words = QuantizedWords(push->n);
}

template <typename Push>
void Lowering::EndWithQuantised(uint32_t n, Dispatch* d, Push* push) {
  const Slice out = NextQuantized(d->modes);
  d->constants[kNextQuantizesId] = 1;
  push->next_at = BindAt(d, 9, PlaceOf(out));
  push->next_values_at = QuantizedHeadWords(kFewRows);
  push->next_words = QuantizedWords(n);
  SetQuantized(d->modes, out, kFewRows);
}

template <typename Push>
void Lowering::EndWithNorm(const EndingNorm& norm, Dispatch* d) {
  const bool is_layer = norm.kind == NormKind::kLayer;
  d->constants[kNextNormsId] = 1;
  d->constants[kNextNormIsLayerId] = is_layer ? 1 : 0;
  d->constants[kNextNormAddsId] = norm.accumulates ? 1 : 0;
  auto push = d->Push<Push>();
  push.epsilon = norm.epsilon;
  push.normed_at = BindAt(d, 6, PlaceOf(norm.out));
  push.norm_at = BindAt(d, 7, PlaceOfVector(norm.weight));
  if (is_layer) push.norm_bias_at = BindAt(d, 8, PlaceOfVector(norm.bias));
  if (norm.is_quantised) EndWithQuantised(norm.width, d, &push);
  d->SetPush(push);
}

}  // namespace arn::vulkan
