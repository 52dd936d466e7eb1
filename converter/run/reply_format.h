// Finds the reply format of a bundle that was just written, with the runtime library.
#pragma once

#include <filesystem>

#include "converter/base/reply_format_text.h"

namespace arn::convert {

// Renders the bundle's default template. Returns an empty format if the bundle has no template or
// its template shows nothing. Throws ConvertError if the bundle cannot be opened.
ReplyFormatText ProbeReplyFormat(const std::filesystem::path& bundle);

}  // namespace arn::convert
