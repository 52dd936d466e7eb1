#include "runtime/text/pre_tokenize.h"

#include <cstdio>
#include <cstring>

#include "platform/base/arith.h"
#include "runtime/bundle/optional_fields.h"
#include "runtime/text/byte_alphabet.h"
#include "runtime/text/unicode.h"
#include "runtime/text/utf8.h"

namespace arn {
namespace {

bool StartsWith(StringView text, StringView prefix) {
  return text.size >= prefix.size && std::memcmp(text.data, prefix.data, prefix.size) == 0;
}

}  // namespace

// State of one Run.
struct PreTokenizer::Job {
  StringView text;
  bool at_start;
  RegexMatcher* matcher;
  Span<char> buffer;
  PieceSink* sink;
  Diag* diag;
  bool is_in_alphabet = false;  // the piece is spelled in ByteLevel's alphabet
  Span<char> bytes = {};        // buffer for the bytes of such a piece
};

// Receives the matches of a delimiter in order and emits them and the text between as pieces for
// step `next`.
class PreTokenizer::Splitter {
 public:
  Splitter(const PreTokenizer& owner, const Job& job, uint32_t next, StringView text,
           fbs::SplitBehavior behavior, bool invert)
      : owner_(owner), job_(job), next_(next), text_(text), behavior_(behavior), invert_(invert) {}

  Status Match(size_t begin, size_t end) {
    if (begin > position_) ARN_TRY(Part(position_, begin, false));
    position_ = end;
    return Part(begin, end, true);
  }
  Status Finish() {
    if (position_ < text_.size) ARN_TRY(Part(position_, text_.size, false));
    return has_waiting_ ? Emit(waiting_begin_, waiting_end_) : Status::kOk;
  }

 private:
  Status Part(size_t begin, size_t end, bool is_match) {
    is_match ^= invert_;
    const bool previous_match = previous_match_;
    previous_match_ = is_match;
    switch (behavior_) {
      case fbs::SplitBehavior::Isolated: return Emit(begin, end);
      case fbs::SplitBehavior::Removed: return is_match ? Status::kOk : Emit(begin, end);
      case fbs::SplitBehavior::Contiguous: return Join(begin, end, is_match == previous_match);
      case fbs::SplitBehavior::MergedWithPrevious:
        return Join(begin, end, is_match && !previous_match);
      case fbs::SplitBehavior::MergedWithNext:
        // Only a match waits to be joined, and only with text.
        return Join(begin, end, !is_match && previous_match);
    }
    return Status::kInternal;
  }

  // Extends the waiting part, or emits it and waits with the new one.
  Status Join(size_t begin, size_t end, bool lengthens) {
    if (has_waiting_ && lengthens) {
      waiting_end_ = end;
      return Status::kOk;
    }
    const bool had_waiting = has_waiting_;
    const size_t old_begin = waiting_begin_;
    const size_t old_end = waiting_end_;
    has_waiting_ = true;
    waiting_begin_ = begin;
    waiting_end_ = end;
    return had_waiting ? Emit(old_begin, old_end) : Status::kOk;
  }

  Status Emit(size_t begin, size_t end) {
    if (begin == end) return Status::kOk;
    return owner_.RunStep(job_, next_, {text_.data + begin, end - begin});
  }

