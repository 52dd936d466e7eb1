// Limits of a bundle's ReplyFormat (bundle.fbs).
#pragma once

#include <cstddef>

namespace arn {

// Maximum bytes of each text, which bounds what a parser of replies holds back.
inline constexpr size_t kMaxReplyMarkBytes = 256;

}  // namespace arn
