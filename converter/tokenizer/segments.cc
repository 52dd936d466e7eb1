// Converts texts, merges and scores into the segments of runtime/bundle/token_tables.h.
#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "converter/tokenizer/byte_tree.h"
#include "converter/tokenizer/token_texts.h"
#include "converter/tokenizer/trie_builder.h"
#include "converter/tokenizer/vocabulary.h"
#include "runtime/bundle/token_tables.h"

namespace arn::convert {
namespace {

// Reference implementation of the runtime's merging.
class Merger {
 public:
  // merges: the open-addressing table of the bundle. Keeps references to its arguments.
  Merger(const std::vector<MergeSlot>& merges, const TokenTexts& texts)
      : merges_(merges), texts_(texts) {
    constexpr size_t kMostUnitBytes = 4;  // those of a character
    for (uint32_t id = 0; id < texts.count(); ++id) {
      if (!texts.is_spelled(id) || texts.text(id).size() > kMostUnitBytes) continue;
      ids_.emplace(texts.text(id), id);
    }
  }

  // True if merging the token's text gives the token.
  bool GivesItself(uint32_t id) const {
    // Gives up on longer texts: kWholeToken only saves the runtime work.
    constexpr size_t kMostUnits = 1024;
    std::vector<uint32_t> symbols;
    const std::vector<std::string> units = texts_.Units(id);
    if (units.size() > kMostUnits) return false;
    for (const std::string& unit : units) {
      const auto found = ids_.find(unit);
      if (found == ids_.end()) return false;
      symbols.push_back(found->second);
    }
    std::vector<const MergeSlot*> merges;  // of each symbol with the next
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      merges.push_back(Find(symbols[i], symbols[i + 1]));
    }
    while (!merges.empty()) {
      size_t best = 0;
      for (size_t i = 1; i < merges.size(); ++i) {
        if (merges[i]->rank < merges[best]->rank) best = i;
      }
      if (merges[best]->left == kEmptySlot) return false;
      symbols[best] = merges[best]->id;
      symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
      merges.erase(merges.begin() + static_cast<std::ptrdiff_t>(best));
      if (best < merges.size()) merges[best] = Find(symbols[best], symbols[best + 1]);
      if (best > 0) merges[best - 1] = Find(symbols[best - 1], symbols[best]);
    }
    return symbols.size() == 1 && symbols[0] == id;
  }

 private:
  // Returns the pair's merge, or one that is empty and has the last rank.
  const MergeSlot* Find(uint32_t left, uint32_t right) const {
    static constexpr MergeSlot kNone = {kEmptySlot, 0, UINT32_MAX, 0};
    for (size_t i = HashPair(left, right);; ++i) {
      const MergeSlot& slot = merges_[i & (merges_.size() - 1)];
      if (slot.left == kEmptySlot) return &kNone;
      if (slot.left == left && slot.right == right) return &slot;
    }
  }

