// A checkpoint's tokenizer as a whole.
#include <utility>

#include "converter/tokenizer/json_node.h"
#include "converter/tokenizer/pipeline.h"
#include "converter/tokenizer/sentencepiece_model.h"
#include "converter/tokenizer/special_tokens.h"
#include "converter/tokenizer/tokenizer_tables.h"
#include "converter/tokenizer/vocabulary.h"

namespace arn::convert {
namespace {

void ConvertJson(const std::filesystem::path& folder, TokenizerTables* tables) {
  const nlohmann::json json = ReadJsonFile(folder / "tokenizer.json");
  const JsonNode root(&json, "tokenizer.json");
  ReadNormalizers(root["normalizer"], tables);
  ReadPreTokenizers(root["pre_tokenizer"], tables);
  ReadDecoders(root["decoder"], tables);
  const Vocabulary vocabulary = ReadModel(root["model"], tables);
  ReadAddedTokens(root["added_tokens"], vocabulary, tables);
  ReadPostProcessor(root["post_processor"], tables);
  for (const char* ignored : {"truncation", "padding"}) {
    if (root[ignored].IsNull()) continue;
    tables->warnings.push_back(std::string("tokenizer.json: ") + ignored + " is ignored");
  }
  const ConfigFiles files = ReadConfigFiles(folder);
  ReadNamedTokens(files, TokenIds(vocabulary, *tables), tables);
  CompareSettings(files, tables);
  BuildSegments(vocabulary, tables);
  if (tables->token_bytes.empty()) root["model"]["vocab"].Fail("has no tokens");
  for (const auto* list : {&tables->prefix_ids, &tables->suffix_ids}) {
    for (const uint32_t id : *list) {
      if (id < tables->n_tokens) continue;
      root["post_processor"].Fail("adds the id " + std::to_string(id) + " of " +
                                  std::to_string(tables->n_tokens) + " tokens");
    }
  }
}

}  // namespace

bool HasTokenizer(const std::filesystem::path& folder) {
  return std::filesystem::exists(folder / "tokenizer.json") ||
         !FindSentencePieceFile(folder).empty();
}

bool ConvertTokenizer(const std::filesystem::path& folder, TokenizerTables* out,
                      std::string* error) {
  *out = TokenizerTables();
  const bool is_json = std::filesystem::exists(folder / "tokenizer.json");
  const std::filesystem::path sentence_pieces = FindSentencePieceFile(folder);
  try {
    if (is_json || sentence_pieces.empty()) {
      ConvertJson(folder, out);
    } else {
      ConvertSentencePiece(folder, sentence_pieces, out);
    }
    return true;
  } catch (const TokenizerError& reason) {
    *error = reason.what();
  } catch (const nlohmann::json::exception& reason) {
    *error = (folder / "tokenizer.json").string() + ": " + reason.what();
  }
  return false;
}

}  // namespace arn::convert
