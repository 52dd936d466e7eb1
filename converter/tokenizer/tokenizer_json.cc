// Converts a checkpoint's whole tokenizer.
#include <functional>
#include <utility>

#include "converter/tokenizer/json_node.h"
#include "converter/tokenizer/pipeline.h"
#include "converter/tokenizer/sentencepiece_model.h"
#include "converter/tokenizer/special_tokens.h"
#include "converter/tokenizer/tokenizer_tables.h"
#include "converter/tokenizer/vocabulary.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

void ConvertJson(const nlohmann::json& json, const ConfigFiles& files, TokenizerTables* tables) {
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
  ReadNamedTokens(files, TokenIds(vocabulary, *tables), tables);
  CompareSettings(files, tables);
  BuildSegments(vocabulary, tables);
  if (tables->token_bytes.empty()) root["model"]["vocab"].Fail("has no tokens");
  for (const auto* list : {&tables->prefix_ids, &tables->suffix_ids, &tables->separator_ids}) {
    for (const uint32_t id : *list) {
      if (id < tables->n_tokens) continue;
      root["post_processor"].Fail("adds the id " + std::to_string(id) + " of " +
                                  std::to_string(tables->n_tokens) + " tokens");
    }
  }
}

ConfigFiles NoFiles() {
  ConfigFiles files;
  files.config = nlohmann::json::object();
  files.special_tokens = nlohmann::json::object();
  return files;
}

// Runs `convert` and turns an exception into *error.
bool Try(const std::string& file, const std::function<void()>& convert, std::string* error) {
  try {
    convert();
    return true;
  } catch (const TokenizerError& reason) {
    *error = reason.what();
  } catch (const nlohmann::json::exception& reason) {
    *error = file + ": " + reason.what();
  }
  return false;
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
  const std::filesystem::path pieces = FindSentencePieceFile(folder);
  const auto convert = [&] {
    if (!is_json && !pieces.empty()) {
      const SentencePieceFile model = ReadSentencePieceFile(pieces);
      return ConvertSentencePiece(model, pieces, ReadConfigFiles(folder), out);
    }
    const nlohmann::json json = ReadJsonFile(folder / "tokenizer.json");
    ConvertJson(json, ReadConfigFiles(folder), out);
  };
  return Try((folder / "tokenizer.json").string(), convert, error);
}

bool ConvertTokenizerJson(const std::string& text, TokenizerTables* out, std::string* error) {
  *out = TokenizerTables();
  const auto convert = [&] {
    ConvertJson(ParseTokenizerJson(text, "tokenizer.json"), NoFiles(), out);
  };
  return Try("tokenizer.json", convert, error);
}

bool ConvertTokenizerObject(const nlohmann::json& tokenizer, TokenizerTables* out,
                            std::string* error) {
  *out = TokenizerTables();
  return Try(
      "tokenizer.json", [&] { ConvertJson(tokenizer, NoFiles(), out); }, error);
}

bool ConvertSentencePieceBytes(const std::string& bytes, TokenizerTables* out, std::string* error) {
  *out = TokenizerTables();
  const auto convert = [&] {
    const SentencePieceFile model = ParseSentencePiece(
        reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), "tokenizer.model");
    ConvertSentencePiece(model, "tokenizer.model", NoFiles(), out);
  };
  return Try("tokenizer.model", convert, error);
}

}  // namespace arn::convert
