// Reads of what FlatBuffers returns for fields that may be absent: null pointers.
#pragma once

#include <cstdint>

#include "platform/base/span.h"
#include "runtime/bundle/bundle_generated.h"

namespace arn {

// An index field of the bundle that is absent.
inline constexpr uint32_t kNoIndex = UINT32_MAX;

// Returns the size of a vector; 0 if it is absent. 64 bits, so that products of sizes do not wrap.
template <typename V>
uint64_t CountOf(const V* vector) {
  return vector == nullptr ? 0 : vector->size();
}

// Returns the text of a string, which must outlive the view; empty if it is absent.
inline StringView ViewOf(const flatbuffers::String* text) {
  return text == nullptr ? StringView() : StringView(text->c_str(), text->size());
}

}  // namespace arn
