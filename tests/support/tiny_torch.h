// Writes small files as torch.save does: a zip archive of stored entries with a pickle.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/tiny_checkpoint.h"

namespace arn::test {

// Names and bytes of an archive's entries, in order.
using ZipParts = std::vector<std::pair<std::string, std::string>>;

// Returns an archive of stored entries; is_64: with all sizes and offsets in the 64-bit fields.
std::string EncodeZip(const ZipParts& parts, bool is_64 = false);

// Returns an archive with this data.pkl and these storages, "0", "1" ...
std::string EncodeTorchArchive(const std::string& pickle, const std::vector<std::string>& storages,
                               bool is_64 = false);

// Returns the file of a dictionary of tensors, each with a storage of its own.
std::string EncodeTorch(const TinyTensors& tensors, bool is_64 = false);

// Replaces the *.safetensors files and the index of `folder` by *.bin files that hold the same.
void UseTorchFiles(const std::filesystem::path& folder);

}  // namespace arn::test
