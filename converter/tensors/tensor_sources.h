// Looks up the tensors of a checkpoint under their possible names, checks shape and type, and
// tracks use, so that missing and left-over tensors can be reported.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "converter/hf/checkpoint.h"

namespace arn::convert {

class TensorSources {
 public:
  // prefix: of all tensors but the head; a checkpoint may omit it, or have older_prefix (null: no
  // other) in its place. All arguments must outlive this.
  TensorSources(const Checkpoint& checkpoint, const char* prefix, const char* older_prefix,
                const std::string& architecture)
      : checkpoint_(checkpoint),
        prefix_(prefix),
        older_prefix_(older_prefix == nullptr ? "" : older_prefix),
        architecture_(architecture) {}

  // Names that are absent are looked up with `other` in place of `part`.
  void AddOtherPart(const std::string& part, const std::string& other) {
    other_parts_.emplace_back(part, other);
  }

  // Returns the tensor and marks it as used; returns null and records the name if it is missing.
  // Throws ConvertError if its shape or type differs.
  const Checkpoint::Entry* Take(const std::string& name, const std::vector<uint64_t>& shape);
  bool Has(const std::string& name) const { return checkpoint_.Find(StoredName(name)) != nullptr; }
  bool Has(const std::string& name, const std::vector<uint64_t>& shape) const {
    return Has(name) && checkpoint_.Find(StoredName(name))->tensor->shape == shape;
  }

  // True for a tensor that others have quantised: its rows are outputs, whatever the family.
  bool IsDecoded(const std::string& name) const {
    const Checkpoint::Entry* entry = checkpoint_.Find(StoredName(name));
    return entry != nullptr && entry->decoded != nullptr;
  }

  // Marks a tensor that may be stored as a copy of `original` as used. One that differs stays
  // unused.
  void AllowCopy(const std::string& name, const Checkpoint::Entry* original);

  // Marks a tensor that nothing uses as used, if there is one.
  void Ignore(const std::string& name) { used_.insert(StoredName(name)); }

  // Marks all tensors whose names start with `prefix` as used; returns their number.
  size_t LeaveOut(const std::string& prefix);

  // Throws ConvertError with the names of all missing tensors. Adds `hint` after the name if only
  // `only` is missing.
  void FailMissing(const std::string& only, const std::string& hint) const;
  // Throws ConvertError with the names of all unused tensors that begin with `prefix`.
  void RefuseExtra(const std::string& prefix = "") const;

 private:
  // Returns the checkpoint's name, with or without the prefix.
  std::string StoredName(const std::string& name) const;

  const Checkpoint& checkpoint_;
  const std::string prefix_, older_prefix_;
  std::vector<std::pair<std::string, std::string>> other_parts_;
  const std::string& architecture_;
  std::set<std::string> used_;
  std::vector<std::string> missing_;
};

// True if two tensors have the same shape and values.
bool SameValues(const Checkpoint::Entry& a, const Checkpoint::Entry& b);

}  // namespace arn::convert
