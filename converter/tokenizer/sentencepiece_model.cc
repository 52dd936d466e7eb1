#include "converter/tokenizer/sentencepiece_model.h"

#include <algorithm>
#include <map>
#include <utility>

#include "converter/tokenizer/charsmap.h"
#include "converter/tokenizer/json_node.h"
#include "converter/tokenizer/utf8_text.h"
#include "converter/tokenizer/vocabulary.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

constexpr char kBlank[] = "\u2581";  // SentencePiece's space

[[noreturn]] void Refuse(const std::string& file, const std::string& what) {
  throw TokenizerError(file + ": " + what);
}

void CheckKind(const SentencePieceFile& model, const std::string& file) {
  if (model.kind == SentencePieceKind::kWord) Refuse(file, "model_type WORD is not supported");
  if (model.kind == SentencePieceKind::kChar) Refuse(file, "model_type CHAR is not supported");
  if (model.treat_whitespace_as_suffix) {
    Refuse(file, "treat_whitespace_as_suffix is not supported");
  }
  if (!model.escape_whitespaces) Refuse(file, "escape_whitespaces false is not supported");
}

void AddNormalizers(const SentencePieceFile& model, const std::string& name, bool is_legacy,
                    TokenizerTables* tables) {
  using Kind = fbs::NormalizerKind;
  const auto add = [&](Kind kind) -> TokenizerTables::Normalizer& {
    tables->normalizers.emplace_back();
    tables->normalizers.back().kind = kind;
    return tables->normalizers.back();
  };
  if (!model.charsmap.empty()) {
    const nlohmann::json nothing;
    TokenizerTables::Normalizer& step = add(Kind::Charsmap);
    step.growth =
        CharsmapGrowth(JsonNode(&nothing, name + ": precompiled_charsmap"), model.charsmap);
    step.charsmap = model.charsmap;
    step.longest = true;
  }
  if (model.remove_extra_whitespaces) {
    TokenizerTables::Normalizer& strip = add(Kind::Strip);
    strip.left = strip.right = true;
    strip.content = " ";
    TokenizerTables::Normalizer& join = add(Kind::Replace);
    join.pattern = "\\x{20}{2,}";
    join.pattern_is_regex = true;
    join.content = " ";
  }
  if (model.add_dummy_prefix && is_legacy) add(Kind::Prepend).content = kBlank;
  if (is_legacy) {
    TokenizerTables::Normalizer& escape = add(Kind::Replace);
    escape.pattern = " ";
    escape.content = kBlank;
    if (!model.remove_extra_whitespaces) return;
    // Also strips literal U+2581 characters at the end of the text.
    TokenizerTables::Normalizer& strip = add(Kind::Strip);
    strip.right = true;
    strip.content = kBlank;
    return;
  }
  TokenizerTables::PreTokenizer step;
  step.kind = fbs::PreTokenizerKind::Metaspace;
  step.replacement = kBlank;
  step.prepend_scheme =
      model.add_dummy_prefix ? fbs::PrependScheme::First : fbs::PrependScheme::Never;
  tables->pre_tokenizers.push_back(step);
}

void AddDecoders(const SentencePieceFile& model, TokenizerTables* tables) {
  using Kind = fbs::DecoderKind;
  tables->decoders.push_back({Kind::Replace, kBlank, " "});
  if (model.byte_fallback) tables->decoders.push_back({Kind::ByteFallback, "", ""});
  tables->decoders.push_back({Kind::Fuse, "", ""});
  if (model.add_dummy_prefix) tables->decoders.push_back({Kind::Strip, "", " ", 1, 0});
}

