#include "converter/tokenizer/vocabulary.h"

#include <algorithm>
#include <limits>

#include "converter/tokenizer/pipeline.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

void SetUnknownToken(const JsonNode& unk, const Vocabulary& vocabulary, TokenizerTables* tables) {
  if (unk.IsNull()) return;
  const auto found = vocabulary.ids.find(unk.String());
  if (found != vocabulary.ids.end()) tables->unk_id = static_cast<int32_t>(found->second);
}

// Returns the model type, which files of the first versions do not name.
std::string TypeOf(const JsonNode& model) {
  const JsonNode type = model["type"];
  if (!type.IsNull()) return type.String();
  const JsonNode vocab = model["vocab"];
  if (!vocab.IsNull() && vocab.value().is_array()) return "Unigram";
  if (!model["merges"].IsNull()) return "BPE";
  if (!model["max_input_chars_per_word"].IsNull()) return "WordPiece";
  return model["unk_token"].IsNull() ? "" : "WordLevel";
}

}  // namespace

void Vocabulary::Add(const std::string& text, uint32_t id) {
  if (texts.size() <= id) texts.resize(id + 1);
  texts[id] = text;
  ids[text] = id;
  ++size;
}

void ReadTexts(const JsonNode& node, Vocabulary* out) {
  if (node.IsNull() || !node.value().is_object()) node.Fail("is not an object of strings and ids");
  out->texts.reserve(node.value().size());
  out->ids.reserve(node.value().size());
  std::vector<bool> is_given;
  for (const auto& [text, id] : node.value().items()) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > kMaxTokenId) {
      node.Fail("gives the token \"" + text + "\" the id " + id.dump() + ", expected 0.." +
                std::to_string(kMaxTokenId));
    }
    const uint32_t at = id.get<uint32_t>();
    if (is_given.size() <= at) is_given.resize(at + 1);
    if (is_given[at]) {
      node.Fail("gives the id " + id.dump() + " to \"" + out->texts[at] + "\" and to \"" + text +
                "\"");
    }
    is_given[at] = true;
    out->Add(text, at);
  }
}

void SetUnknownScore(const Vocabulary& vocabulary, TokenizerTables* tables) {
  constexpr double kPenalty = 10.0;
  double lowest = std::numeric_limits<double>::infinity();
  for (size_t id = 0; id < vocabulary.scores.size(); ++id) {
    if (!vocabulary.is_matched.empty() && !vocabulary.is_matched[id]) continue;
    lowest = std::min(lowest, vocabulary.scores[id]);
  }
  tables->unk_score = lowest - kPenalty;
}

Vocabulary ReadModel(const JsonNode& model, TokenizerTables* tables) {
  const std::string type = TypeOf(model);
  if (type == "BPE") return ReadBpeModel(model, tables);
  if (type == "Unigram") return ReadUnigramModel(model, tables);
  if (type == "WordPiece") return ReadWordPieceModel(model, tables);
  if (type == "WordLevel") return ReadWordLevelModel(model, tables);
  model["type"].FailUnsupported();
}

Vocabulary ReadUnigramModel(const JsonNode& model, TokenizerTables* tables) {
  tables->model = fbs::TokenizerModel::Unigram;
  for (const char* option : {"alpha", "nbest_size"}) {
    if (!model[option].IsNull()) model[option].FailUnsupported();
  }
  tables->byte_fallback = model["byte_fallback"].Bool(false);
  if (tables->byte_fallback && IsByteLevel(*tables)) {
    model["byte_fallback"].Fail("is true with a ByteLevel pre_tokenizer, which is not supported");
  }
  Vocabulary vocabulary;
  const JsonNode vocab = model["vocab"];
  const std::vector<JsonNode> items = vocab.Items();
  if (items.size() > kMaxTokenId) vocab.Fail("has too many tokens");
  for (const JsonNode& item : items) {
    const std::vector<JsonNode> pair = item.Items();
    if (pair.size() != 2) item.Fail("is not a string and its score");
    if (!pair[1].value().is_number()) item.Fail("has a score that is not a number");
    // The last of duplicate texts wins.
    vocabulary.Add(pair[0].String(), static_cast<uint32_t>(vocabulary.scores.size()));
    vocabulary.scores.push_back(pair[1].value().get<double>());
  }
  const JsonNode unk = model["unk_id"];
  if (!unk.IsNull()) {
    if (unk.Uint() >= vocabulary.size) {
      unk.Fail("is " + std::to_string(unk.Uint()) + " of " + std::to_string(vocabulary.size) +
               " tokens");
    }
    tables->unk_id = static_cast<int32_t>(unk.Uint());
  }
  SetUnknownScore(vocabulary, tables);
  return vocabulary;
}

Vocabulary ReadWordPieceModel(const JsonNode& model, TokenizerTables* tables) {
  tables->model = fbs::TokenizerModel::WordPiece;
  Vocabulary vocabulary;
  ReadTexts(model["vocab"], &vocabulary);
  SetUnknownToken(model["unk_token"], vocabulary, tables);
  tables->subword_prefix = model["continuing_subword_prefix"].String("##");
  const JsonNode most = model["max_input_chars_per_word"];
  tables->max_word_chars = most.IsNull() ? 100 : most.Uint();
  return vocabulary;
}

Vocabulary ReadWordLevelModel(const JsonNode& model, TokenizerTables* tables) {
  tables->model = fbs::TokenizerModel::WordLevel;
  Vocabulary vocabulary;
  ReadTexts(model["vocab"], &vocabulary);
  SetUnknownToken(model["unk_token"], vocabulary, tables);
  return vocabulary;
}

}  // namespace arn::convert
