#include "converter/tensors/tensor_sources.h"

#include <algorithm>

#include "converter/base/error.h"

namespace arn::convert {
namespace {

// True for tables that are computed from the config and that checkpoints carry beside their
// parameters.
bool IsDerived(const std::string& name) {
  // The last one: a tensor of some published checkpoints that no computation uses.
  constexpr const char* kSuffixes[] = {
      ".rotary_emb.inv_freq",   ".attn.bias",
      ".attn.masked_bias",      ".attention.bias",
      ".attention.masked_bias", ".EncDecAttention.relative_attention_bias.weight"};
  return std::any_of(std::begin(kSuffixes), std::end(kSuffixes), [&](const std::string& suffix) {
    return name.size() > suffix.size() &&
           name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0;
  });
}

// True for the bias of zeros that some quantisers store for each matrix, of models without biases.
bool IsZeroBias(const Checkpoint& checkpoint, const std::string& name) {
  const std::string end = ".bias";
  if (name.size() <= end.size() || name.compare(name.size() - end.size(), end.size(), end) != 0) {
    return false;
  }
  const Checkpoint::Entry* weight =
      checkpoint.Find(name.substr(0, name.size() - end.size()) + ".weight");
  if (weight == nullptr || weight->decoded == nullptr) return false;
  const Checkpoint::Entry& bias = *checkpoint.Find(name);
  if (!Checkpoint::IsFloat(*bias.tensor)) return false;
  std::vector<float> values(bias.tensor->elements());
  Checkpoint::ReadFloats(bias, 0, values.size(), values.data());
  return std::all_of(values.begin(), values.end(), [](float x) { return x == 0.0f; });
}

}  // namespace

std::string TensorSources::StoredName(const std::string& name) const {
  if (checkpoint_.Find(name) != nullptr) return name;
  for (const auto& [part, other] : other_parts_) {
    std::string renamed = name;
    const size_t at = renamed.find(part);
    if (at == std::string::npos) continue;
    renamed.replace(at, part.size(), other);
    if (checkpoint_.Find(renamed) != nullptr) return renamed;
  }
  if (name.compare(0, prefix_.size(), prefix_) != 0) return name;
  const std::string bare = name.substr(prefix_.size());
  if (!older_prefix_.empty() && checkpoint_.Find(older_prefix_ + bare) != nullptr) {
    return older_prefix_ + bare;
  }
  return checkpoint_.Find(bare) != nullptr ? bare : name;
}

const Checkpoint::Entry* TensorSources::Take(const std::string& name,
                                             const std::vector<uint64_t>& shape) {
  const std::string stored = StoredName(name);
  const Checkpoint::Entry* entry = checkpoint_.Find(stored);
  if (entry == nullptr) {
    missing_.push_back(name);
    return nullptr;
  }
  const SourceTensor& tensor = *entry->tensor;
  if (tensor.shape != shape) {
    Fail("%s: tensor %s: expected shape %s, found %s", entry->file->path().c_str(),
         tensor.name.c_str(), ShapeText(shape).c_str(), ShapeText(tensor.shape).c_str());
  }
  if (!Checkpoint::IsFloat(tensor)) {
    Fail("%s: tensor %s: expected type %s, found %s", entry->file->path().c_str(),
         tensor.name.c_str(), entry->file->readable_types(), tensor.dtype.c_str());
  }
  used_.insert(stored);
  return entry;
}

void TensorSources::AllowCopy(const std::string& name, const Checkpoint::Entry* original) {
  const Checkpoint::Entry* copy = checkpoint_.Find(name);
  if (copy == nullptr || original == nullptr) return;
  if (copy == original || SameValues(*copy, *original)) used_.insert(name);
}

size_t TensorSources::LeaveOut(const std::string& prefix) {
  size_t n = 0;
  for (const auto& [name, entry] : checkpoint_.entries()) {
    if (name.compare(0, prefix.size(), prefix) != 0) continue;
    used_.insert(name);
    ++n;
  }
  return n;
}

// Lists all missing tensors in one error, not just the first.
void TensorSources::FailMissing(const std::string& only, const std::string& hint) const {
  if (missing_.empty()) return;
  const bool is_only = missing_.size() == 1 && missing_[0] == only;
  Fail("the checkpoint lacks %zu tensor%s that %s needs: %s%s", missing_.size(),
       missing_.size() == 1 ? "" : "s", architecture_.c_str(), JoinNames(missing_).c_str(),
       is_only ? hint.c_str() : "");
}

void TensorSources::RefuseExtra(const std::string& prefix) const {
  std::vector<std::string> extra;
  for (const auto& [name, entry] : checkpoint_.entries()) {
    if (name.compare(0, prefix.size(), prefix) != 0) continue;
    if (used_.count(name) != 0 || IsDerived(name) || IsZeroBias(checkpoint_, name)) continue;
    extra.push_back(name);
  }
  if (extra.empty()) return;
  Fail("the checkpoint has %zu tensor%s that %s does not account for: %s", extra.size(),
       extra.size() == 1 ? "" : "s", architecture_.c_str(), JoinNames(extra).c_str());
}

bool SameValues(const Checkpoint::Entry& a, const Checkpoint::Entry& b) {
  if (a.tensor->shape != b.tensor->shape) return false;
  const bool is_stored =
      a.added == nullptr && b.added == nullptr && a.decoded == nullptr && b.decoded == nullptr;
  if (is_stored && a.file == b.file && a.tensor->offset == b.tensor->offset &&
      a.tensor->dtype == b.tensor->dtype) {
    return true;
  }
  constexpr uint64_t kSlab = 1 << 20;
  std::vector<float> left(kSlab), right(kSlab);
  const uint64_t count = a.tensor->elements();
  for (uint64_t at = 0; at < count; at += kSlab) {
    const uint64_t n = std::min(kSlab, count - at);
    Checkpoint::ReadFloats(a, at, n, left.data());
    Checkpoint::ReadFloats(b, at, n, right.data());
    if (!std::equal(left.begin(), left.begin() + static_cast<ptrdiff_t>(n), right.begin())) {
      return false;
    }
  }
  return true;
}

}  // namespace arn::convert
