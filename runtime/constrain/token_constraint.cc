#include "runtime/constrain/token_constraint.h"

#include <cstring>
#include <new>
#include <string_view>

#include "platform/base/arith.h"
#include "platform/os/clock.h"
#include "runtime/constrain/certain_text.h"
#include "runtime/constrain/character_counts.h"

namespace arn {
namespace {

constexpr uint32_t kEngineAlign = 64;
constexpr uint32_t kMaxSpecials = 32;

template <typename T>
Status Take(Arena* arena, uint64_t n, Span<T>* out) {
  ARN_ASSIGN(*out, arena->AllocateArray<T>(n));
  return Status::kOk;
}

Status CopyText(Arena* arena, StringView* text) {
  Span<char> copy;
  ARN_TRY(Take(arena, text->size, &copy));
  if (text->size > 0) std::memcpy(copy.data(), text->data, text->size);
  *text = {copy.data(), text->size};
  return Status::kOk;
}

}  // namespace

Status TokenConstraint::Compile(const TokenConstraintOptions& options, const TokenSet& tokens,
                                uint32_t n_states, Span<std::byte> block, TokenConstraint** out,
                                Diag* diag) {
  *out = nullptr;
  const uint64_t start = MonotonicNs();
  Arena arena(block);
  Result<void*> place = arena.Allocate(sizeof(TokenConstraint), alignof(TokenConstraint));
  Status status = place.status();
  TokenConstraint* made = nullptr;
  if (place.ok()) {
    made = new (place.value()) TokenConstraint();
    made->tokens_ = tokens;
    status = made->Init(options, n_states, block.size(), &arena, diag);
  }
  if (status == Status::kOutOfMemory && diag->text()[0] == '\0') {
    return diag->Fail(status,
                      "a constraint of %zu bytes is too small for a vocabulary of %u tokens",
                      block.size(), tokens.vocab);
  }
  ARN_TRY(status);
  made->counts_.compile_ns = MonotonicNs() - start;
  *out = made;
  return Status::kOk;
}

Status TokenConstraint::Init(const TokenConstraintOptions& options, uint32_t n_states,
                             uint64_t block_bytes, Arena* arena, Diag* diag) {
  chooses_forced_ = options.chooses_forced || tokens_.encode_scratch.empty();
  n_words_ = static_cast<uint32_t>(CeilDiv(tokens_.vocab, 32));
  const Tokenizer& tokenizer = *tokens_.tokenizer;
  ARN_TRY(Take(arena, n_states, &states_));
  ARN_TRY(Take(arena, n_words_, &has_text_));
  const uint64_t mask_bytes = Max<uint64_t>(1, n_words_) * sizeof(uint32_t);
  n_masks_ = static_cast<uint32_t>(
      Max<uint64_t>(kMinMasks, Min<uint64_t>(kMaxMasks, block_bytes / 4 / mask_bytes)));
  // Not cleared, so that a block from the OS has no page before there is a mask in it.
  ARN_ASSIGN(void* masks, arena->Allocate(n_masks_ * mask_bytes, alignof(uint32_t)));
  mask_bits_ = {static_cast<uint32_t*>(masks), size_t{n_masks_} * n_words_};
  ARN_TRY(Take(arena, n_words_, &result_bits_));
  ARN_TRY(Take(arena, Max<size_t>(tokenizer.max_piece_bytes(), kSpecialBytes), &piece_));
  if (!chooses_forced_) {
    ARN_TRY(Take(arena, kMaxForcedBytes, &forced_bytes_));
    ARN_TRY(Take(arena, kMaxForcedBytes, &forced_ids_));
  }
  FindTexts();
  options_ = options;
  ConstraintOptions& constraint = options_.constraint;
  if (CopyText(arena, &constraint.text) != Status::kOk ||
      CopyText(arena, &constraint.calls.name) != Status::kOk) {
    return diag->Fail(Status::kOutOfMemory,
                      "a constraint of %llu bytes is too small for a text of %zu bytes",
                      static_cast<unsigned long long>(block_bytes), options.constraint.text.size);
  }
  ARN_TRY(FindSpecials(constraint, arena));
  constraint.calls.specials = specials_;
  // The rest of the block is the engine's.
  own_bytes_ = AlignUp(arena->used_bytes(), uint64_t{kEngineAlign});
  if (own_bytes_ >= block_bytes) return Status::kOutOfMemory;
  const uint64_t rest = block_bytes - own_bytes_;
  ARN_ASSIGN(void* memory, arena->Allocate(rest, kEngineAlign));
  ARN_TRY(Constraint::Compile(constraint, n_states + 1,
                              {static_cast<std::byte*>(memory), static_cast<size_t>(rest)},
                              &constraint_, diag));
  constraint.cancel = nullptr;
  for (uint32_t s = 0; s < n_states; ++s) Reset(s);
  return Status::kOk;
}

void TokenConstraint::FindTexts() {
  const ByteTree& tree = tokens_.bytes.tree();
  std::memset(has_text_.data(), 0, has_text_.size() * sizeof(uint32_t));
  const auto set = [this](Span<const uint32_t> ids) {
    for (const uint32_t id : ids) {
      if (id < tokens_.vocab) has_text_[id / 32] |= 1u << (id % 32);
    }
  };
  if (tokens_.bytes.places().first.empty()) return set(tree.ids);
  // Takes those that begin a character, and those that append nothing.
  const Span<const uint8_t> counts = tokens_.bytes.places().token_characters;
  const auto n = Min<uint32_t>(tokens_.vocab, static_cast<uint32_t>(counts.size()));
  for (uint32_t word = 0; word < n / 32; ++word) {
    has_text_[word] = ~WordAtMost(counts.data() + size_t{word} * 32, 0);
  }
  for (uint32_t id = n / 32 * 32; id < n; ++id) {
    if (counts[id] != 0) has_text_[id / 32] |= 1u << (id % 32);
  }
  set(tree.EmptyIds());
}

void TokenConstraint::Reset(uint32_t state) {
  constraint_->Reset(state);
  states_[state] = State();
  states_[state].n_flushes = constraint_->n_flushes();
}

void TokenConstraint::Copy(uint32_t from, uint32_t to) {
  if (from == to) return;
  constraint_->CopyState(from, to);
  states_[to] = states_[from];
}

void TokenConstraint::ResetCounts() {
  const uint64_t compile_ns = counts_.compile_ns;
  counts_ = ConstraintCounts();
  counts_.compile_ns = compile_ns;
  times_ = TimeHistogram();
}

bool TokenConstraint::IsEnd(int32_t id) const {
  for (const uint32_t end : tokens_.end_ids) {
    if (static_cast<int32_t>(end) == id) return true;
  }
  for (const int32_t end : extra_ends_) {
    if (end == id) return true;
  }
  return false;
}

// Finds the special tokens in the marks of a format of tool calls.
Status TokenConstraint::FindSpecials(const ConstraintOptions& options, Arena* arena) {
  if (options.kind != ConstraintKind::kToolCalls) return Status::kOk;
  ARN_TRY(Take(arena, kMaxSpecials, &specials_));
  const ReplyMarks marks = MarksOf(*options.calls.format);
  const uint32_t n_ids = Min(tokens_.vocab, tokens_.tokenizer->n_tokens());
  uint32_t n = 0;
  for (uint32_t i = 0; i < n_ids && n < kMaxSpecials; ++i) {
    const auto id = static_cast<int32_t>(i);
    if (HasText(id) || !tokens_.tokenizer->IsSpecial(id)) continue;
    const StringView text = tokens_.tokenizer->TokenText(id);
    const std::string_view view(text.data, text.size);
    bool is_in_mark = false;
    for (const StringView mark : marks.texts) {
      is_in_mark |= text.size > 0 &&
                    std::string_view(mark.data, mark.size).find(view) != std::string_view::npos;
    }
    if (is_in_mark) specials_[n++] = {id, text, IsEnd(id)};
  }
  specials_ = specials_.subspan(0, n);
  return Status::kOk;
}

bool TokenConstraint::IsInFormat(int32_t id) const {
  for (const SpecialToken& special : specials_) {
    if (special.id == id && !special.ends) return true;
  }
  return false;
}

Span<const uint8_t> TokenConstraint::BytesOf(uint32_t state, int32_t id) {
  if (IsInFormat(id)) {
    auto* bytes = reinterpret_cast<uint8_t*>(piece_.data());
    WriteSpecial(id, bytes);
    return {bytes, kSpecialBytes};
  }
  const size_t n = tokens_.tokenizer->AppendedBytes(id, states_[state].n_tokens == 0, piece_);
  return {reinterpret_cast<const uint8_t*>(piece_.data()), n};
}

bool TokenConstraint::Allows(uint32_t state, int32_t id, size_t* n_bytes) {
  if (n_bytes != nullptr) *n_bytes = 0;
  ++counts_.candidates_tested;
  if (IsEnd(id)) return AllowsEnd(state);
  return AllowsBytes(state, id, n_bytes);
}

bool TokenConstraint::AllowsBytes(uint32_t state, int32_t id, size_t* n_bytes) {
  const bool is_special = IsInFormat(id);
  if (states_[state].has_ended || (!is_special && !HasText(id))) return false;
  const Span<const uint8_t> bytes = BytesOf(state, id);
  // A token of that byte must not look like a special one.
  if (!is_special && !specials_.empty() &&
      std::memchr(bytes.data(), kSpecialByte, bytes.size()) != nullptr) {
    return false;
  }
  size_t n_ok = 0;
  const bool is_allowed = constraint_->Accepts(state, bytes, &n_ok);
  if (n_bytes != nullptr && is_special) {
    n_ok = is_allowed ? tokens_.tokenizer->TokenText(id).size : 0;
  }
  if (n_bytes != nullptr) *n_bytes = n_ok;
  return is_allowed;
}

bool TokenConstraint::Accept(uint32_t state, int32_t id, size_t* n_bytes) {
  State& s = states_[state];
  if (IsEnd(id)) {
    if (n_bytes != nullptr) *n_bytes = 0;
    if (!CanEnd(state)) return false;
    s.has_ended = true;
  } else {
    if (!Allows(state, id, n_bytes)) return false;
    --counts_.candidates_tested;
    // The bytes are still in piece_.
    if (!constraint_->Advance(state, BytesOf(state, id))) return false;
  }
  if (s.n_forced != 0 && s.forced[s.next_forced] == id) {
    --s.n_forced;
    ++s.next_forced;
    ++counts_.forced_tokens;
  } else {
    s.n_forced = 0;
  }
  ++s.n_tokens;
  s.n_flushes = constraint_->n_flushes();
  ++counts_.steps;
  return true;
}

Span<const int32_t> TokenConstraint::Forced(uint32_t state) {
  State& s = states_[state];
  if (chooses_forced_ || s.has_ended) return {};
  if (s.n_forced == 0) FindForced(state);
  return {s.forced + s.next_forced, s.n_forced};
}

uint32_t TokenConstraint::LookAhead(uint32_t state, uint32_t scratch, int32_t id,
                                    Span<int32_t> guesses, uint32_t n, uint32_t* n_certain) {
  const ConstraintCounts counts = counts_;
  *n_certain = 0;
  Copy(state, scratch);
  uint32_t n_allowed = 0;
  if (Accept(scratch, id) && !MustEnd(scratch)) {
    const Span<const int32_t> forced = Forced(scratch);
    const auto n_forced = static_cast<uint32_t>(Min(forced.size(), guesses.size()));
    uint32_t n_same = 0;
    while (n_same < Min(n, n_forced) && guesses[n_same] == forced[n_same]) ++n_same;
    if (n_same < n_forced) {
      for (uint32_t i = 0; i < n_forced; ++i) guesses[i] = forced[i];
      n = n_forced;
    }
    *n_certain = n_forced;
    while (n_allowed < n && Accept(scratch, guesses[n_allowed])) ++n_allowed;
    *n_certain = Min(n_forced, n_allowed);
  }
  Reset(scratch);
  ClearFailure();
  counts_ = counts;
  return n_allowed;
}

void TokenConstraint::FindForced(uint32_t state) {
  State& s = states_[state];
  const size_t n = constraint_->Forced(
      state, {reinterpret_cast<uint8_t*>(forced_bytes_.data()), forced_bytes_.size()});
  if (n == 0) return;
  // A special token joins with nothing.
  const void* const special = std::memchr(forced_bytes_.data(), kSpecialByte, n);
  const size_t n_text =
      special == nullptr
          ? n
          : static_cast<size_t>(static_cast<const char*>(special) - forced_bytes_.data());
  if (special != nullptr && n_text == 0) {
    if (n < kSpecialBytes) return;
    const auto byte = [this](size_t i) { return static_cast<uint8_t>(forced_bytes_[i]); };
    s.forced[0] = byte(1) << 16 | byte(2) << 8 | byte(3);
    s.n_forced = 1;
    s.next_forced = 0;
    return;
  }
  const Span<const uint8_t> text(reinterpret_cast<const uint8_t*>(forced_bytes_.data()), n_text);
  // Nothing can join the text with what follows if that is its end.
  const auto scratch = static_cast<uint32_t>(states_.size());
  constraint_->CopyState(state, scratch);
  const bool is_last =
      special != nullptr || (n < forced_bytes_.size() && constraint_->Advance(scratch, text) &&
                             constraint_->MustEnd(scratch));
  const size_t n_certain =
      is_last ? n_text : CertainBytes(TreeOf(state), tokens_.bytes.tree(), text);
  if (n_certain == 0 || IsPutOff()) return;
  size_t n_ids = 0;
  Tokenizer::EncodeOptions plain;
  plain.is_plain = true;
  Diag ignored;
  if (tokens_.tokenizer->Encode({forced_bytes_.data(), n_certain}, plain, tokens_.encode_scratch,
                                forced_ids_, &n_ids, &ignored) != Status::kOk) {
    return;
  }
  // The ids must append these bytes, which a tokenizer that normalises or begins every text with a
  // space may not have kept.
  size_t at = 0;
  const size_t n_kept = Min<size_t>(n_ids, kMaxForcedTokens);
  for (size_t i = 0; i < n_ids; ++i) {
    const size_t bytes =
        tokens_.tokenizer->AppendedBytes(forced_ids_[i], s.n_tokens == 0 && i == 0, piece_);
    if (!HasText(forced_ids_[i]) || IsEnd(forced_ids_[i]) || bytes > n_certain - at ||
        std::memcmp(piece_.data(), forced_bytes_.data() + at, bytes) != 0) {
      return;
    }
    at += bytes;
  }
  if (at != n_certain) return;
  std::memcpy(s.forced, forced_ids_.data(), n_kept * sizeof(int32_t));
  s.n_forced = static_cast<uint8_t>(n_kept);
  s.next_forced = 0;
}

const TokenConstraint::CachedMask* TokenConstraint::FindMask(uint32_t state, bool is_start) const {
  const uint64_t key = constraint_->StateKey(state);
  for (uint32_t i = 0; i < n_masks_; ++i) {
    const CachedMask& mask = masks_[i];
    if (mask.cost_ns != 0 && mask.key == key && mask.is_start == is_start) return &mask;
  }
  return nullptr;
}

Span<uint32_t> TokenConstraint::MaskBits(const CachedMask* mask) const {
  return mask_bits_.subspan(static_cast<size_t>(mask - masks_) * n_words_, n_words_);
}

void TokenConstraint::FillMask(uint32_t state, bool is_start, Span<uint32_t> bits) {
  const bool is_loop =
      !is_start && constraint_->FillMaskOfLoop(state, tokens_.bytes.tree(), tokens_.bytes.places(),
                                               has_text_, bits);
  if (is_loop) return;
  constraint_->FillMask(state, is_start ? tokens_.bytes.start_tree() : tokens_.bytes.tree(), bits);
}

void TokenConstraint::FillCountedMask(uint32_t state, Span<const uint32_t> without_counts,
                                      Span<uint32_t> bits) {
  const ByteTree& tree = tokens_.bytes.tree();
  const BytePlaces& places = tokens_.bytes.places();
  uint32_t n = 0;
  if (!constraint_->FillMaskOfCounts(state, tree, places, without_counts, bits, &n)) {
    constraint_->FillMask(state, tree, bits);
    return;
  }
  const ByteNode* const nodes = tree.nodes.data();
  for (const uint32_t node : places.List(kLongPlaces)) {
    const uint32_t end = nodes[node + nodes[node].size()].first_id();
    for (uint32_t i = nodes[node].first_id(); i < end; ++i) {
      const uint32_t id = tree.ids[i];
      if (id >= tokens_.vocab || (bits[id / 32] >> (id % 32) & 1) == 0 ||
          places.token_characters[id] <= n) {
        continue;
      }
      if (!constraint_->Accepts(state, BytesOf(state, static_cast<int32_t>(id)))) {
        bits[id / 32] &= ~(1u << (id % 32));
      }
    }
  }
}

// Finds or fills the mask of a state of constraint_, which may be the one for looking ahead.
TokenConstraint::CachedMask* TokenConstraint::MaskOf(uint32_t state, bool is_start) {
  if (const CachedMask* found = FindMask(state, is_start)) {
    auto* mask = const_cast<CachedMask*>(found);
    mask->priority = mask_age_ + mask->cost_ns;
    return mask;
  }
  const auto scratch = static_cast<uint32_t>(states_.size());
  const uint64_t start = MonotonicNs();
  const CachedMask* base = nullptr;
  if (!is_start && !tokens_.bytes.places().first.empty() && state != scratch &&
      constraint_->WithoutCounts(state, scratch)) {
    base = MaskOf(scratch, false);
  }
  CachedMask* mask = nullptr;
  for (uint32_t i = 0; i < n_masks_; ++i) {
    if (masks_ + i == base) continue;
    if (mask == nullptr || masks_[i].priority < mask->priority) mask = masks_ + i;
  }
  mask_age_ = mask->priority;
  if (base != nullptr && !constraint_->failed()) {
    FillCountedMask(state, MaskBits(base), MaskBits(mask));
  } else {
    FillMask(state, is_start, MaskBits(mask));
  }
  if (!constraint_->failed()) ++counts_.masks_filled;
  // The walk may have changed the key, but not the language. A mask that failed is not found
  // again.
  const uint64_t cost = constraint_->failed() ? 0 : 1 + MonotonicNs() - start;
  *mask = {constraint_->StateKey(state), cost, mask_age_ + cost, is_start};
  return mask;
}

Span<const uint32_t> TokenConstraint::Mask(uint32_t state) {
  const CachedMask* mask = MaskOf(state, states_[state].n_tokens == 0);
  const Span<uint32_t> bits = result_bits_;
  if (states_[state].has_ended) {
    std::memset(bits.data(), 0, bits.size() * sizeof(uint32_t));
  } else {
    std::memcpy(bits.data(), MaskBits(mask).data(), bits.size() * sizeof(uint32_t));
  }
  for (const SpecialToken& special : specials_) {
    if (special.ends || static_cast<uint32_t>(special.id) >= tokens_.vocab) continue;
    if (AllowsBytes(state, special.id, nullptr)) {
      bits[static_cast<uint32_t>(special.id) / 32] |= 1u << (special.id % 32);
    }
  }
  const bool may_end = AllowsEnd(state);
  const auto set_end = [&](uint32_t id) {
    if (id >= tokens_.vocab) return;
    const uint32_t bit = 1u << (id % 32);
    bits[id / 32] = may_end ? bits[id / 32] | bit : bits[id / 32] & ~bit;
  };
  for (const uint32_t id : tokens_.end_ids) set_end(id);
  for (const int32_t id : extra_ends_) {
    if (id >= 0) set_end(static_cast<uint32_t>(id));
  }
  return bits;
}

}  // namespace arn
