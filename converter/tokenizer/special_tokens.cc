#include "converter/tokenizer/special_tokens.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "converter/tokenizer/byte_alphabet.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

// Returns a named special token: a text or {"content": text}.
std::string SpecialText(const JsonNode& file, const std::string& name) {
  const JsonNode node = file[name];
  if (node.IsNull()) return "";
  return node.value().is_object() ? node["content"].String() : node.String();
}

}  // namespace

// The reference assigns ids to added tokens itself (AddedVocabulary::add_tokens): the vocabulary's
// id if it has the text, else the next free id.
void ReadAddedTokens(const JsonNode& node, const Vocabulary& vocabulary, TokenizerTables* tables) {
  if (node.IsNull()) return;
  const uint32_t vocabulary_size = vocabulary.size;
  uint32_t next = vocabulary_size;
  std::unordered_set<std::string> seen;
  for (const JsonNode& item : node.Items()) {
    TokenizerTables::AddedToken token;
    token.content = item["content"].String();
    if (token.content.empty()) continue;
    token.id = item["id"].Uint();
    token.special = item["special"].Bool(false);
    token.lstrip = item["lstrip"].Bool(false);
    token.rstrip = item["rstrip"].Bool(false);
    token.single_word = item["single_word"].Bool(false);
    token.normalized = item["normalized"].Bool(!token.special);
    const bool looks_around = token.lstrip || token.rstrip || token.single_word;
    const bool is_renamed = token.special && BytesOfAlphabet(token.content) != token.content;
    if (tables->normalizes_to_bytes && token.normalized &&
        (looks_around || is_renamed || !tables->normalizers.empty())) {
      item.Fail(
          "is normalized by ByteLevel and others, is special and changed by it, or depends on the "
          "text around it, which is not supported");
    }
    if (!seen.insert(token.content).second) item["content"].Fail("appears twice");
    const auto known = vocabulary.ids.find(token.content);
    const uint32_t expected = known != vocabulary.ids.end() ? known->second : next;
    if (token.id != expected) {
      item["id"].Fail("is " + std::to_string(token.id) + ", expected " + std::to_string(expected) +
                      " (the id that Hugging Face tokenizers gives to \"" + token.content + "\")");
    }
    if (token.id >= vocabulary_size) next = std::max(next, token.id + 1);
    tables->added.push_back(std::move(token));
  }
  OrderAddedTokens(tables);
}

void OrderAddedTokens(TokenizerTables* tables) {
  std::stable_partition(tables->added.begin(), tables->added.end(),
                        [](const auto& token) { return token.special; });
}

ConfigFiles ReadConfigFiles(const std::filesystem::path& folder) {
  ConfigFiles files;
  const auto read = [&](const char* name, nlohmann::json* out) {
    const std::filesystem::path path = folder / name;
    *out = std::filesystem::exists(path) ? ReadJsonFile(path) : nlohmann::json::object();
    if (!out->is_object()) throw TokenizerError(std::string(name) + ": is not a JSON object");
  };
  read("tokenizer_config.json", &files.config);
  read("special_tokens_map.json", &files.special_tokens);
  return files;
}

void ReadNamedTokens(const ConfigFiles& files, const TokenIds& ids, TokenizerTables* tables) {
  const JsonNode config(&files.config, "tokenizer_config.json");
  const JsonNode map(&files.special_tokens, "special_tokens_map.json");
  const auto id_of = [&](const std::string& name) {
    std::string text = SpecialText(config, name);
    if (text.empty()) text = SpecialText(map, name);
    return text.empty() ? -1 : ids.Find(text);
  };
  tables->bos_id = id_of("bos_token");
  tables->eos_id = id_of("eos_token");
  tables->pad_id = id_of("pad_token");
}

void CompareSettings(const ConfigFiles& files, TokenizerTables* tables) {
  const JsonNode config(&files.config, "tokenizer_config.json");
  // Newer versions of transformers ignore these flags; warns if they differ.
  const auto compare = [&](const char* key, int32_t id, const std::vector<uint32_t>& added) {
    const JsonNode flag = config[key];
    if (flag.IsNull()) return;
    const bool is_added =
        id >= 0 && std::find(added.begin(), added.end(), static_cast<uint32_t>(id)) != added.end();
    if (flag.Bool() == is_added) return;
    tables->warnings.push_back(std::string("tokenizer_config.json: ") + key + " is " +
                               (is_added ? "false" : "true") +
                               ", but the post_processor of tokenizer.json applies");
  };
  compare("add_bos_token", tables->bos_id, tables->prefix_ids);
  compare("add_eos_token", tables->eos_id, tables->suffix_ids);
}

}  // namespace arn::convert
