#include "converter/tokenizer/bpe_tables.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "converter/tokenizer/byte_alphabet.h"
#include "converter/tokenizer/pipeline.h"
#include "runtime/bundle/token_tables.h"

namespace arn::convert {
namespace {

// Ids leave holes of empty tokens; far too large ones are a mistake.
constexpr uint32_t kMaxId = 1u << 24;

uint64_t PairKey(uint32_t left, uint32_t right) { return uint64_t{left} << 32 | right; }

size_t CharacterBytes(const std::string& text, size_t at) {
  const uint8_t lead = static_cast<uint8_t>(text[at]);
  return lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

uint32_t CodePoint(const std::string& text, size_t at) {
  const size_t bytes = CharacterBytes(text, at);
  static constexpr uint8_t kLeadBits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  uint32_t c = static_cast<uint8_t>(text[at]) & kLeadBits[bytes];
  for (size_t i = 1; i < bytes; ++i) c = c << 6 | (static_cast<uint8_t>(text[at + i]) & 0x3F);
  return c;
}

void RefuseText(const JsonNode& node) {
  if (!node.IsNull() && !node.String().empty()) node.Unsupported();
}

void ReadVocabulary(const JsonNode& node, BpeVocabulary* out) {
  if (node.IsNull() || !node.value().is_object()) node.Fail("is not an object of texts and ids");
  std::unordered_map<uint32_t, std::string> texts;
  for (const auto& [text, id] : node.value().items()) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > kMaxId) {
      node.Fail("gives the token \"" + text + "\" the id " + id.dump() + ", expected 0.." +
                std::to_string(kMaxId));
    }
    const auto [other, is_new] = texts.emplace(id.get<uint32_t>(), text);
    if (!is_new) {
      node.Fail("gives the id " + id.dump() + " to \"" + other->second + "\" and to \"" + text +
                "\"");
    }
    out->ids.emplace(text, id.get<uint32_t>());
  }
}

// A merge is "left right" in older files, [left, right] in newer ones.
std::optional<std::pair<std::string, std::string>> ReadMerge(const JsonNode& node) {
  if (node.value().is_array()) {
    const std::vector<JsonNode> sides = node.Items();
    if (sides.size() != 2) node.Fail("has not two sides");
    return std::pair(sides[0].String(), sides[1].String());
  }
  const std::string text = node.String();
  if (text.compare(0, 8, "#version") == 0) return std::nullopt;
  const size_t space = text.find(' ');
  if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
    node.Fail("is \"" + text + "\", expected two tokens and a space between them");
  }
  return std::pair(text.substr(0, space), text.substr(space + 1));
}

void ReadMerges(const JsonNode& node, BpeVocabulary* out) {
  uint32_t rank = 0;
  for (const JsonNode& item : node.Items()) {
    const auto merge = ReadMerge(item);
    if (!merge) continue;
    const auto id_of = [&](const std::string& token) {
      const auto found = out->ids.find(token);
      if (found == out->ids.end()) item.Fail("has the token \"" + token + "\", not in model.vocab");
      return found->second;
    };
    const uint32_t left = id_of(merge->first), right = id_of(merge->second);
    // Of a pair that comes twice the later one counts.
    out->merges[PairKey(left, right)] = {rank++, id_of(merge->first + merge->second)};
  }
}

// The texts of all tokens as the runtime sees them, and which of them the model can spell.
class Texts {
 public:
  Texts(const BpeVocabulary& vocabulary, const TokenizerTables& tables)
      : byte_level_(IsByteLevel(tables)) {
    uint32_t last = 0;
    for (const auto& [text, id] : vocabulary.ids) last = std::max(last, id);
    for (const auto& token : tables.added) last = std::max(last, token.id);
    texts_.resize(last + 1);
    spelled_.resize(last + 1);
    for (const auto& [text, id] : vocabulary.ids) Set(id, text, true);
    for (const auto& token : tables.added) {
      if (!vocabulary.ids.contains(token.content)) Set(token.id, token.content, false);
    }
  }

