// Sizes of everything that the backend keeps, from the program alone.
#pragma once

#include "kernels/backend.h"
#include "kernels/vulkan/state.h"

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
  kActivationsSlice,  // the whole regions that lie on the device
  kKvSlice,
  kExpertsSlice,
};

// Bytes of every buffer, which is what the device is asked for.
struct BufferBytes {
  uint64_t weights = 0, activations = 0, kv = 0, logits = 0, run = 0, grids = 0, choice = 0;
  uint64_t Total() const;
};
// All but the regions'.
void FillBufferBytes(const Program& program, const Counts& counts, const RunWords& words,
                     BufferBytes* out);

// traits: of those that make a difference (segment_positions).
Status Plan(const Program& program, const Traits& traits, Layout* layout, BackendPlan* plan,
            Diag* diag);

// kUnsupported when the program has something that this backend does not run.
Status CountProgram(const Program& program, const Traits& traits, Counts* counts, Diag* diag);

}  // namespace arn::vulkan