  const std::vector<MergeSlot>& merges_;
  const TokenTexts& texts_;
  std::unordered_map<std::string_view, uint32_t> ids_;
};

// Returns the smallest power of two with a load of at most 3/4.
size_t SlotCount(size_t used) {
  size_t slots = 2;
  while (slots * 3 < used * 4) slots *= 2;
  return slots;
}

template <typename T>
void AppendBytes(const std::vector<T>& values, std::vector<uint8_t>* out) {
  const size_t at = out->size();
  out->resize(at + values.size() * sizeof(T));
  std::memcpy(out->data() + at, values.data(), values.size() * sizeof(T));
}

// Sets kWholeToken for the tokens that `is_whole` accepts.
template <typename IsWhole>
std::vector<TokenSlot> TokenSlots(const TokenTexts& texts, const IsWhole& is_whole) {
  size_t used = 0;
  for (uint32_t id = 0; id < texts.count(); ++id) used += texts.is_spelled(id);
  std::vector<TokenSlot> slots(SlotCount(used), {0, kEmptySlot});
  for (uint32_t id = 0; id < texts.count(); ++id) {
    if (!texts.is_spelled(id)) continue;
    const uint64_t hash = HashToken(texts.text(id).data(), texts.text(id).size());
    size_t i = hash & (slots.size() - 1);
    while (slots[i].id != kEmptySlot) i = (i + 1) & (slots.size() - 1);
    slots[i] = {static_cast<uint32_t>(hash >> 32), id | (is_whole(id) ? kWholeToken : 0)};
  }
  return slots;
}

std::vector<MergeSlot> MergeSlots(const Vocabulary& vocabulary) {
  std::vector<MergeSlot> slots(SlotCount(vocabulary.merges.size()), {kEmptySlot, 0, 0, 0});
  // Sorted, so that the same file always gives the same bytes.
  std::vector<std::pair<uint64_t, BpeMerge>> ordered(vocabulary.merges.begin(),
                                                     vocabulary.merges.end());
  std::sort(ordered.begin(), ordered.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [pair, merge] : ordered) {
    const uint32_t left = static_cast<uint32_t>(pair >> 32), right = static_cast<uint32_t>(pair);
    size_t i = HashPair(left, right) & (slots.size() - 1);
    while (slots[i].left != kEmptySlot) i = (i + 1) & (slots.size() - 1);
    slots[i] = {left, right, merge.rank, merge.id};
  }
  return slots;
}

void BuildMerges(const std::vector<MergeSlot>& slots, const TokenTexts& texts,
                 TokenizerTables* tables) {
  std::vector<uint8_t> boundary(kBoundaryBytes, 0);
  for (const MergeSlot& slot : slots) {
    if (slot.left == kEmptySlot) continue;
    if (texts.text(slot.left).empty() || texts.text(slot.right).empty()) continue;
    const uint32_t bit = BoundaryBit(texts.LastUnit(slot.left), texts.FirstUnit(slot.right));
    boundary[bit / 8] |= static_cast<uint8_t>(1u << (bit % 8));
  }
  tables->merge_table = std::move(boundary);
  AppendBytes(slots, &tables->merge_table);
}

void BuildTrieSegment(const Vocabulary& vocabulary, const TokenTexts& texts,
                      TokenizerTables* tables) {
  std::vector<std::pair<std::string_view, uint32_t>> tokens;
  for (uint32_t id = 0; id < texts.count(); ++id) {
    const bool is_matched = vocabulary.is_matched.empty() ||
                            (id < vocabulary.is_matched.size() && vocabulary.is_matched[id]);
    if (texts.is_spelled(id) && is_matched) tokens.emplace_back(texts.text(id), id);
  }
  AppendBytes(BuildTrie(std::move(tokens)), &tables->trie);
}

}  // namespace

void BuildSegments(const Vocabulary& vocabulary, TokenizerTables* tables) {
  const TokenTexts texts(vocabulary, *tables);
  const bool is_bpe = tables->model == fbs::TokenizerModel::Bpe;
  const std::vector<MergeSlot> merges = MergeSlots(vocabulary);
  const Merger merger(merges, texts);
  // The text of a token with a prefix or a suffix does not encode to that token.
  const bool has_whole_tokens = is_bpe && (tables->subword_prefix + tables->word_suffix).empty();
  tables->n_tokens = texts.count();
  std::vector<uint32_t> offsets = {0};
  for (uint32_t id = 0; id < texts.count(); ++id) {
    const std::string& text = texts.text(id);
    tables->token_bytes.insert(tables->token_bytes.end(), text.begin(), text.end());
    offsets.push_back(static_cast<uint32_t>(tables->token_bytes.size()));
  }
  AppendBytes(offsets, &tables->token_offsets);
  AppendBytes(
      TokenSlots(texts, [&](uint32_t id) { return has_whole_tokens && merger.GivesItself(id); }),
      &tables->token_table);
  if (is_bpe) BuildMerges(merges, texts, tables);
  if (tables->model == fbs::TokenizerModel::Unigram ||
      tables->model == fbs::TokenizerModel::WordPiece) {
    BuildTrieSegment(vocabulary, texts, tables);
  }
  if (tables->model == fbs::TokenizerModel::Unigram) {
    std::vector<double> scores = vocabulary.scores;
    scores.resize(texts.count());
    AppendBytes(scores, &tables->scores);
  }
  BuildByteTrees(texts, tables);
}

}  // namespace arn::convert
