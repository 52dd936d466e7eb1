// Streams one tensor from the checkpoint into the bundle: read a slab of rows, quantise it, pack
// it, append it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "converter/quantize/compensate.h"
#include "converter/tensor_plan.h"
#include "converter/write/bundle_writer.h"

namespace arn::convert {

// Elements of a slab: 4 MB as floats. With its quantised and packed forms and `n_threads` of them
// in work at once, this is all the memory that conversion takes besides the scales and biases of
// the tensor at hand.
inline constexpr uint64_t kSlabElements = 1u << 20;

// Exact bytes of the tensor's segment.
uint64_t SegmentBytes(const PlannedTensor& tensor);

// Called with the elements that have been written since the last call; may throw to end the
// conversion.
using OnProgress = std::function<void(const PlannedTensor& tensor, uint64_t elements)>;

// Appends the tensor's segment. `finished`: the matrix in its integer type already, in any layout,
// of which values and scales are taken; null: each row is rounded by itself. `n_threads` slabs are
// worked on at once; the bytes do not depend on it. Throws ConvertError naming tensor and index for
// NaN, infinity, and values that the element type cannot hold.
fbs::Segment WriteTensor(const PlannedTensor& tensor, const Weight* finished, uint32_t n_threads,
                         const OnProgress& on_progress, BundleWriter* writer);

// The bytes of a matrix's segment, its rows corrected and quantised by their inputs (int8 and int4
// alone).
std::vector<std::byte> PackMatrix(const PlannedTensor& tensor, const InputModel& inputs,
                                  uint32_t n_threads);

}  // namespace arn::convert
