// The tensors of a checkpoint as a plan takes them: found under the names that they may have,
// checked for shape and type, and counted, so that what is missing and what is left over can be
// told.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "converter/hf/checkpoint.h"

namespace arn::convert {

class TensorSources {
 public:
  // prefix: of all tensors but the head; a checkpoint may leave it out. All outlive this.
  TensorSources(const Checkpoint& checkpoint, const char* prefix, const std::string& architecture)
      : checkpoint_(checkpoint), prefix_(prefix), architecture_(architecture) {}

  // The tensor, checked and counted as used; null, and noted, when it is not there. Throws
  // ConvertError when its shape or type is another.
  const Checkpoint::Entry* Take(const std::string& name, const std::vector<uint64_t>& shape);
  bool Has(const std::string& name) const { return checkpoint_.Find(StoredName(name)) != nullptr; }

  // Counts a tensor as used that may be there too as a copy of another; one that differs is left
  // over.
  void AllowCopy(const std::string& name, const Checkpoint::Entry* original);

  // Throws ConvertError naming all tensors that were not there. hint is put behind the name when
  // `only` is the one.
  void FailMissing(const std::string& only, const std::string& hint) const;
  // Throws ConvertError naming all tensors that nobody took.
  void RefuseExtra() const;

 private:
  // The name under which the checkpoint has it: with the prefix or without.
  std::string StoredName(const std::string& name) const;

  const Checkpoint& checkpoint_;
  const std::string prefix_;
  const std::string& architecture_;
  std::set<std::string> used_;
  std::vector<std::string> missing_;
};

// Whether two tensors have the same shape and values.
bool SameValues(const Checkpoint::Entry& a, const Checkpoint::Entry& b);

}  // namespace arn::convert