  uint32_t count() const { return static_cast<uint32_t>(texts_.size()); }
  const std::string& text(uint32_t id) const { return texts_[id]; }
  // Of the model's vocabulary, and within the pre-tokenizer's alphabet.
  bool is_spelled(uint32_t id) const { return spelled_[id]; }

  // The text cut into the units that merging starts with.
  std::vector<std::string> Units(uint32_t id) const {
    const std::string& text = texts_[id];
    std::vector<std::string> units;
    for (size_t i = 0; i < text.size();) {
      const size_t bytes = byte_level_ ? 1 : CharacterBytes(text, i);
      units.push_back(text.substr(i, bytes));
      i += bytes;
    }
    return units;
  }
  uint32_t FirstUnit(uint32_t id) const {
    const std::string& text = texts_[id];
    return byte_level_ ? static_cast<uint8_t>(text[0]) : CodePoint(text, 0);
  }
  uint32_t LastUnit(uint32_t id) const {
    const std::string& text = texts_[id];
    size_t at = text.size() - 1;
    if (byte_level_) return static_cast<uint8_t>(text[at]);
    while ((static_cast<uint8_t>(text[at]) & 0xC0) == 0x80) --at;
    return CodePoint(text, at);
  }

 private:
  void Set(uint32_t id, const std::string& text, bool in_model) {
    texts_[id] = text;
    spelled_[id] = in_model && !text.empty();
    if (!byte_level_) return;
    // What is not wholly of the alphabet is decoded as it is, and never met when text is encoded.
    if (const auto bytes = BytesOfAlphabet(text)) {
      texts_[id] = *bytes;
    } else {
      spelled_[id] = false;
    }
  }

  bool byte_level_;
  std::vector<std::string> texts_;
  std::vector<bool> spelled_;
};

// The merging that the runtime does, in its plainest form.
class Merger {
 public:
  Merger(const BpeVocabulary& vocabulary, const Texts& texts)
      : merges_(vocabulary.merges), texts_(texts) {
    for (uint32_t id = 0; id < texts.count(); ++id) {
      if (texts.is_spelled(id)) ids_.emplace(texts.text(id), id);
    }
  }

  // Whether merging the token's text gives the token.
  bool GivesItself(uint32_t id) const {
    std::vector<uint32_t> symbols;
    for (const std::string& unit : texts_.Units(id)) {
      const auto found = ids_.find(unit);
      if (found == ids_.end()) return false;
      symbols.push_back(found->second);
    }
    while (symbols.size() > 1) {
      std::optional<std::pair<BpeMerge, size_t>> best;
      for (size_t i = 0; i + 1 < symbols.size(); ++i) {
        const auto merge = merges_.find(PairKey(symbols[i], symbols[i + 1]));
        if (merge != merges_.end() && (!best || merge->second.rank < best->first.rank)) {
          best = {merge->second, i};
        }
      }
      if (!best) return false;
      symbols[best->second] = best->first.id;
      symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best->second) + 1);
    }
    return symbols.size() == 1 && symbols[0] == id;
  }

 private:
  const std::unordered_map<uint64_t, BpeMerge>& merges_;
  const Texts& texts_;
  std::unordered_map<std::string_view, uint32_t> ids_;
};

// The smallest power of two that at most 3/4 of are in use.
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

std::vector<TokenSlot> TokenSlots(const Texts& texts, const Merger& merger) {
  size_t used = 0;
  for (uint32_t id = 0; id < texts.count(); ++id) used += texts.is_spelled(id);
  std::vector<TokenSlot> slots(SlotCount(used), {0, kEmptySlot});
  for (uint32_t id = 0; id < texts.count(); ++id) {
    if (!texts.is_spelled(id)) continue;
    const uint64_t hash = HashToken(texts.text(id).data(), texts.text(id).size());
    size_t i = hash & (slots.size() - 1);
    while (slots[i].id != kEmptySlot) i = (i + 1) & (slots.size() - 1);
    slots[i] = {static_cast<uint32_t>(hash >> 32), id | (merger.GivesItself(id) ? kWholeToken : 0)};
  }
  return slots;
}

}  // namespace

