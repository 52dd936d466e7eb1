// Sizes of all buffers and slices of the backend, computed from the program only.
#pragma once

#include "kernels/contract/backend.h"
#include "kernels/vulkan/replay/vulkan_state.h"
#include "platform/base/arith.h"
#include "platform/base/layout.h"

namespace arn::vulkan {

// Indices into BackendPlan::slices.
enum : uint32_t {
  kStateSlice,
  kWeightsSlice,
  kGridsSlice,
  kSegmentsSlice,
  kBlocksSlice,
  kPipelinesSlice,
  kQuantizedSlice,
  kNormedSlice,
  kPartialsSlice,
  kActivationsSlice,  // whole regions on the device
  kKvSlice,
  kExpertsSlice,
  kFeaturesSlice,
  kEmbeddingsSlice,
};

// Bytes of every buffer to allocate on the device.
struct BufferBytes {
  uint64_t weights = 0, activations = 0, kv = 0, logits = 0, run = 0, grids = 0, choice = 0;
  uint64_t arrivals = 0;
  uint64_t Total() const;
};
// Returns the parts of kQuantizedSlice: Workspace::quantized and few_quantized.
struct QuantizedParts {
  uint64_t bytes = 0, few_bytes = 0;
  uint64_t few_at() const { return AlignUp(bytes, kSliceAlign); }
};
QuantizedParts QuantizedPartsOf(const Program& program, const Traits& traits);

// Fills everything except the sizes of the regions.
void FillBufferBytes(const Program& program, const Counts& counts, const RunWords& words,
                     BufferBytes* out);

// Only traits.segment_positions, traits.fuses and traits.binding_bytes affect the plan.
Status Plan(const Program& program, const Traits& traits, Layout* layout, BackendPlan* plan,
            Diag* diag);

// Returns the end of the buffer of activations that begins at `start`: at most buffer_bytes behind
// it if something that nothing crosses is there, and a multiple of a binding's alignment.
uint64_t EndOfActivations(const Program& program, const BackendPlan& plan, uint64_t start,
                          uint64_t buffer_bytes);

// Returns kUnsupported if the program contains something this backend does not run.
Status CountProgram(const Program& program, const Traits& traits, Counts* counts, Diag* diag);

}  // namespace arn::vulkan
