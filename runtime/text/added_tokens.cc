#include "runtime/text/added_tokens.h"

#include <algorithm>
#include <cstring>

#include "platform/base/arith.h"
#include "runtime/bundle/bundle_generated.h"
#include "runtime/text/byte_alphabet.h"
#include "runtime/text/normal_form.h"
#include "runtime/text/regex.h"
#include "runtime/text/unicode.h"
#include "runtime/text/utf8.h"

namespace arn {
namespace {

// Matching searches the sorted texts at every position of the input; longer texts would make it
// slow.
constexpr size_t kMaxAddedTokenBytes = 1024;

uint32_t CountOf(const fbs::Tokenizer& table) {
  return table.added() == nullptr ? 0 : table.added()->size();
}

bool TextLess(StringView a, StringView b) {
  const int order = std::memcmp(a.data, b.data, Min(a.size, b.size));
  return order != 0 ? order < 0 : a.size < b.size;
}

void Index(AddedTokens::Set* set) {
  AddedTokens::Entry* const entries = set->entries.data();
  const uint32_t count = static_cast<uint32_t>(set->entries.size());
  std::sort(entries, entries + count, [](const auto& a, const auto& b) {
    return TextLess(a.text, b.text) || (a.text == b.text && a.order < b.order);
  });
  uint32_t i = 0;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    while (i < count && static_cast<uint8_t>(entries[i].text.data[0]) < byte) ++i;
    set->first_entry[byte] = i;
  }
  set->first_entry[256] = count;
}

bool NeedsNormalizing(const fbs::Tokenizer& table) {
  if (table.normalizers() == nullptr || table.normalizers()->size() == 0) return false;
  for (uint32_t i = 0; i < CountOf(table); ++i) {
    const fbs::AddedTokenFlags* flags = table.added()->Get(i)->flags();
    if (flags != nullptr && flags->normalized()) return true;
  }
  return false;
}

bool HasRegex(const fbs::Tokenizer& table) {
  for (const fbs::Normalizer* step : *table.normalizers()) {
    if (step->pattern_is_regex()) return true;
  }
  return false;
}

}  // namespace

// Scratch for normalising the tokens' texts; released afterwards.
struct AddedTokens::Workspace {
  static constexpr uint64_t kMaxSteps = uint64_t{16} << 20;  // for all tokens together
  static constexpr size_t kBufferBytes = 8192;
  static uint64_t Bytes(bool has_regex) {
    return 2 * kBufferBytes + NormalFormScratchBytes(kBufferBytes) +
           (has_regex ? RegexMatcher::kScratchBytes : 0) + 256;
  }
  char* buffers = nullptr;
  Arena scratch;
  WorkBudget budget{kMaxSteps, nullptr, nullptr};
  RegexMatcher matcher;
};

uint64_t AddedTokens::ArenaBytes(const fbs::Tokenizer& table) {
  uint64_t bytes = table.n_tokens() / 8 + 1 + CountOf(table) * (sizeof(Entry) + sizeof(Decoded)) +
                   6 * alignof(Entry);
  if (!NeedsNormalizing(table)) return bytes;
  const Growth growth = NormalizerChain::GrowthOf(table);
  for (const fbs::AddedToken* token : *table.added()) {
    const uint64_t size = token->content() == nullptr ? 0 : token->content()->size();
    bytes += 2 * Min<uint64_t>(growth.Bound(size), Workspace::kBufferBytes);
  }
  return bytes + Workspace::Bytes(HasRegex(table)) + 256;
}

