// Transcript: the text of a conversation that a model has read and written, and the ids of it.
// Finds the ids of the next text so that as many as possible are those that the session already
// holds.
//
// A tokenizer may split a text otherwise than the model wrote it, so the ids of a reply are kept as
// they were generated, as long as the next text begins with the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/text/tokenizer.h"

namespace arn {

class Transcript {
 public:
  // A reply in the transcript: where it begins, and where the ids of it end.
  struct Reply {
    size_t first_byte = 0;
    size_t first_id = 0;
    size_t end_id = 0;
    // Hash of the plain spans before it, so that a user who writes what a template wrote before
    // does not get the template's ids for it.
    uint64_t plain_hash = 0;
  };
  static constexpr size_t kMaxReplies = 64;  // older ones are tokenised with the rest

  struct Buffers {
    Span<char> text;
    Span<int32_t> ids;
    Span<Reply> replies;      // [kMaxReplies]
    Span<char> piece;         // [Tokenizer::max_piece_bytes()]
    Span<std::byte> scratch;  // Tokenizer::EncodeScratchBytes(text.size())
    Span<TextSpan> spans;     // [MaxSpans(text.size())]
  };
  static size_t MaxSpans(size_t text_bytes) { return text_bytes / 2 + 1; }

  Transcript() = default;
  // All must outlive the transcript.
  Transcript(const Tokenizer* tokenizer, const Buffers& buffers)
      : tokenizer_(tokenizer), buffers_(buffers) {}

  // Replaces the transcript by this text, whose plain spans are given (Tokenizer::EncodeOptions).
  // *n_ids: number of its ids. kContextFull, with *n_ids set, if they do not fit; the transcript
  // then has the beginning that both have in common. REQUIRES: text fits.
  Status Become(std::string_view text, Span<const TextSpan> plain, size_t* n_ids, Diag* diag);

  // Begins a reply at the end.
  void BeginReply();
  // Appends text of the reply. Returns false if it does not fit.
  bool AddReply(std::string_view text);
  // Ends the reply: `ids` are all ids of the session's sequence. Forgets everything if they no
  // longer begin with the transcript's (a context shift).
  void EndReply(Span<const int32_t> ids);

  Span<const int32_t> ids() const { return {buffers_.ids.data(), n_ids_}; }
  std::string_view text() const { return {buffers_.text.data(), n_bytes_}; }
  // Returns the text of the last reply. REQUIRES: BeginReply() since Become().
  std::string_view reply() const { return text().substr(LastReply().first_byte); }

 private:
  const Reply& LastReply() const { return buffers_.replies[n_replies_ - 1]; }
  // Cuts back to the last id within the first n_common bytes at which a text may go on. *state: of
  // decoding behind it.
  void CutTo(size_t n_common, Span<const TextSpan> plain, Tokenizer::DecodeState* state);
  Status Encode(std::string_view text, Span<const TextSpan> plain, Span<int32_t> out, size_t* n_ids,
                Diag* diag);
  // True if the ids spell the text when decoded behind the state.
  bool Spells(Tokenizer::DecodeState state, Span<const int32_t> ids, std::string_view text) const;

  const Tokenizer* tokenizer_ = nullptr;
  Buffers buffers_;
  size_t n_bytes_ = 0;
  size_t n_ids_ = 0;
  size_t n_replies_ = 0;
  uint64_t plain_hash_ = 0;  // of the text that Become() was given
};

}  // namespace arn
