// Replies with calls of given tools, in the format of a model's chat template, as a term.
//
//   reply = [reasoning] ( [content_begin] text | [text] calls )
//
// `calls` are as the template writes them (runtime/bundle/chat_reply.h), their arguments valid by
// the tool's schema. `text` has nothing that a parser of replies could take for the beginning of a
// call or of reasoning, so every reply of the term is parsed as what the term meant.
#pragma once

#include <cstdint>

#include "platform/base/arena.h"
#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/bundle/chat_reply.h"
#include "runtime/constrain/terms.h"

namespace arn {

enum class ToolChoice : uint8_t {
  kAuto = 0,      // text, and calls if the model wants to
  kRequired = 1,  // calls, behind the reasoning if there is any
  kNone = 2,      // no calls
  kNamed = 3,     // calls of one tool
};

// A special token that is part of a format. In a term it is kSpecialByte and its id in 3 bytes: no
// other text has that byte.
struct SpecialToken {
  int32_t id = 0;
  StringView text;
  bool ends = false;  // stops the generation
};
inline constexpr uint8_t kSpecialByte = 0xFF;
inline constexpr size_t kSpecialBytes = 4;
inline void WriteSpecial(int32_t id, uint8_t* out) {
  out[0] = kSpecialByte;
  out[1] = static_cast<uint8_t>(id >> 16);
  out[2] = static_cast<uint8_t>(id >> 8);
  out[3] = static_cast<uint8_t>(id);
}

struct ToolCallOptions {
  const chat::ReplyFormat* format = nullptr;
  Span<const SpecialToken> specials;
  ToolChoice choice = ToolChoice::kAuto;
  StringView name;         // kNamed: of the tool
  bool is_single = false;  // at most one call
  ReplyStart start = ReplyStart::kOpen;
};

// The texts of a format that may have special tokens.
struct ReplyMarks {
  static constexpr uint32_t kCount = 16;
  StringView texts[kCount];
};
ReplyMarks MarksOf(const chat::ReplyFormat& format);

// *out: the term of the replies, for Terms::Resolve(). `tools`: a JSON array as chat templates take
// it. Other arguments as those of CompileJsonSchema(). kBadArgument: not such an array, or no tool
// of that name; kUnsupported: the format has no calls, or a schema cannot be enforced in it.
Status CompileToolCalls(StringView tools, const ToolCallOptions& options, bool any_order,
                        Terms* terms, Arena* arena, Diag* diag, Term* out);

}  // namespace arn