// Two pieces merge if their concatenation is a piece; a higher score merges earlier. Equal scores
// get the same rank, because the leftmost merges first.
void AddMerges(const SentencePieceFile& model, Vocabulary* vocabulary) {
  std::map<float, uint32_t, std::greater<>> ranks;
  for (const auto& piece : model.pieces) ranks[piece.score] = 0;
  uint32_t next = 0;
  for (auto& [score, rank] : ranks) rank = next++;
  const auto find = [&](const std::string& text) -> int64_t {
    const auto found = vocabulary->ids.find(text);
    if (found == vocabulary->ids.end()) return -1;
    const bool is_normal = model.pieces[found->second].type == PieceType::kNormal;
    return is_normal ? static_cast<int64_t>(found->second) : -1;
  };
  for (uint32_t id = 0; id < model.pieces.size(); ++id) {
    const auto& piece = model.pieces[id];
    if (piece.type != PieceType::kNormal) continue;
    for (size_t at = 0; at < piece.text.size();) {
      at += CharacterBytes(piece.text, at);
      if (at >= piece.text.size()) break;
      const int64_t left = find(piece.text.substr(0, at));
      const int64_t right = left < 0 ? -1 : find(piece.text.substr(at));
      if (right < 0) continue;
      vocabulary->merges[static_cast<uint64_t>(left) << 32 | static_cast<uint64_t>(right)] = {
          ranks[piece.score], id};
    }
  }
}

void AddTokens(const SentencePieceFile& model, TokenizerTables* tables) {
  for (uint32_t id = 0; id < model.pieces.size(); ++id) {
    const auto& piece = model.pieces[id];
    const bool is_special = piece.type == PieceType::kControl || piece.type == PieceType::kUnknown;
    if (!is_special && piece.type != PieceType::kUserDefined) continue;
    TokenizerTables::AddedToken token;
    token.content = piece.text;
    token.id = id;
    token.special = is_special;
    tables->added.push_back(std::move(token));
  }
}

// Reads tokens added after the model's: added_tokens_decoder of tokenizer_config.json, or
// added_tokens.json of older checkpoints.
void ReadLaterTokens(const std::filesystem::path& folder, const ConfigFiles& files,
                     const Vocabulary& vocabulary, TokenizerTables* tables) {
  const auto add = [&](TokenizerTables::AddedToken token, const JsonNode& node) {
    const bool is_known =
        std::any_of(tables->added.begin(), tables->added.end(),
                    [&](const auto& other) { return other.content == token.content; });
    if (token.content.empty() || is_known) return;
    if (token.id > kMaxTokenId) node.Fail("has an id that is too large");
    const auto found = vocabulary.ids.find(token.content);
    const bool is_free = token.id >= vocabulary.size;
    if (found != vocabulary.ids.end() ? found->second != token.id : !is_free) {
      node.Fail("gives \"" + token.content + "\" an id of another token");
    }
    tables->added.push_back(std::move(token));
  };
  const JsonNode decoder = JsonNode(&files.config, "tokenizer_config.json")["added_tokens_decoder"];
  if (!decoder.IsNull()) {
    if (!decoder.value().is_object()) decoder.Fail("is not an object");
    for (const auto& [id, value] : decoder.value().items()) {
      const JsonNode item = decoder[id];
      if (id.empty() || id.size() > 9 || id.find_first_not_of("0123456789") != std::string::npos) {
        item.Fail("is not a token id");
      }
      TokenizerTables::AddedToken token;
      token.content = item["content"].String();
      token.id = static_cast<uint32_t>(std::stoul(id));
      token.special = item["special"].Bool(false);
      token.lstrip = item["lstrip"].Bool(false);
      token.rstrip = item["rstrip"].Bool(false);
      token.single_word = item["single_word"].Bool(false);
      token.normalized = item["normalized"].Bool(!token.special);
      add(std::move(token), item);
    }
    return;
  }
  if (folder.empty() || !std::filesystem::exists(folder / "added_tokens.json")) return;
  const nlohmann::json json = ReadJsonFile(folder / "added_tokens.json");
  const JsonNode root(&json, "added_tokens.json");
  if (!json.is_object()) root.Fail("is not an object");
  for (const auto& [text, value] : json.items()) {
    TokenizerTables::AddedToken token;
    token.content = text;
    token.id = root[text].Uint();
    token.normalized = true;
    add(std::move(token), root[text]);
  }
}