  const PreTokenizer& owner_;
  const Job& job_;
  const uint32_t next_;
  const StringView text_;
  const fbs::SplitBehavior behavior_;
  const bool invert_;
  size_t position_ = 0;
  bool previous_match_ = false;
  bool has_waiting_ = false;
  size_t waiting_begin_ = 0;
  size_t waiting_end_ = 0;
};

uint64_t PreTokenizer::ArenaBytes(const fbs::Tokenizer& table) {
  uint64_t bytes = 0;
  if (table.pre_tokenizers() == nullptr) return 0;
  for (const fbs::PreTokenizer* step : *table.pre_tokenizers()) {
    bytes += Regex::ArenaBytes(ViewOf(step->regex()).size);
  }
  return bytes;
}

Status PreTokenizer::Init(const fbs::Tokenizer& table, Arena* arena, Diag* diag) {
  const uint32_t count = table.pre_tokenizers() == nullptr ? 0 : table.pre_tokenizers()->size();
  if (count > kMaxSteps) {
    return diag->Fail(Status::kBadBundle,
                      "tokenizer.pre_tokenizers has %u entries, expected at most %u", count,
                      kMaxSteps);
  }
  for (uint32_t i = 0; i < count; ++i) {
    ARN_TRY(InitStep(i, *table.pre_tokenizers()->Get(i), i + 1 == count, arena, diag));
  }
  return Status::kOk;
}

Status PreTokenizer::InitStep(uint32_t index, const fbs::PreTokenizer& source, bool is_last,
                              Arena* arena, Diag* diag) {
  Step& step = steps_[n_steps_++];
  step = Step();
  step.kind = source.kind();
  step.behavior = source.behavior();
  step.prepend_scheme = source.prepend_scheme();
  step.invert = source.invert();
  step.add_prefix_space = source.add_prefix_space();
  step.individual_digits = source.individual_digits();
  step.split = source.split();
  step.replacement = ViewOf(source.replacement());
  const auto unknown = [&](const char* field, unsigned value) {
    return diag->Fail(Status::kBadBundle,
                      "tokenizer.pre_tokenizers[%u].%s is %u, which this version does not know",
                      index, field, value);
  };
  if (step.behavior > fbs::SplitBehavior::Contiguous) {
    return unknown("behavior", static_cast<unsigned>(step.behavior));
  }
  if (step.prepend_scheme > fbs::PrependScheme::Never) {
    return unknown("prepend_scheme", static_cast<unsigned>(step.prepend_scheme));
  }
  switch (step.kind) {
    case fbs::PreTokenizerKind::SplitRegex: step.has_regex = true; break;
    case fbs::PreTokenizerKind::ByteLevel:
      step.has_regex = source.use_regex();
      step.behavior = fbs::SplitBehavior::Isolated;
      step.invert = false;
      break;
    case fbs::PreTokenizerKind::Digits:
    case fbs::PreTokenizerKind::Punctuation: break;
    case fbs::PreTokenizerKind::Whitespace:
    case fbs::PreTokenizerKind::Words: drops_spaces_ |= !is_last; break;
    case fbs::PreTokenizerKind::Metaspace:
      if (step.replacement.size == 0 || !IsValidUtf8(step.replacement) ||
          ReadValidUtf8(step.replacement.data).bytes != step.replacement.size) {
        return diag->Fail(Status::kBadBundle,
                          "tokenizer.pre_tokenizers[%u].replacement is not one character", index);
      }
      break;
    default: return unknown("kind", static_cast<unsigned>(step.kind));
  }
  const bool is_byte_level = step.kind == fbs::PreTokenizerKind::ByteLevel;
  const bool is_metaspace = step.kind == fbs::PreTokenizerKind::Metaspace;
  if ((is_metaspace && !is_last) || ((is_byte_level || is_metaspace) && byte_level_ < index)) {
    return diag->Fail(Status::kBadBundle,
                      "tokenizer.pre_tokenizers[%u] changes text that another step changes, or "
                      "looks at, too",
                      index);
  }
  if (is_byte_level) byte_level_ = index;
  if (!step.has_regex) return Status::kOk;
  const StringView regex = ViewOf(source.regex());
  if (regex.size == 0) {
    return diag->Fail(Status::kBadBundle, "tokenizer.pre_tokenizers[%u].regex is missing", index);
  }
  char what[64];
  std::snprintf(what, sizeof what, "tokenizer.pre_tokenizers[%u]", index);
  uses_regex_ = true;
  return step.regex.Compile(regex, what, arena, diag);
}

StringView PreTokenizer::space_replacement() const {
  if (n_steps_ == 0 || steps_[n_steps_ - 1].kind != fbs::PreTokenizerKind::Metaspace) return {};
  return steps_[n_steps_ - 1].replacement;
}

uint64_t PreTokenizer::BufferBytes(uint64_t text_bytes) const {
  if (n_steps_ == 0) return 0;
  const Step& last = steps_[n_steps_ - 1];
  if (last.kind == fbs::PreTokenizerKind::Metaspace) {
    return drops_spaces_ ? text_bytes + last.replacement.size
                         : (text_bytes + 1) * last.replacement.size;
  }
  if (!units_are_bytes()) return 0;
  const uint64_t bytes = text_bytes + (steps_[byte_level_].add_prefix_space ? 1 : 0);
  // Room for the text with its prefix; after ByteLevel also for its spelling in the alphabet and
  // the bytes again.
  const bool is_last = byte_level_ + 1 == n_steps_;
  return (steps_[byte_level_].add_prefix_space ? bytes : 0) +
         (is_last ? 0 : 2 * kAlphabetBytes * bytes);
}

Status PreTokenizer::Run(StringView text, bool at_start, RegexMatcher* matcher, Span<char> buffer,
                         PieceSink* sink, Diag* diag) const {
  const Job job = {text, at_start, matcher, buffer, sink, diag};
  return text.size == 0 ? Status::kOk : RunStep(job, 0, text);
}

Status PreTokenizer::RunStep(const Job& job, uint32_t index, StringView piece) const {
  if (index == byte_level_ + 1 && index < n_steps_ && !job.is_in_alphabet) {
    return RunBehindByteLevel(job, index, piece);
  }
  if (index == n_steps_) return job.is_in_alphabet ? PutBytes(job, piece) : job.sink->Put(piece);
  switch (steps_[index].kind) {
    case fbs::PreTokenizerKind::SplitRegex: return RunRegex(job, index, piece);
    case fbs::PreTokenizerKind::ByteLevel: return RunByteLevel(job, index, piece);
    case fbs::PreTokenizerKind::Digits: return RunDigits(job, index, piece);
    case fbs::PreTokenizerKind::Metaspace: return RunMetaspace(job, index, piece);
    case fbs::PreTokenizerKind::Whitespace: return RunWhitespace(job, index, piece);
    case fbs::PreTokenizerKind::Words: return RunWords(job, index, piece);
    case fbs::PreTokenizerKind::Punctuation: return RunPunctuation(job, index, piece);
  }
  return Status::kInternal;
}

// Steps after ByteLevel see its alphabet, in which each character is a byte.
Status PreTokenizer::RunBehindByteLevel(const Job& job, uint32_t index, StringView piece) const {
  // Placed after the text with its prefix, which pieces may point into. The bytes need less room.
  constexpr size_t kParts = 2 * kAlphabetBytes;
  const size_t prefixed =
      steps_[byte_level_].add_prefix_space ? job.buffer.size() / (kParts + 1) : 0;
  if (piece.size > (job.buffer.size() - prefixed) / kParts) return Status::kInternal;
  char* const spelled = job.buffer.data() + prefixed;
  size_t size = 0;
  for (size_t i = 0; i < piece.size; ++i) {
    size += WriteUtf8(CharacterOfByte(static_cast<uint8_t>(piece.data[i])), spelled + size);
  }
  Job inner = job;
  inner.is_in_alphabet = true;
  inner.bytes = {spelled + size, job.buffer.size() - prefixed - size};
  return RunStep(inner, index, {spelled, size});
}

Status PreTokenizer::PutBytes(const Job& job, StringView piece) {
  size_t size = 0;
  if (piece.size > job.bytes.size() || !BytesOfAlphabet(piece, job.bytes.data(), &size)) {
    return Status::kInternal;
  }
  return job.sink->Put({job.bytes.data(), size});
}

Status PreTokenizer::RunRegex(const Job& job, uint32_t index, StringView piece) const {
  const Step& step = steps_[index];
  Splitter splitter(*this, job, index + 1, piece, step.behavior, step.invert);
  RegexIterator matches(step.regex, job.matcher, piece);
  for (;;) {
    bool found = false;
    size_t begin = 0, end = 0;
    ARN_TRY(matches.Next(&found, &begin, &end, job.diag));
    if (!found) return splitter.Finish();
    ARN_TRY(splitter.Match(begin, end));
  }
}

Status PreTokenizer::RunDigits(const Job& job, uint32_t index, StringView piece) const {
  Splitter splitter(*this, job, index + 1, piece,
                    steps_[index].individual_digits ? fbs::SplitBehavior::Isolated
                                                    : fbs::SplitBehavior::Contiguous,
                    false);
  for (size_t i = 0; i < piece.size;) {
    const Utf8Char c = ReadValidUtf8(piece.data + i);
    if (IsNumeric(c.code_point)) ARN_TRY(splitter.Match(i, i + c.bytes));
    i += c.bytes;
  }
  return splitter.Finish();
}

Status PreTokenizer::RunWhitespace(const Job& job, uint32_t index, StringView piece) const {
  size_t begin = 0;
  for (size_t i = 0; i < piece.size;) {
    const Utf8Char c = ReadValidUtf8(piece.data + i);
    const size_t end = i;
    i += c.bytes;
    if (!IsWhiteSpace(c.code_point)) continue;
    if (end > begin) ARN_TRY(RunStep(job, index + 1, {piece.data + begin, end - begin}));
    begin = i;
  }
  if (begin == piece.size) return Status::kOk;
  return RunStep(job, index + 1, {piece.data + begin, piece.size - begin});
}

Status PreTokenizer::RunWords(const Job& job, uint32_t index, StringView piece) const {
  enum class Class : uint8_t { kSpace, kWord, kOther };
  const auto class_of = [](uint32_t c) {
    return IsWordCharacter(c) ? Class::kWord : IsWhiteSpace(c) ? Class::kSpace : Class::kOther;
  };
  size_t begin = 0;
  Class current = Class::kSpace;
  for (size_t i = 0; i < piece.size;) {
    const Utf8Char c = ReadValidUtf8(piece.data + i);
    const Class next = class_of(c.code_point);
    if (next != current) {
      if (current != Class::kSpace && i > begin) {
        ARN_TRY(RunStep(job, index + 1, {piece.data + begin, i - begin}));
      }
      begin = i;
      current = next;
    }
    i += c.bytes;
  }
  if (current == Class::kSpace) return Status::kOk;
  return RunStep(job, index + 1, {piece.data + begin, piece.size - begin});
}

Status PreTokenizer::RunPunctuation(const Job& job, uint32_t index, StringView piece) const {
  Splitter splitter(*this, job, index + 1, piece, steps_[index].behavior, false);
  for (size_t i = 0; i < piece.size;) {
    const Utf8Char c = ReadValidUtf8(piece.data + i);
    if (IsPunctuation(c.code_point)) ARN_TRY(splitter.Match(i, i + c.bytes));
    i += c.bytes;
  }
  return splitter.Finish();
}

Status PreTokenizer::RunByteLevel(const Job& job, uint32_t index, StringView piece) const {
  const Step& step = steps_[index];
  if (step.add_prefix_space && piece.data[0] != ' ') {
    if (job.buffer.size() <= piece.size) return Status::kInternal;
    job.buffer[0] = ' ';
    std::memcpy(job.buffer.data() + 1, piece.data, piece.size);
    piece = {job.buffer.data(), piece.size + 1};
  }
  return step.has_regex ? RunRegex(job, index, piece) : RunStep(job, index + 1, piece);
}

Status PreTokenizer::RunMetaspace(const Job& job, uint32_t index, StringView piece) const {
  const Step& step = steps_[index];
  const StringView replacement = step.replacement;
  char* const out = job.buffer.data();
  const size_t room = job.buffer.size();
  size_t size = 0;
  bool overflow = false;
  const auto put = [&](StringView text) {
    overflow |= text.size > room - size;
    if (overflow) return;
    std::memcpy(out + size, text.data, text.size);
    size += text.size;
  };
  const bool is_first = job.at_start && piece.data == job.text.data;
  const bool wants_prefix = step.prepend_scheme == fbs::PrependScheme::Always ||
                            (step.prepend_scheme == fbs::PrependScheme::First && is_first);
  if (wants_prefix && piece.data[0] != ' ' && !StartsWith(piece, replacement)) put(replacement);
  for (size_t i = 0; i < piece.size;) {
    if (piece.data[i] == ' ') {
      put(replacement);
      ++i;
      continue;
    }
    const void* const space = std::memchr(piece.data + i, ' ', piece.size - i);
    const size_t end = space == nullptr
                           ? piece.size
                           : static_cast<size_t>(static_cast<const char*>(space) - piece.data);
    put({piece.data + i, end - i});
    i = end;
  }
  if (overflow) return Status::kInternal;
  piece = {out, size};
  if (!step.split) return job.sink->Put(piece);
  Splitter splitter(*this, job, index + 1, piece, fbs::SplitBehavior::MergedWithNext, false);
  for (size_t i = 0; i < piece.size;) {
    const size_t bytes = ReadValidUtf8(piece.data + i).bytes;
    if (StartsWith({piece.data + i, bytes}, replacement)) ARN_TRY(splitter.Match(i, i + bytes));
    i += bytes;
  }
  return splitter.Finish();
}

}  // namespace arn
