// ReplyText: the text of one reply as its tokens come.
#pragma once

#include "platform/base/span.h"
#include "runtime/session/stop_filter.h"
#include "runtime/text/tokenizer.h"

namespace arn {

class ReplyText {
 public:
  // tokenizer: null: there is no text. buffer, stops: as of StopFilter.
  ReplyText(const Tokenizer* tokenizer, Span<const StringView> stops, Span<char> buffer)
      : tokenizer_(tokenizer), filter_(stops, buffer) {}

  // Adds a token. Returns true if a stop string is complete. *text is valid until the next call.
  bool Add(int32_t id, StringView* text) {
    if (tokenizer_ == nullptr) return false;
    return filter_.Add(tokenizer_->DecodeToken(&decode_, id, true, filter_.Space()), false, text);
  }
  // Adds the last token, and with it all that was held back.
  bool AddLast(int32_t id, StringView* text) {
    if (tokenizer_ == nullptr) return false;
    const Span<char> space = filter_.Space();
    size_t bytes = tokenizer_->DecodeToken(&decode_, id, true, space);
    bytes += tokenizer_->DecodeFinish(&decode_, space.subspan(bytes, space.size() - bytes));
    return filter_.Add(bytes, true, text);
  }
  // Ends the text without another token.
  bool End(StringView* text) {
    if (tokenizer_ == nullptr) return false;
    return filter_.Add(tokenizer_->DecodeFinish(&decode_, filter_.Space()), true, text);
  }

 private:
  const Tokenizer* tokenizer_;
  StopFilter filter_;
  Tokenizer::DecodeState decode_;
};

}  // namespace arn
