// Helpers shared by the files of saving only.
#pragma once

#include <cstdint>

#include "kernels/contract/kv_view.h"
#include "platform/base/span.h"
#include "runtime/model/image_place.h"
#include "runtime/session/saving.h"
#include "runtime/state/state_reader.h"

namespace arn {

// Fails if the session cannot save or restore states. `done` names the action for the message.
Status CheckHasState(const SavingView& view, const char* done);
// Returns what a state is checked against. scratch: as in StateTarget.
inline StateTarget TargetOf(const SavingView& view, uint32_t* const* scratch,
                            bool has_constraints) {
  const ModelSpec& spec = view.core.model.spec;
  return {&view.core.plan,
          view.core.model.state_hash,
          scratch,
          view.sequences.sampling_limits(),
          view.sequences.SamplingLists(view.sequences.size()),
          has_constraints,
          [](const void* sequences, uint32_t s) {
            return static_cast<const Sequences*>(sequences)->AdaptersOf(s);
          },
          &view.sequences,
          EmbeddingFloats(spec),
          spec.vision.has_mrope};
}
// True if pages of a file can be mapped over the pools.
bool CanMap(const SavingView& view, int fd);
// Writes all of a saved page to page `index`.
Status WritePage(const SavingView& view, const KvPages& pages, uint32_t index,
                 Span<const std::byte> from);
// Writes all saved pages: they become the first pages of each pool, in order.
Status RestorePages(const SavingView& view, const StateView& state, int fd, uint64_t file_offset);
// Checks that the bundle's prefix is a state for this session.
Status CheckPrefix(const SavingView& view, StateView* out);
// Clears the selected sequence and starts it from a prefix that CheckPrefix accepted.
Status TakePrefix(const SavingView& view, const StateView& state);

}  // namespace arn