Status AddedTokens::Init(const fbs::Tokenizer& table, const NormalizerChain& normalizer,
                         bool units_are_bytes, Arena* arena, Diag* diag) {
  ARN_ASSIGN(Span<uint8_t> bits, arena->AllocateArray<uint8_t>(table.n_tokens() / 8 + 1));
  special_bits_ = bits.data();
  const uint32_t count = CountOf(table);
  uint32_t n_normalized = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const fbs::AddedTokenFlags* flags = table.added()->Get(i)->flags();
    n_normalized += flags != nullptr && flags->normalized() ? 1 : 0;
  }
  ARN_ASSIGN(raw_.entries, arena->AllocateArray<Entry>(count - n_normalized));
  ARN_ASSIGN(normalized_.entries, arena->AllocateArray<Entry>(n_normalized));
  ARN_ASSIGN(decoded_, arena->AllocateArray<Decoded>(n_normalized));
  // Allocates the texts first, so that the scratch after them can be released.
  Arena texts;
  Workspace workspace;
  const uint64_t mark = arena->mark();
  if (NeedsNormalizing(table)) {
    uint64_t text_bytes = 0;
    for (const fbs::AddedToken* token : *table.added()) {
      const uint64_t size = token->content() == nullptr ? 0 : token->content()->size();
      text_bytes += 2 * Min<uint64_t>(normalizer.growth().Bound(size), Workspace::kBufferBytes);
    }
    ARN_ASSIGN(void* text_memory, arena->Allocate(text_bytes, 1));
    texts = Arena({static_cast<std::byte*>(text_memory), static_cast<size_t>(text_bytes)});
    const uint64_t scratch_bytes = Workspace::Bytes(normalizer.uses_regex());
    ARN_ASSIGN(void* memory, arena->Allocate(scratch_bytes, alignof(max_align_t)));
    workspace.scratch =
        Arena({static_cast<std::byte*>(memory), static_cast<size_t>(scratch_bytes)});
    ARN_ASSIGN(void* buffers, workspace.scratch.Allocate(2 * Workspace::kBufferBytes, 16));
    workspace.buffers = static_cast<char*>(buffers);
    if (normalizer.uses_regex()) {
      ARN_TRY(workspace.matcher.Init(&workspace.scratch, &workspace.budget));
    }
  }
  size_t filled[2] = {0, 0};
  for (uint32_t i = 0; i < count; ++i) {
    Entry entry;
    bool is_normalized = false;
    ARN_TRY(ReadEntry(table, i, &entry, &is_normalized, diag));
    if (is_normalized && !normalizer.is_empty()) {
      const StringView given = entry.text;
      ARN_TRY(Normalize(normalizer, &workspace, &texts, &entry, diag));
      if (!(entry.text == given)) ARN_TRY(AddDecoded(entry, units_are_bytes, &texts));
    }
    Set& set = is_normalized ? normalized_ : raw_;
    set.entries[filled[is_normalized ? 1 : 0]++] = entry;
  }
  arena->Rewind(mark + texts.used_bytes());
  Index(&raw_);
  Index(&normalized_);
  // Heap sort: a second instance of std::sort would add most of a kilobyte.
  const auto by_id = [](const Decoded& a, const Decoded& b) { return a.id < b.id; };
  std::make_heap(decoded_.begin(), decoded_.begin() + n_decoded_, by_id);
  std::sort_heap(decoded_.begin(), decoded_.begin() + n_decoded_, by_id);
  return Status::kOk;
}

Status AddedTokens::AddDecoded(const Entry& entry, bool units_are_bytes, Arena* texts) {
  special_bits_[entry.id / 8] &= static_cast<uint8_t>(~(1u << (entry.id % 8)));
  Decoded decoded = {entry.id, entry.text};
  if (units_are_bytes) {
    ARN_ASSIGN(void* memory, texts->Allocate(entry.text.size, 1));
    char* const bytes = static_cast<char*>(memory);
    size_t size = 0;
    // A text with characters outside the alphabet is decoded unchanged.
    if (BytesOfAlphabet(entry.text, bytes, &size)) decoded.text = {bytes, size};
  }
  decoded_[n_decoded_++] = decoded;
  max_decoded_bytes_ = Max(max_decoded_bytes_, static_cast<uint32_t>(decoded.text.size));
  return Status::kOk;
}

bool AddedTokens::FindDecoded(uint32_t id, StringView* text) const {
  const Decoded* const begin = decoded_.begin();
  const Decoded* const end = begin + n_decoded_;
  const Decoded* const found = std::lower_bound(
      begin, end, id, [](const Decoded& a, uint32_t value) { return a.id < value; });
  if (found == end || found->id != id) return false;
  *text = found->text;
  return true;
}

Status AddedTokens::ReadEntry(const fbs::Tokenizer& table, uint32_t index, Entry* entry,
                              bool* is_normalized, Diag* diag) {
  const fbs::AddedToken* token = table.added()->Get(index);
  const fbs::AddedTokenFlags* flags = token->flags();
  if (flags == nullptr || token->content() == nullptr) {
    return diag->Fail(Status::kBadBundle, "tokenizer.added[%u] has no flags or no content", index);
  }
  const StringView text(token->content()->c_str(), token->content()->size());
  if (text.size == 0 || text.size > kMaxAddedTokenBytes || !IsValidUtf8(text)) {
    return diag->Fail(Status::kBadBundle,
                      "tokenizer.added[%u].content has %zu bytes, expected 1..%zu of UTF-8", index,
                      text.size, kMaxAddedTokenBytes);
  }
  if (flags->id() >= table.n_tokens()) {
    return diag->Fail(Status::kBadBundle, "tokenizer.added[%u].id is %u, expected less than %u",
                      index, flags->id(), table.n_tokens());
  }
  *entry = {text,
            flags->id(),
            index,
            flags->special(),
            flags->lstrip(),
            flags->rstrip(),
            flags->single_word()};
  *is_normalized = flags->normalized();
  if (flags->special()) {
    special_bits_[entry->id / 8] |= static_cast<uint8_t>(1u << (entry->id % 8));
  }
  return Status::kOk;
}

