// Image processors: how preprocessor_config.json says that an image becomes tiles of pixels.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "converter/base/error.h"
#include "converter/family/vision_table.h"
#include "converter/hf/config_reader.h"
#include "nlohmann/json.hpp"

namespace arn::convert {

// An image processor's config. Null: there is no file of one.
struct ProcessorFile {
  nlohmann::json config;
  std::string label;
};
ProcessorFile LoadProcessor(const std::filesystem::path& folder);

// Reads the rules of its pixels and tiles, and with them the most patches of a tile. max_pixels:
// --image-pixels, or 0. Throws ConvertError for values and keys that are not supported. REQUIRES:
// the tower's fields of *spec.
void ReadImageProcessor(const VisionFamily& family, uint32_t max_pixels, const ProcessorFile& file,
                        VisionSpec* spec, std::vector<std::string>* warnings);

// Fails if a key that was not read is left, but for those that say nothing of images.
template <size_t kCount>
void RefuseUnread(ConfigReader* reader, const char* const (&silent)[kCount]) {
  for (const char* key : silent) reader->MarkRead(key);
  const std::vector<std::string> unread = reader->Unread();
  if (unread.empty()) return;
  Fail("%s: %s: not supported for images; --no-images converts the text decoder alone",
       reader->label().c_str(), unread[0].c_str());
}

inline uint32_t CountOr(ConfigReader* reader, const char* key, uint32_t fallback) {
  return reader->Count(key).value_or(fallback);
}

// `what` says in an error what is wanted.
inline void RequireEqual(ConfigReader* reader, const char* key, uint32_t fallback, uint32_t wanted,
                         const char* what) {
  if (CountOr(reader, key, fallback) != wanted) reader->FailKey(key, what);
}

}  // namespace arn::convert