void AddAround(const ConfigFiles& files, const SentencePieceFile& model, const std::string& name,
               TokenizerTables* tables) {
  const auto id_of = [&](int64_t id) {
    const bool is_piece = id >= 0 && static_cast<uint64_t>(id) < model.pieces.size();
    return is_piece ? static_cast<int32_t>(id) : -1;
  };
  if (tables->bos_id < 0) tables->bos_id = id_of(model.bos_id);
  if (tables->eos_id < 0) tables->eos_id = id_of(model.eos_id);
  if (tables->pad_id < 0) tables->pad_id = id_of(model.pad_id);
  const JsonNode config(&files.config, "tokenizer_config.json");
  const JsonNode bos = config["add_bos_token"];
  const JsonNode eos = config["add_eos_token"];
  const bool has_bos = tables->bos_id >= 0;
  if (bos.IsNull() && eos.IsNull()) {
    tables->warnings.push_back(
        name + " does not name the tokens around a text: " +
        (has_bos ? "the begin token is added before it" : "the end token is added after it"));
  }
  if (has_bos && bos.Bool(true)) {
    tables->prefix_ids.push_back(static_cast<uint32_t>(tables->bos_id));
  }
  if (tables->eos_id >= 0 && eos.Bool(!has_bos)) {
    tables->suffix_ids.push_back(static_cast<uint32_t>(tables->eos_id));
  }
  tables->knows_pair = false;  // no file says it
}

Vocabulary TablesOfSentencePiece(const SentencePieceFile& model, const std::string& name,
                                 bool is_legacy, TokenizerTables* tables) {
  CheckKind(model, name);
  const bool is_bpe = model.kind == SentencePieceKind::kBpe;
  tables->model = is_bpe ? fbs::TokenizerModel::Bpe : fbs::TokenizerModel::Unigram;
  tables->byte_fallback = model.byte_fallback;
  tables->fuse_unk = true;
  AddNormalizers(model, name, is_legacy, tables);
  AddDecoders(model, tables);
  Vocabulary vocabulary;
  if (model.pieces.size() > kMaxTokenId) Refuse(name, "has too many pieces");
  for (uint32_t id = 0; id < model.pieces.size(); ++id) {
    const auto& piece = model.pieces[id];
    const std::string place = "piece " + std::to_string(id);
    if (piece.text.empty()) Refuse(name, place + " is empty");
    if (!IsUtf8Text(reinterpret_cast<const uint8_t*>(piece.text.data()), piece.text.size())) {
      Refuse(name, place + " is not UTF-8");
    }
    if (vocabulary.ids.contains(piece.text)) Refuse(name, place + " appears twice");
    if (is_bpe && piece.type == PieceType::kUnused) {
      Refuse(name, place + " is UNUSED in a BPE model, which is not supported");
    }
    vocabulary.Add(piece.text, id);
    vocabulary.scores.push_back(piece.score);
    vocabulary.is_matched.push_back(piece.type == PieceType::kNormal);
    if (piece.type != PieceType::kUnknown) continue;
    if (tables->unk_id >= 0) Refuse(name, place + " is a second UNKNOWN piece");
    tables->unk_id = static_cast<int32_t>(id);
  }
  if (tables->unk_id < 0) Refuse(name, "has no UNKNOWN piece");
  if (is_bpe) {
    AddMerges(model, &vocabulary);
  } else {
    SetUnknownScore(vocabulary, tables);
  }
  AddTokens(model, tables);
  return vocabulary;
}

}  // namespace

std::filesystem::path FindSentencePieceFile(const std::filesystem::path& folder) {
  for (const char* name : {"tokenizer.model", "spiece.model", "sentencepiece.bpe.model"}) {
    if (std::filesystem::exists(folder / name)) return folder / name;
  }
  return {};
}

void ConvertSentencePiece(const SentencePieceFile& model, const std::filesystem::path& path,
                          const ConfigFiles& files, TokenizerTables* tables) {
  const std::string name = path.filename().string();
  const bool is_legacy = JsonNode(&files.config, "tokenizer_config.json")["legacy"].Bool(true);
  const Vocabulary vocabulary = TablesOfSentencePiece(model, name, is_legacy, tables);
  ReadLaterTokens(path.parent_path(), files, vocabulary, tables);
  OrderAddedTokens(tables);
  ReadNamedTokens(files, TokenIds(vocabulary, *tables), tables);
  AddAround(files, model, name, tables);
  BuildSegments(vocabulary, tables);
}

}  // namespace arn::convert
