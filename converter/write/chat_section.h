// Writes a bundle's chat templates: programs in segments, the rest in the index.
#pragma once

#include <vector>

#include "converter/base/reply_format_text.h"
#include "converter/hf/chat_template.h"
#include "converter/write/bundle_writer.h"
#include "flatbuffers/flatbuffers.h"
#include "runtime/bundle/bundle_generated.h"

namespace arn::convert {

// Appends one segment per template.
std::vector<fbs::Segment> WriteChat(const ChatTemplates& chat, BundleWriter* writer);
// Returns null if there are no templates. `reply` may be empty.
flatbuffers::Offset<fbs::Chat> CreateChat(const ChatTemplates& chat, const ReplyFormatText& reply,
                                          const std::vector<fbs::Segment>& segments,
                                          flatbuffers::FlatBufferBuilder* builder);

}  // namespace arn::convert