BpeVocabulary ReadBpeModel(const JsonNode& model, TokenizerTables* tables) {
  // Files of the first versions do not name the type.
  const JsonNode type = model["type"];
  if (type.IsNull() ? model["merges"].IsNull() : type.String() != "BPE") type.Unsupported();
  const JsonNode dropout = model["dropout"];
  if (!dropout.IsNull() && dropout.value() != 0) dropout.Unsupported();
  RefuseText(model["continuing_subword_prefix"]);
  RefuseText(model["end_of_word_suffix"]);
  tables->fuse_unk = model["fuse_unk"].Bool(false);
  tables->byte_fallback = model["byte_fallback"].Bool(false);
  tables->ignore_merges = model["ignore_merges"].Bool(false);
  BpeVocabulary vocabulary;
  ReadVocabulary(model["vocab"], &vocabulary);
  ReadMerges(model["merges"], &vocabulary);
  const JsonNode unk = model["unk_token"];
  if (!unk.IsNull()) {
    const auto found = vocabulary.ids.find(unk.String());
    if (found == vocabulary.ids.end()) unk.Fail("is not in model.vocab");
    tables->unk_id = static_cast<int32_t>(found->second);
  }
  if (IsByteLevel(*tables) && tables->byte_fallback) {
    // Bytes of the alphabet's characters would be meant. With a whole alphabet it has no effect.
    std::vector<bool> has(256);
    for (const auto& [text, id] : vocabulary.ids) {
      const auto bytes = BytesOfAlphabet(text);
      if (bytes && bytes->size() == 1) has[static_cast<uint8_t>((*bytes)[0])] = true;
    }
    if (std::find(has.begin(), has.end(), false) != has.end()) {
      model["byte_fallback"].Fail("is true with a ByteLevel pre_tokenizer, which is not supported");
    }
    tables->byte_fallback = false;
  }
  return vocabulary;
}

void BuildBpeSegments(const BpeVocabulary& vocabulary, TokenizerTables* tables) {
  const Texts texts(vocabulary, *tables);
  const Merger merger(vocabulary, texts);
  tables->n_tokens = texts.count();
  std::vector<uint32_t> offsets = {0};
  for (uint32_t id = 0; id < texts.count(); ++id) {
    const std::string& text = texts.text(id);
    tables->token_bytes.insert(tables->token_bytes.end(), text.begin(), text.end());
    offsets.push_back(static_cast<uint32_t>(tables->token_bytes.size()));
  }
  AppendBytes(offsets, &tables->token_offsets);
  AppendBytes(TokenSlots(texts, merger), &tables->token_table);

  std::vector<uint8_t> boundary(kBoundaryBytes, 0);
  std::vector<MergeSlot> slots(SlotCount(vocabulary.merges.size()), {kEmptySlot, 0, 0, 0});
  // In order, so that the same file always gives the same bytes.
  const std::map<uint64_t, BpeMerge> ordered(vocabulary.merges.begin(), vocabulary.merges.end());
  for (const auto& [pair, merge] : ordered) {
    const uint32_t left = static_cast<uint32_t>(pair >> 32), right = static_cast<uint32_t>(pair);
    size_t i = HashPair(left, right) & (slots.size() - 1);
    while (slots[i].left != kEmptySlot) i = (i + 1) & (slots.size() - 1);
    slots[i] = {left, right, merge.rank, merge.id};
    if (texts.text(left).empty() || texts.text(right).empty()) continue;
    const uint32_t bit = BoundaryBit(texts.LastUnit(left), texts.FirstUnit(right));
    boundary[bit / 8] |= static_cast<uint8_t>(1u << (bit % 8));
  }
  tables->merge_table = std::move(boundary);
  AppendBytes(slots, &tables->merge_table);
}

}  // namespace arn::convert
