#include "runtime/conversation/transcript.h"

#include <cstring>

#include "platform/base/arith.h"

namespace arn {
namespace {

size_t CommonBytes(std::string_view a, std::string_view b) {
  const size_t n = Min(a.size(), b.size());
  size_t common = 0;
  while (common < n && a[common] == b[common]) ++common;
  return common;
}

// Mixes the spans before `end` into a number, to tell whether two texts have the same ones there.
uint64_t HashOf(Span<const TextSpan> spans, size_t end) {
  uint64_t hash = 0x9E3779B97F4A7C15;
  const auto mix = [&hash](uint64_t value) {
    hash = (hash ^ value) * 0xBF58476D1CE4E5B9;
    hash ^= hash >> 29;
  };
  for (const TextSpan& span : spans) {
    if (span.offset >= end) break;
    mix(span.offset);
    mix(Min(span.offset + span.bytes, end));
  }
  return hash;
}

// True if the text decoded so far is all that its ids say.
bool IsComplete(const Tokenizer::DecodeState& state) {
  return state.pending_size == 0 && !state.bad_run && !state.space_waits;
}

}  // namespace

void Transcript::CutTo(size_t n_common, Span<const TextSpan> plain, Tokenizer::DecodeState* state) {
  *state = Tokenizer::MiddleOfText();
  while (n_replies_ > 0 && (LastReply().first_byte > n_common ||
                            LastReply().plain_hash != HashOf(plain, LastReply().first_byte))) {
    --n_replies_;
  }
  if (n_replies_ == 0) {
    n_bytes_ = n_ids_ = 0;
    return;
  }
  const Reply& reply = LastReply();
  n_bytes_ = reply.first_byte;
  n_ids_ = reply.first_id;
  Tokenizer::DecodeState now = *state;
  size_t bytes = n_bytes_;
  for (size_t i = reply.first_id; i < reply.end_id; ++i) {
    bytes += tokenizer_->DecodeToken(&now, buffers_.ids[i], /*skip_special=*/false, buffers_.piece);
    if (bytes > n_common) break;
    if (bytes == n_bytes_ || !IsComplete(now)) continue;
    *state = now;
    n_bytes_ = bytes;
    n_ids_ = i + 1;
  }
}

Status Transcript::Encode(std::string_view text, Span<const TextSpan> plain, Span<int32_t> out,
                          size_t* n_ids, Diag* diag) {
  Tokenizer::EncodeOptions options;  // templates write BOS themselves
  options.plain_spans = plain;
  const Status status =
      tokenizer_->Encode({text.data(), text.size()}, options, buffers_.scratch, out, n_ids, diag);
  return status == Status::kBufferTooSmall && *n_ids > out.size() ? Status::kOk : status;
}

bool Transcript::Spells(Tokenizer::DecodeState state, Span<const int32_t> ids,
                        std::string_view text) const {
  for (size_t i = 0; i <= ids.size(); ++i) {
    const size_t n = i < ids.size() ? tokenizer_->DecodeToken(&state, ids[i], false, buffers_.piece)
                                    : tokenizer_->DecodeFinish(&state, buffers_.piece);
    if (n > text.size() || std::memcmp(buffers_.piece.data(), text.data(), n) != 0) return false;
    text.remove_prefix(n);
  }
  return text.empty();
}

Status Transcript::Become(std::string_view text, Span<const TextSpan> plain, size_t* n_ids,
                          Diag* diag) {
  Tokenizer::DecodeState state;
  CutTo(CommonBytes(text, this->text()), plain, &state);
  const std::string_view added = text.substr(n_bytes_);
  size_t n_spans = 0;
  for (const TextSpan& span : plain) {
    const size_t end = span.offset + span.bytes;
    if (end <= n_bytes_ || n_spans == buffers_.spans.size()) continue;
    const size_t begin = Max(span.offset, n_bytes_);
    buffers_.spans[n_spans++] = {begin - n_bytes_, end - begin};
  }
  Span<int32_t> room = buffers_.ids.subspan(n_ids_, buffers_.ids.size() - n_ids_);
  size_t n_added = 0;
  ARN_TRY(Encode(added, {buffers_.spans.data(), n_spans}, room, &n_added, diag));
  if (n_ids_ > 0 && n_added <= room.size() && !Spells(state, {room.data(), n_added}, added)) {
    // The text is spelled otherwise behind other text: a tokenizer that puts a space before it.
    n_replies_ = n_bytes_ = n_ids_ = 0;
    room = buffers_.ids;
    ARN_TRY(Encode(text, plain, room, &n_added, diag));
  }
  *n_ids = n_ids_ + n_added;
  if (n_added > room.size()) return Status::kContextFull;
  std::memcpy(buffers_.text.data() + n_bytes_, text.data() + n_bytes_, text.size() - n_bytes_);
  n_bytes_ = text.size();
  n_ids_ = *n_ids;
  plain_hash_ = HashOf(plain, n_bytes_);
  return Status::kOk;
}

void Transcript::BeginReply() {
  // The same text again: its reply is replaced.
  if (n_replies_ > 0 && LastReply().first_byte == n_bytes_) --n_replies_;
  if (n_replies_ == buffers_.replies.size()) {
    --n_replies_;
    std::memmove(buffers_.replies.data(), buffers_.replies.data() + 1, n_replies_ * sizeof(Reply));
  }
  buffers_.replies[n_replies_++] = {n_bytes_, n_ids_, n_ids_, plain_hash_};
}

bool Transcript::AddReply(std::string_view text) {
  if (text.size() > buffers_.text.size() - n_bytes_) return false;
  if (!text.empty()) std::memcpy(buffers_.text.data() + n_bytes_, text.data(), text.size());
  n_bytes_ += text.size();
  return true;
}

void Transcript::EndReply(Span<const int32_t> ids) {
  const size_t n_common = Min(n_ids_, ids.size());
  if (n_common < n_ids_ || ids.size() > buffers_.ids.size() ||
      std::memcmp(ids.data(), buffers_.ids.data(), n_ids_ * sizeof(int32_t)) != 0) {
    n_replies_ = n_bytes_ = n_ids_ = 0;
    return;
  }
  std::memcpy(buffers_.ids.data() + n_ids_, ids.data() + n_ids_,
              (ids.size() - n_ids_) * sizeof(int32_t));
  n_ids_ = ids.size();
  buffers_.replies[n_replies_ - 1].end_id = n_ids_;
}

}  // namespace arn