Status AddedTokens::Normalize(const NormalizerChain& normalizer, Workspace* workspace, Arena* texts,
                              Entry* entry, Diag* diag) {
  StringView text;
  bool keeps_start = true;
  const Status status =
      normalizer.Run(entry->text, {workspace->buffers, Workspace::kBufferBytes},
                     {workspace->buffers + Workspace::kBufferBytes, Workspace::kBufferBytes},
                     &workspace->matcher, &workspace->scratch, &text, &keeps_start, diag);
  if (status == Status::kBufferTooSmall || (status == Status::kOk && text.size == 0)) {
    return diag->Fail(Status::kBadBundle,
                      "tokenizer.added[%u].content is empty or too long when it is normalized",
                      entry->order);
  }
  ARN_TRY(status);
  ARN_ASSIGN(void* copy, texts->Allocate(text.size, 1));
  std::memcpy(copy, text.data, text.size);
  entry->text = StringView(static_cast<const char*>(copy), text.size);
  return Status::kOk;
}

const AddedTokens::Entry* PartIterator::Match(size_t position, size_t* skip) {
  *skip = 0;
  // Special tokens must end before the next plain span.
  size_t special_end = SIZE_MAX, plain_end = 0;
  const size_t place = text_offset_ + position;
  while (next_plain_ < plain_.size() &&
         plain_[next_plain_].offset + plain_[next_plain_].bytes <= place) {
    ++next_plain_;
  }
  if (next_plain_ < plain_.size()) {
    special_end = plain_[next_plain_].offset;
    if (special_end <= place) plain_end = special_end + plain_[next_plain_].bytes;
  }
  const AddedTokens::Entry* const entries = set_.entries.data();
  const uint8_t first = static_cast<uint8_t>(text_.data[position]);
  const AddedTokens::Entry* low = entries + set_.first_entry[first];
  const AddedTokens::Entry* high = entries + set_.first_entry[first + 1];
  const AddedTokens::Entry* longest = nullptr;
  // [low, high): texts that match the input in their first `depth` bytes.
  for (size_t depth = 1; low != high; ++depth) {
    if (low->text.size == depth) {
      if (!low->special || place + depth <= special_end) {
        longest = low;
        *skip = 0;
      } else if (place + depth <= plain_end) {
        *skip = depth;
      }
    }
    if (position + depth == text_.size) break;
    const uint8_t byte = static_cast<uint8_t>(text_.data[position + depth]);
    const auto is_before = [depth](const AddedTokens::Entry& entry, uint8_t value) {
      return entry.text.size == depth || static_cast<uint8_t>(entry.text.data[depth]) < value;
    };
    const auto is_behind = [depth](uint8_t value, const AddedTokens::Entry& entry) {
      return entry.text.size != depth && value < static_cast<uint8_t>(entry.text.data[depth]);
    };
    low = std::lower_bound(low, high, byte, is_before);
    high = std::upper_bound(low, high, byte, is_behind);
  }
  return longest;
}

bool PartIterator::IsWordAround(size_t begin, size_t end) const {
  if (begin > 0) {
    const char* previous = PreviousUtf8(text_.data + begin);
    if (IsWordCharacter(ReadValidUtf8(previous).code_point)) return true;
  }
  return end < text_.size && IsWordCharacter(ReadValidUtf8(text_.data + end).code_point);
}

bool PartIterator::Next(TextPart* part) {
  if (has_waiting_) {
    *part = waiting_;
    has_waiting_ = false;
    return true;
  }
  while (search_ < text_.size && set_.entries.size() > 0) {
    size_t skip = 0;
    const AddedTokens::Entry* const token = Match(search_, &skip);
    if (token == nullptr || skip > 0) {
      search_ += Max<size_t>(1, skip);
      continue;
    }
    size_t begin = search_;
    size_t end = begin + token->text.size;
    search_ = end;
    if (token->single_word && IsWordAround(begin, end)) continue;
    if (token->lstrip) {
      while (begin > done_) {
        const char* previous = PreviousUtf8(text_.data + begin);
        if (!IsWhiteSpace(ReadValidUtf8(previous).code_point)) break;
        begin = static_cast<size_t>(previous - text_.data);
      }
    }
    if (token->rstrip) {
      while (end < text_.size) {
        const Utf8Char c = ReadValidUtf8(text_.data + end);
        if (!IsWhiteSpace(c.code_point)) break;
        end += c.bytes;
      }
    }
    if (token->lstrip) begin = Max(begin, done_);
    if (begin >= end) continue;  // the previous token took all of it
    const size_t text_begin = done_;
    // Search continues after the token's own text, so a later token may begin in the space stripped
    // by this one: it counts unless it strips that space too and nothing remains.
    done_ = end;
    *part = {begin, end, true, token->id};
    if (text_begin < begin) {
      waiting_ = *part;
      has_waiting_ = true;
      *part = {text_begin, begin, false, 0};
    }
    return true;
  }
  if (done_ != text_.size) {
    *part = {done_, text_.size, false, 0};
    done_ = text_.size;
    search_ = text_.size;
    return true;
  }
  return false;
}

}  // namespace arn
