// Converts ids to text.
#include "runtime/text/tokenizer_impl.h"
#include "runtime/text/utf8.h"

namespace arn {
namespace {

// Checks incrementally whether bytes are UTF-8.
class Utf8Check {
 public:
  void Add(uint8_t byte) {
    if (is_bad_) return;
    pending_[size_++] = static_cast<char>(byte);
    const Utf8Char c = ReadUtf8(pending_, pending_ + size_);
    is_bad_ = c.kind == Utf8Kind::kInvalid;
    if (c.kind == Utf8Kind::kValid) size_ = 0;
  }
  bool IsValid() const { return !is_bad_ && size_ == 0; }

 private:
  char pending_[4] = {0};
  size_t size_ = 0;
  bool is_bad_ = false;
};

}  // namespace

bool Tokenizer::IsDecoded(int32_t id, bool skip_special) const {
  return id >= 0 && static_cast<uint32_t>(id) < n_tokens() && !(skip_special && IsSpecial(id)) &&
         DecodedText(id).size > 0;
}

StringView Tokenizer::DecodedText(int32_t id) const {
  StringView text;
  return impl_->added.FindDecoded(static_cast<uint32_t>(id), &text) ? text : TokenText(id);
}

size_t Tokenizer::DecodeToken(DecodeState* state, int32_t id, bool skip_special,
                              Span<char> out) const {
  if (!IsDecoded(id, skip_special)) return 0;
  TextSink sink(out);
  DecodeState next = *state;
  impl_->decoder.Token(&next, DecodedText(id), false, &sink);
  if (sink.fits()) *state = next;
  return sink.size();
}

size_t Tokenizer::AppendedBytes(int32_t id, bool is_first, Span<char> out) const {
  if (!IsDecoded(id, true)) return 0;
  TextSink sink(out);
  impl_->decoder.Bytes(DecodedText(id), is_first, &sink);
  return sink.size();
}

bool Tokenizer::HasAppendedBytes() const { return impl_->decoder.HasBytes(); }

Tokenizer::DecodeState Tokenizer::MiddleOfText() {
  DecodeState state;
  state.started = true;
  state.stripped = UINT32_MAX;
  return state;
}

size_t Tokenizer::DecodeFinish(DecodeState* state, Span<char> out) const {
  TextSink sink(out);
  DecodeState next = *state;
  impl_->decoder.Finish(&next, &sink);
  if (sink.fits()) *state = next;
  return sink.size();
}

Status Tokenizer::Decode(Span<const int32_t> ids, bool skip_special, Span<char> out,
                         size_t* n_bytes) const {
  const TokenDecoder& decoder = impl_->decoder;
  TextSink sink(out);
  DecodeState state;
  size_t n_ids = ids.size();  // up to the last id that gives text
  while (n_ids > 0 && !IsDecoded(ids[n_ids - 1], skip_special)) --n_ids;
  for (size_t i = 0; i < n_ids;) {
    // Checks a run of byte tokens as a whole.
    Utf8Check check;
    size_t n_bytes_of_run = 0;
    size_t end = i;
    for (; end < n_ids; ++end) {
      if (!IsDecoded(ids[end], skip_special)) continue;
      uint8_t byte = 0;
      if (!decoder.ReadByte(DecodedText(ids[end]), &byte)) break;
      check.Add(byte);
      ++n_bytes_of_run;
    }
    if (check.IsValid()) {
      for (; i < end; ++i) {
        if (IsDecoded(ids[i], skip_special))
          decoder.Token(&state, DecodedText(ids[i]), false, &sink);
      }
    } else {
      decoder.InvalidBytes(&state, n_bytes_of_run, &sink);
    }
    if (end < n_ids) decoder.Token(&state, DecodedText(ids[end]), end + 1 == n_ids, &sink);
    i = end + 1;
  }
  decoder.Finish(&state, &sink);
  *n_bytes = sink.size();
  return sink.fits() ? Status::kOk : Status::kBufferTooSmall;
}

}  // namespace arn
