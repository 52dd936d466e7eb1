// KV edits: changes to pages outside the steps. Independent edits share a dispatch.
#include <cmath>

#include "kernels/vulkan/replay/vulkan_state.h"
#include "platform/base/arith.h"

namespace arn::vulkan {
namespace {

bool PageExists(const KvGroup& group, uint32_t page) {
  return (page & ~kQuantisedPage) < group.pages(KindOfPage(page)).n_pages;
}

// True if `next` must wait for `earlier`: it reads or writes the page the other writes, or writes
// the page the other reads.
bool Touches(const KvEdit& earlier, const KvEdit& next) {
  return next.from == earlier.to || next.to == earlier.to || next.to == earlier.from;
}

// Writes cos and sin of the un-rotation for each rope.
void WriteAngles(const Program& program, uint32_t tokens, uint32_t* words) {
  for (const RopeKind& rope : program.ropes) {
    const uint32_t half = rope.rotary_dim / 2;
    for (uint32_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(tokens) * static_cast<double>(rope.inv_freq[i]);
      words[i] = BitsFromF32(static_cast<float>(std::cos(angle)));
      words[half + i] = BitsFromF32(static_cast<float>(std::sin(angle)));
    }
    words += 2 * half;
  }
}

}  // namespace

Status ApplyEdits(State* state, Span<const KvEdit> edits, Diag* diag) {
  State& s = *state;
  for (const KvEdit& edit : edits) {
    if (edit.group >= s.program->kv_groups.size() ||
        s.program->kv_groups[edit.group].state_floats != 0 ||
        s.program->kv_groups[edit.group].is_encoder ||
        !PageExists(s.program->kv_groups[edit.group], edit.from) ||
        !PageExists(s.program->kv_groups[edit.group], edit.to) ||
        edit.n_tokens > s.program->kv_groups[edit.group].page_tokens) {
      return diag->Fail(Status::kInternal, "KV edit: group %u, page %#x to %#x, %u tokens",
                        edit.group, edit.from, edit.to, edit.n_tokens);
    }
  }
  for (size_t first = 0; first < edits.size();) {
    const KvEdit& head = edits[first];
    uint32_t n = 0;
    for (; n < kMaxEditsAtOnce && first + n < edits.size(); ++n) {
      const KvEdit& next = edits[first + n];
      bool fits = next.group == head.group && next.unrotated_by == head.unrotated_by;
      for (uint32_t i = 0; fits && i < n; ++i) fits = !Touches(edits[first + i], next);
      if (!fits) break;
      uint32_t* words = s.run_words() + s.words.edits + n * kEditWords;
      words[kEditFrom] = next.from;
      words[kEditTo] = next.to;
      words[kEditPositions] = next.unrotated_by;
      words[kEditTokens] = next.n_tokens;
    }
    WriteAngles(*s.program, head.unrotated_by, s.run_words() + s.words.angles);
    ARN_TRY(ExecuteEdits(state, head.group, n, diag));
    first += n;
  }
  return Status::kOk;
}

}  // namespace arn::vulkan
