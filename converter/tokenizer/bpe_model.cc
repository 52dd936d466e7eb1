// Reads the BPE model of a tokenizer.json.
#include <algorithm>
#include <optional>
#include <utility>

#include "converter/tokenizer/byte_alphabet.h"
#include "converter/tokenizer/pipeline.h"
#include "converter/tokenizer/vocabulary.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

std::string ReadAffix(const JsonNode& node) {
  constexpr size_t kMaxBytes = 64;
  if (node.IsNull()) return "";
  const std::string text = node.String();
  if (text.size() > kMaxBytes) node.FailUnsupported();
  return text;
}

// Reads a merge: "left right" in older files, [left, right] in newer ones.
std::optional<std::pair<std::string, std::string>> ReadMerge(const JsonNode& node) {
  if (node.value().is_array()) {
    const std::vector<JsonNode> sides = node.Items();
    if (sides.size() != 2) node.Fail("does not have two sides");
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

// Drops the right side's prefix from the merged token.
void ReadMerges(const JsonNode& node, const std::string& prefix, Vocabulary* out) {
  uint32_t rank = 0;
  const std::vector<JsonNode> items = node.Items();
  out->merges.reserve(items.size());
  for (const JsonNode& item : items) {
    const auto merge = ReadMerge(item);
    if (!merge) continue;
    const auto id_of = [&](const std::string& token) {
      const auto found = out->ids.find(token);
      if (found == out->ids.end()) item.Fail("has the token \"" + token + "\", not in model.vocab");
      return found->second;
    };
    const uint32_t left = id_of(merge->first), right = id_of(merge->second);
    if (merge->second.size() < prefix.size()) item.Fail("has a right side without the prefix");
    const std::string joined = merge->second.substr(prefix.size());
    // The last of duplicate pairs wins.
    out->merges[uint64_t{left} << 32 | right] = {rank++, id_of(merge->first + joined)};
  }
}

}  // namespace

Vocabulary ReadBpeModel(const JsonNode& model, TokenizerTables* tables) {
  tables->model = fbs::TokenizerModel::Bpe;
  const JsonNode dropout = model["dropout"];
  if (!dropout.IsNull() && dropout.value() != 0) dropout.FailUnsupported();
  tables->subword_prefix = ReadAffix(model["continuing_subword_prefix"]);
  tables->word_suffix = ReadAffix(model["end_of_word_suffix"]);
  tables->fuse_unk = model["fuse_unk"].Bool(false);
  tables->byte_fallback = model["byte_fallback"].Bool(false);
  tables->ignore_merges = model["ignore_merges"].Bool(false);
  if (tables->byte_fallback && !(tables->subword_prefix + tables->word_suffix).empty()) {
    model["byte_fallback"].Fail("is true with a prefix or suffix of words, which is not supported");
  }
  Vocabulary vocabulary;
  ReadTexts(model["vocab"], &vocabulary);
  ReadMerges(model["merges"], tables->subword_prefix, &vocabulary);
  const JsonNode unk = model["unk_token"];
  if (!unk.IsNull()) {
    const auto found = vocabulary.ids.find(unk.String());
    if (found == vocabulary.ids.end()) unk.Fail("is not in model.vocab");
    tables->unk_id = static_cast<int32_t>(found->second);
  }
  if (IsByteLevel(*tables) && tables->byte_fallback) {
    // byte_fallback on a byte-level alphabet would map to the alphabet's characters. A complete
    // alphabet never falls back.
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

}  // namespace arn::convert
