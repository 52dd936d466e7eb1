// Deltas between two versions of a file, by blocks (docs/bundle-format.md#patches). Large segments
// of a bundle begin at blocks, so that those which are in both are found wherever they lie.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

namespace arn::bundle {

// A sentence that names the file.
class PatchError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct PatchSizes {
  uint64_t new_bytes = 0;
  uint64_t copied_bytes = 0;  // of the new file, from the old one
  uint64_t patch_bytes = 0;
};

// Writes the patch that makes `new_path` of `old_path`. Throws PatchError; leaves no file then.
PatchSizes WritePatch(const std::string& old_path, const std::string& new_path,
                      const std::string& patch_path);

// Writes the new file, which may replace the old one. It appears under its name when it is whole,
// has the patch's hash, and `check`, called with its temporary name, has not thrown. Throws
// PatchError; leaves no file then.
PatchSizes ApplyPatch(const std::string& old_path, const std::string& patch_path,
                      const std::string& new_path,
                      const std::function<void(const std::string& temporary)>& check);

}  // namespace arn::bundle
