// Streams one tensor from the checkpoint into the bundle: reads a slab of rows, quantises, packs
// and appends it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "converter/quantize/compensate.h"
#include "converter/tensors/tensor_plan.h"
#include "converter/write/bundle_writer.h"

namespace arn::convert {

// The memory use of a conversion is that of the slabs in work, at most these elements as floats and
// in their quantised and packed forms, plus the scales and biases of the current tensor. With few
// threads a slab has kSlabElements.
inline constexpr uint64_t kElementsInWork = 3u << 20;
inline constexpr uint64_t kSlabElements = 1u << 20;

// Returns the exact bytes of the tensor's segment.
uint64_t SegmentBytes(const PlannedTensor& tensor);

// Called with the elements written since the last call; may throw to abort the conversion.
using OnProgress = std::function<void(const PlannedTensor& tensor, uint64_t elements)>;

// Appends the tensor's segment. `finished`: the matrix already in its integer type, in any layout,
// to take values and scales from; null: rounds each row independently. Works on `n_threads` slabs
// at once; the bytes do not depend on it. Throws ConvertError with tensor and index for NaN,
// infinity, and values that overflow the element type. Rows that others have quantised keep their
// levels where the type holds them. error, unless null: of those that it does not hold exactly, the
// largest difference divided by the largest magnitude of its row; 0 if there are none.
fbs::Segment WriteTensor(const PlannedTensor& tensor, const Weight* finished, uint32_t n_threads,
                         const OnProgress& on_progress, BundleWriter* writer,
                         float* error = nullptr);

// Returns the bytes of a matrix's segment, with rows corrected and quantised by their inputs (int8
// and int4 only).
std::vector<std::byte> PackMatrix(const PlannedTensor& tensor, const InputModel& inputs,
                                  uint32_t n_threads);

// Writes a matrix's segment to `to`, each row rounded independently. REQUIRES: `to` has
// SegmentBytes(tensor) bytes: zeros, or those of an earlier call.
void PackMatrixTo(const PlannedTensor& tensor, uint32_t n_threads, std::byte* to);

}  // namespace arn::convert
