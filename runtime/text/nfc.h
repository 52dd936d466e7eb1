// Unicode normalization form C (UAX #15).
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/arena.h"
#include "platform/base/span.h"
#include "platform/base/status.h"

namespace arn {

// A character grows to at most this many times its UTF-8 bytes (UAX #15, "Maximum expansion").
inline constexpr size_t kNfcGrowth = 3;

// Scratch that ToNfc takes for a text of at most that many bytes.
uint64_t NfcScratchBytes(size_t text_bytes);

// *out is `text` itself when normalizing changes nothing that is easily seen, else it lies in
// `buffer`; kNfcGrowth * text.size bytes are always enough, and kBufferTooSmall says that they were
// needed. `text` is valid UTF-8. Linear in the text.
Status ToNfc(StringView text, Span<char> buffer, Arena* scratch, StringView* out);

}  // namespace arn
