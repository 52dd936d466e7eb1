// Unicode normalisation forms (UAX #15).
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/arena.h"
#include "platform/base/span.h"
#include "platform/base/status.h"

namespace arn {

enum class NormalForm : uint8_t { kNfc, kNfd, kNfkc, kNfkd };

// Returns the maximum growth factor in UTF-8 bytes (UAX #15, "Maximum expansion").
constexpr size_t NormalFormGrowth(NormalForm form) {
  return form == NormalForm::kNfc || form == NormalForm::kNfd ? 3 : 11;
}

// Returns the scratch bytes that ToNormalForm needs for a text of text_bytes.
uint64_t NormalFormScratchBytes(size_t text_bytes);

// Normalises `text`. *out is `text` itself if a quick check finds no change, else it lies in
// `buffer`. A buffer of NormalFormGrowth * text.size bytes always suffices; kBufferTooSmall if a
// smaller one does not. REQUIRES: `text` is valid UTF-8. Linear in the text.
Status ToNormalForm(NormalForm form, StringView text, Span<char> buffer, Arena* scratch,
                    StringView* out);

}  // namespace arn
