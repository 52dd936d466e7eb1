#include "runtime/constrain/json_schema/nodes.h"

#include <algorithm>

#include "platform/base/hash.h"

namespace arn::json_schema {

uint32_t* NodeTable::FindSlot(Span<const Atom> atoms) {
  for (size_t i = Xxh64(atoms.data(), atoms.size() * sizeof(Atom));; ++i) {
    uint32_t* const slot = &slots_[i & (slots_.size() - 1)];
    if (*slot == kNone) return slot;
    const Span<const Atom> other = nodes_[*slot].atoms;
    if (other.size() == atoms.size() && std::equal(atoms.begin(), atoms.end(), other.begin())) {
      return slot;
    }
  }
}

Status NodeTable::Intern(Span<Atom> atoms, Arena* arena, NodeId* out) {
  if (nodes_.size() * 2 >= slots_.size()) {
    const uint64_t size = std::max<uint64_t>(64, slots_.size() * 2);
    ARN_ASSIGN(slots_, arena->AllocateArray<uint32_t>(size));
    for (uint32_t& slot : slots_) slot = kNone;
    for (uint32_t i = 0; i < nodes_.size(); ++i) *FindSlot(nodes_[i].atoms) = i;
  }
  std::sort(atoms.begin(), atoms.end());
  const size_t n = static_cast<size_t>(std::unique(atoms.begin(), atoms.end()) - atoms.begin());
  const Span<const Atom> set(atoms.data(), n);
  uint32_t* const slot = FindSlot(set);
  if (*slot == kNone) {
    ARN_ASSIGN(Span<Atom> copy, arena->AllocateArray<Atom>(n));
    std::copy(set.begin(), set.end(), copy.begin());
    Node node;
    node.atoms = copy;
    ARN_TRY(nodes_.Append(arena, node));
    *slot = nodes_.size() - 1;
  }
  *out = *slot;
  return Status::kOk;
}

}  // namespace arn::json_schema
