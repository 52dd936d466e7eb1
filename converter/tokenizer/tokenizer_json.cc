// tokenizer.json as a whole, and what tokenizer_config.json adds to it.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "converter/tokenizer/bpe_tables.h"
#include "converter/tokenizer/json_node.h"
#include "converter/tokenizer/pipeline.h"
#include "converter/tokenizer/tokenizer_tables.h"

namespace arn::convert {
namespace {

// Ids of texts: added tokens first, as in the reference.
class TokenIds {
 public:
  TokenIds(const BpeVocabulary& vocabulary, const TokenizerTables& tables)
      : vocabulary_(vocabulary.ids) {
    for (const auto& token : tables.added) added_.emplace(token.content, token.id);
  }
  // -1 when no token has the text.
  int32_t Find(const std::string& text) const {
    if (const auto found = added_.find(text); found != added_.end()) {
      return static_cast<int32_t>(found->second);
    }
    const auto found = vocabulary_.find(text);
    return found == vocabulary_.end() ? -1 : static_cast<int32_t>(found->second);
  }

 private:
  const std::unordered_map<std::string, uint32_t>& vocabulary_;
  std::unordered_map<std::string, uint32_t> added_;
};

// The reference gives added tokens ids of its own (AddedVocabulary::add_tokens): that of the
// vocabulary for a text that is in it, else the next free one.
void ReadAddedTokens(const JsonNode& node, const BpeVocabulary& vocabulary,
                     TokenizerTables* tables) {
  if (node.IsNull()) return;
  const uint32_t vocabulary_size = static_cast<uint32_t>(vocabulary.ids.size());
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
    if (!seen.insert(token.content).second) item["content"].Fail("comes twice");
    const auto known = vocabulary.ids.find(token.content);
    const uint32_t expected = known != vocabulary.ids.end() ? known->second : next;
    if (token.id != expected) {
      item["id"].Fail("is " + std::to_string(token.id) + ", expected " + std::to_string(expected) +
                      " (the id that Hugging Face tokenizers gives to \"" + token.content + "\")");
    }
    if (token.id >= vocabulary_size) next = std::max(next, token.id + 1);
    tables->added.push_back(std::move(token));
  }
  // The order in which texts that become equal by normalization count.
  std::stable_partition(tables->added.begin(), tables->added.end(),
                        [](const auto& token) { return token.special; });
}

// TemplateProcessing: what stands before and behind the text.
void ReadTemplate(const JsonNode& node, TokenizerTables* tables) {
  bool has_text = false;
  for (const JsonNode& item : node["single"].Items()) {
    const JsonNode special = item["SpecialToken"];
    const JsonNode sequence = item["Sequence"];
    if (!sequence.IsNull()) {
      if (has_text || sequence["id"].String() != "A") sequence.Unsupported();
      has_text = true;
      continue;
    }
    if (special.IsNull()) item.Unsupported();
    const JsonNode ids = node["special_tokens"][special["id"].String()]["ids"];
    for (const JsonNode& id : ids.Items()) {
      (has_text ? tables->suffix_ids : tables->prefix_ids).push_back(id.Uint());
    }
  }
  if (!has_text) node["single"].Fail("has no place for the text");
}

void ReadPostProcessor(const JsonNode& node, TokenizerTables* tables) {
  if (node.IsNull()) return;
  const std::string type = node["type"].String();
  if (type == "Sequence") {
    for (const JsonNode& item : node["processors"].Items()) ReadPostProcessor(item, tables);
  } else if (type == "TemplateProcessing") {
    if (!tables->prefix_ids.empty() || !tables->suffix_ids.empty()) {
      node.Fail("is a second template, which is not supported");
    }
    ReadTemplate(node, tables);
  } else if (type != "ByteLevel") {  // it only moves offsets
    node["type"].Unsupported();
  }
}

// A named special token: a text or {"content": text}.
std::string SpecialText(const JsonNode& file, const std::string& name) {
  const JsonNode node = file[name];
  if (node.IsNull()) return "";
  return node.value().is_object() ? node["content"].String() : node.String();
}

struct ConfigFiles {
  nlohmann::json config;
  nlohmann::json special_tokens;
};

void ReadConfig(const ConfigFiles& files, const TokenIds& ids, TokenizerTables* tables) {
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

  // What newer versions of transformers do not look at, said when it says something else.
  const auto compare = [&](const char* key, int32_t id, const std::vector<uint32_t>& added) {
    const JsonNode flag = config[key];
    if (flag.IsNull()) return;
    const bool is_added =
        id >= 0 && std::find(added.begin(), added.end(), static_cast<uint32_t>(id)) != added.end();
    if (flag.Bool() == is_added) return;
    tables->warnings.push_back(std::string("tokenizer_config.json: ") + key + " is " +
                               (is_added ? "false" : "true") +
                               ", but the post_processor of tokenizer.json counts");
  };
  compare("add_bos_token", tables->bos_id, tables->prefix_ids);
  compare("add_eos_token", tables->eos_id, tables->suffix_ids);
}

void Convert(const std::filesystem::path& folder, TokenizerTables* tables) {
  const nlohmann::json json = ReadJsonFile(folder / "tokenizer.json");
  const JsonNode root(&json, "tokenizer.json");
  ReadNormalizers(root["normalizer"], tables);
  ReadPreTokenizers(root["pre_tokenizer"], tables);
  ReadDecoders(root["decoder"], tables);
  const BpeVocabulary vocabulary = ReadBpeModel(root["model"], tables);
  ReadAddedTokens(root["added_tokens"], vocabulary, tables);
  ReadPostProcessor(root["post_processor"], tables);
  for (const char* ignored : {"truncation", "padding"}) {
    if (root[ignored].IsNull()) continue;
    tables->warnings.push_back(std::string("tokenizer.json: ") + ignored + " is ignored");
  }

  ConfigFiles files;
  const auto read = [&](const char* name, nlohmann::json* out) {
    const std::filesystem::path path = folder / name;
    *out = std::filesystem::exists(path) ? ReadJsonFile(path) : nlohmann::json::object();
    if (!out->is_object()) throw TokenizerError(std::string(name) + ": is not a JSON object");
  };
  read("tokenizer_config.json", &files.config);
  read("special_tokens_map.json", &files.special_tokens);
  ReadConfig(files, TokenIds(vocabulary, *tables), tables);

  BuildBpeSegments(vocabulary, tables);
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

bool ConvertTokenizer(const std::filesystem::path& folder, TokenizerTables* out,
                      std::string* error) {
  *out = TokenizerTables();
  try {
    Convert(folder, out);
    return true;
  } catch (const TokenizerError& reason) {
    *error = reason.what();
  } catch (const nlohmann::json::exception& reason) {
    *error = (folder / "tokenizer.json").string() + ": " + reason.what();
  }
  return false;
}

}  // namespace arn::convert
