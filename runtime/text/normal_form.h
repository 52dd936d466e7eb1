// The Unicode normalization forms (UAX #15).
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/arena.h"
#include "platform/base/span.h"
#include "platform/base/status.h"

namespace arn {

enum class NormalForm : uint8_t { kNfc, kNfd, kNfkc, kNfkd };

// Text grows to at most this many times its UTF-8 bytes (UAX #15, "Maximum expansion").
constexpr size_t NormalFormGrowth(NormalForm form) {
  return form == NormalForm::kNfc || form == NormalForm::kNfd ? 3 : 11;
}

// Scratch that ToNormalForm takes for a text of at most that many bytes.
uint64_t NormalFormScratchBytes(size_t text_bytes);

// *out is `text` itself when normalizing changes nothing that is easily seen, else it lies in
// `buffer`; NormalFormGrowth * text.size bytes are always enough, with less the status may be
// kBufferTooSmall. `text` is valid UTF-8. Linear in the text.
Status ToNormalForm(NormalForm form, StringView text, Span<char> buffer, Arena* scratch,
                    StringView* out);

}  // namespace arn
