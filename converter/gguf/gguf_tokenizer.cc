#include "converter/gguf/gguf_tokenizer.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "converter/base/error.h"
#include "converter/gguf/pre_tokenizers.h"
#include "converter/hf/json_file.h"
#include "converter/tokenizer/base64.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

constexpr const char* kModelKey = "tokenizer.ggml.model";
constexpr const char* kTokensKey = "tokenizer.ggml.tokens";
constexpr const char* kTypesKey = "tokenizer.ggml.token_type";
constexpr const char* kScoresKey = "tokenizer.ggml.scores";
constexpr const char* kMergesKey = "tokenizer.ggml.merges";
constexpr const char* kBlank = "\u2581";  // SentencePiece's space

enum TokenType : int64_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

bool IsUtf8(const std::string& text) {
  for (size_t i = 0; i < text.size();) {
    const auto byte = [&](size_t k) { return static_cast<uint8_t>(text[k]); };
    const uint8_t lead = byte(i);
    const size_t size = lead < 0x80                   ? 1
                        : lead >= 0xC2 && lead < 0xE0 ? 2
                        : lead >= 0xE0 && lead < 0xF0 ? 3
                        : lead >= 0xF0 && lead < 0xF5 ? 4
                                                      : 0;
    if (size == 0 || i + size > text.size()) return false;
    for (size_t k = 1; k < size; ++k) {
      if ((byte(i + k) & 0xC0) != 0x80) return false;
    }
    // Overlong forms, surrogates, and values above the last code point.
    const uint8_t second = size > 1 ? byte(i + 1) : 0;
    if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
        (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F)) {
      return false;
    }
    i += size;
  }
  return true;
}

struct Token {
  std::string text;
  int64_t type = kNormal;
  double score = 0;
};

std::vector<Token> ReadTokens(ConfigReader* metadata) {
  const nlohmann::json* texts = metadata->Find(kTokensKey);
  if (texts == nullptr || !texts->is_array() || texts->empty()) {
    metadata->FailKey(kTokensKey, "a list of texts");
  }
  const auto list = [&](const char* key) {
    const nlohmann::json* values = metadata->Find(key);
    if (values != nullptr && (!values->is_array() || values->size() != texts->size())) {
      metadata->FailKey(key, ("a list of " + std::to_string(texts->size()) +
                              " values, one for each "
                              "of " +
                              kTokensKey)
                                 .c_str());
    }
    return values;
  };
  const nlohmann::json* types = list(kTypesKey);
  const nlohmann::json* scores = list(kScoresKey);
  std::vector<Token> tokens(texts->size());
  std::unordered_map<std::string, size_t> seen;
  for (size_t i = 0; i < tokens.size(); ++i) {
    Token& token = tokens[i];
    if (!(*texts)[i].is_string()) metadata->FailKey(kTokensKey, "a list of texts");
    token.text = (*texts)[i].get<std::string>();
    if (!IsUtf8(token.text)) {
      Fail("%s: %s: token %zu is not valid UTF-8", metadata->label().c_str(), kTokensKey, i);
    }
    if (types != nullptr) {
      if (!(*types)[i].is_number_integer()) metadata->FailKey(kTypesKey, "a list of numbers");
      token.type = (*types)[i].get<int64_t>();
    }
    if (scores != nullptr) {
      if (!(*scores)[i].is_number() || !std::isfinite((*scores)[i].get<double>())) {
        metadata->FailKey(kScoresKey, "a list of numbers");
      }
      token.score = (*scores)[i].get<double>();
    }
    if (token.text.empty() || token.type == kUnused) continue;
    const auto [before, is_new] = seen.emplace(token.text, i);
    if (!is_new) {
      Fail("%s: %s: tokens %zu and %zu have the same text %s", metadata->label().c_str(),
           kTokensKey, before->second, i, Shown(token.text).c_str());
    }
  }
  return tokens;
}

// Reads and checks a token id; nullopt if the key is absent.
std::optional<uint32_t> TokenId(ConfigReader* metadata, const char* name, size_t n_tokens) {
  const std::string key = std::string("tokenizer.ggml.") + name;
  const std::optional<int64_t> id = metadata->Int(key);
  // Some files use these values for "none".
  if (!id || *id == -1 || *id == UINT32_MAX) return std::nullopt;
  if (*id < 0 || static_cast<uint64_t>(*id) >= n_tokens) {
    metadata->FailKey(key,
                      ("the number of one of " + std::to_string(n_tokens) + " tokens").c_str());
  }
  return static_cast<uint32_t>(*id);
}

bool IsAdded(const Token& token) {
  return token.type == kControl || token.type == kUnknown || token.type == kUserDefined;
}

nlohmann::json AddedTokens(const std::vector<Token>& tokens) {
  nlohmann::json added = nlohmann::json::array();
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (!IsAdded(tokens[i]) || tokens[i].text.empty()) continue;
    added.push_back({{"id", i},
                     {"content", tokens[i].text},
                     {"special", tokens[i].type != kUserDefined},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"single_word", false},
                     {"normalized", false}});
  }
  return added;
}

// Returns the index of the first added token that follows the whole vocabulary without a gap, as in
// tokenizer.json: no merge may produce such tokens. Returns the end if there is a gap.
size_t FirstAddedBehind(const std::vector<Token>& tokens) {
  size_t end = tokens.size();
  while (end > 0 && tokens[end - 1].type == kUnused) --end;
  size_t first = end;
  while (first > 0 && IsAdded(tokens[first - 1])) --first;
  const bool has_gaps =
      std::any_of(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(end),
                  [](const Token& t) { return t.type == kUnused || t.text.empty(); });
  return has_gaps ? tokens.size() : first;
}

nlohmann::json Vocabulary(const std::vector<Token>& tokens) {
  nlohmann::json vocabulary = nlohmann::json::object();
  const size_t end = FirstAddedBehind(tokens);
  for (size_t i = 0; i < end; ++i) {
    if (tokens[i].type != kUnused && !tokens[i].text.empty()) vocabulary[tokens[i].text] = i;
  }
  return vocabulary;
}

// Returns the post-processor that adds BOS and EOS around a text, and EOS and the separator between
// two texts if the file has a separator.
nlohmann::json Template(ConfigReader* metadata, const std::vector<Token>& tokens, bool adds_bos,
                        bool adds_eos = false) {
  const std::optional<uint32_t> bos = TokenId(metadata, "bos_token_id", tokens.size());
  const std::optional<uint32_t> eos = TokenId(metadata, "eos_token_id", tokens.size());
  const bool with_bos = metadata->Bool("tokenizer.ggml.add_bos_token", adds_bos) && bos;
  const bool with_eos = metadata->Bool("tokenizer.ggml.add_eos_token", adds_eos) && eos;
  if (!with_bos && !with_eos) return nullptr;
  nlohmann::json single = nlohmann::json::array(), special = nlohmann::json::object();
  const auto add = [&](uint32_t id) {
    single.push_back({{"SpecialToken", {{"id", tokens[id].text}, {"type_id", 0}}}});
    special[tokens[id].text] = {{"id", tokens[id].text}, {"ids", {id}}};
  };
  if (with_bos) add(*bos);
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  if (with_eos) add(*eos);
  nlohmann::json whole = {{"type", "TemplateProcessing"}, {"single", single}};
  if (metadata->Bool("tokenizer.ggml.add_sep_token", false) && with_eos) {
    add(TokenId(metadata, "seperator_token_id", tokens.size()).value_or(*eos));
    single.push_back({{"Sequence", {{"id", "B"}, {"type_id", 0}}}});
    add(*eos);
    whole["pair"] = std::move(single);
  }
  whole["special_tokens"] = std::move(special);
  return whole;
}

// Splits each "left right" at the first space after the first character: left may start with a
// space.
nlohmann::json Merges(ConfigReader* metadata) {
  const nlohmann::json* texts = metadata->Find(kMergesKey);
  if (texts == nullptr || !texts->is_array()) metadata->FailKey(kMergesKey, "a list of texts");
  nlohmann::json merges = nlohmann::json::array();
  for (const nlohmann::json& text : *texts) {
    const size_t space =
        text.is_string() ? text.get_ref<const std::string&>().find(' ', 1) : std::string::npos;
    if (space == std::string::npos) metadata->FailKey(kMergesKey, "two tokens and a space");
    const std::string& pair = text.get_ref<const std::string&>();
    merges.push_back({pair.substr(0, space), pair.substr(space + 1)});
  }
  return merges;
}

nlohmann::json ByteLevelTokenizer(ConfigReader* metadata, const std::vector<Token>& tokens,
                                  std::vector<std::string>* warnings) {
  const std::optional<std::string> named = metadata->String("tokenizer.ggml.pre");
  const std::string pre = named.value_or("default");
  if (pre == "default") {
    warnings->push_back(metadata->label() + ": tokenizer.ggml.pre " +
                        (named ? "is default" : "is absent") +
                        ": texts may be split differently than in training");
  }
  const std::optional<GgufPreTokenizer> found = FindPreTokenizer(pre);
  if (!found) {
    Fail("%s: tokenizer.ggml.pre %s is not supported (supported: %s; or --no-tokenizer)",
         metadata->label().c_str(), pre.c_str(), PreTokenizerNames().c_str());
  }
  return {{"normalizer", found->normalizer},
          {"pre_tokenizer", found->pre_tokenizer},
          {"decoder", {{"type", "ByteLevel"}}},
          {"post_processor", Template(metadata, tokens, found->adds_bos)},
          {"added_tokens", AddedTokens(tokens)},
          {"model",
           {{"type", "BPE"},
            {"ignore_merges", found->ignore_merges},
            {"vocab", Vocabulary(tokens)},
            {"merges", Merges(metadata)}}}};
}

size_t CharacterCount(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }));
}

// As transformers' generate_merges: all splits of a piece into two other pieces, sorted by the
// piece's score, then by the lengths of the two, all descending.
nlohmann::json MergesOfScores(const std::vector<Token>& tokens) {
  struct Merge {
    uint32_t left, right;
    double score;
    size_t left_characters, right_characters;
  };
  std::unordered_map<std::string_view, uint32_t> ids;
  std::unordered_set<size_t> sizes;  // of pieces: looking up all parts of a long one is slow
  for (uint32_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].type != kNormal || tokens[i].text.empty()) continue;
    ids.emplace(tokens[i].text, i);
    sizes.insert(tokens[i].text.size());
  }
  std::vector<Merge> merges;
  for (const Token& token : tokens) {
    if (token.type != kNormal) continue;
    const std::string_view text = token.text;
    std::vector<Merge> own;
    for (size_t at = 1; at < text.size(); ++at) {
      // Texts are UTF-8, so a cut inside a character leaves no piece.
      if (sizes.count(at) == 0 || sizes.count(text.size() - at) == 0) continue;
      const auto left = ids.find(text.substr(0, at)), right = ids.find(text.substr(at));
      if (left == ids.end() || right == ids.end()) continue;
      own.push_back({left->second, right->second, token.score, CharacterCount(left->first),
                     CharacterCount(right->first)});
    }
    // Each split of one text has another left piece.
    std::sort(own.begin(), own.end(),
              [](const Merge& a, const Merge& b) { return a.left < b.left; });
    merges.insert(merges.end(), own.begin(), own.end());
  }
  std::stable_sort(merges.begin(), merges.end(), [](const Merge& a, const Merge& b) {
    if (a.score != b.score) return a.score > b.score;
    if (a.left_characters != b.left_characters) return a.left_characters > b.left_characters;
    return a.right_characters > b.right_characters;
  });
  nlohmann::json list = nlohmann::json::array();
  for (const Merge& merge : merges) {
    list.push_back({tokens[merge.left].text, tokens[merge.right].text});
  }
  return list;
}

// has_merges: the file says which pieces merge; else their scores do.
nlohmann::json SentencePieceTokenizer(ConfigReader* metadata, const std::vector<Token>& tokens,
                                      bool has_merges, std::vector<std::string>* warnings) {
  if (!has_merges && !metadata->Has(kScoresKey)) {
    metadata->FailKey(kScoresKey, "a score for each token");
  }
  const bool is_flat =
      !has_merges && std::all_of(tokens.begin(), tokens.end(), [&](const Token& token) {
        return token.type != kNormal || token.score == tokens.back().score;
      });
  if (is_flat) {
    warnings->push_back(metadata->label() + ": " + kScoresKey +
                        " are all the same: texts may be split differently than in training");
  }
  if (metadata->Bool("tokenizer.ggml.remove_extra_whitespaces", false)) {
    metadata->FailKey("tokenizer.ggml.remove_extra_whitespaces", "false");
  }
  const bool adds_space = metadata->Bool("tokenizer.ggml.add_space_prefix", true);
  nlohmann::json normalizers = nlohmann::json::array();
  if (adds_space) normalizers.push_back({{"type", "Prepend"}, {"prepend", kBlank}});
  normalizers.push_back({{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kBlank}});
  nlohmann::json decoders = {
      {{"type", "Replace"}, {"pattern", {{"String", kBlank}}}, {"content", " "}},
      {{"type", "ByteFallback"}},
      {{"type", "Fuse"}},
  };
  if (adds_space) {
    decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1u}, {"stop", 0u}});
  }
  std::optional<uint32_t> unknown = TokenId(metadata, "unknown_token_id", tokens.size());
  for (uint32_t i = 0; i < tokens.size() && !unknown; ++i) {
    if (tokens[i].type == kUnknown) unknown = i;
  }
  const bool has_bytes = std::any_of(tokens.begin(), tokens.end(),
                                     [](const Token& token) { return token.type == kByte; });
  nlohmann::json model = {{"type", "BPE"},
                          {"fuse_unk", true},
                          {"byte_fallback", has_bytes},
                          {"vocab", Vocabulary(tokens)},
                          {"merges", has_merges ? Merges(metadata) : MergesOfScores(tokens)}};
  if (unknown) model["unk_token"] = tokens[*unknown].text;
  return {{"normalizer", {{"type", "Sequence"}, {"normalizers", normalizers}}},
          {"pre_tokenizer", nullptr},
          {"decoder", {{"type", "Sequence"}, {"decoders", decoders}}},
          {"post_processor", Template(metadata, tokens, /*adds_bos=*/true)},
          {"added_tokens", AddedTokens(tokens)},
          {"model", std::move(model)}};
}

// Returns the table of replacements in base64; null without one.
nlohmann::json Charsmap(ConfigReader* metadata) {
  constexpr const char* kKey = "tokenizer.ggml.precompiled_charsmap";
  const nlohmann::json* values = metadata->Find(kKey);
  if (values == nullptr) return nullptr;
  if (!values->is_array()) metadata->FailKey(kKey, "a list of bytes");
  std::vector<uint8_t> bytes;
  for (const nlohmann::json& value : *values) {
    const int64_t byte = value.is_number_integer() ? value.get<int64_t>() : INT64_MAX;
    if (byte < INT8_MIN || byte > UINT8_MAX) metadata->FailKey(kKey, "a list of bytes");
    bytes.push_back(static_cast<uint8_t>(byte));
  }
  return EncodeBase64(bytes);
}

// Builds SentencePiece's Unigram model, as in T5.
nlohmann::json UnigramTokenizer(ConfigReader* metadata, const std::vector<Token>& tokens) {
  if (!metadata->Has(kScoresKey)) metadata->FailKey(kScoresKey, "a score for each token");
  size_t end = tokens.size();
  while (end > 0 && tokens[end - 1].type == kUnused) --end;
  nlohmann::json vocab = nlohmann::json::array();
  for (size_t i = 0; i < end; ++i) vocab.push_back({tokens[i].text, tokens[i].score});
  nlohmann::json model = {
      {"type", "Unigram"}, {"vocab", std::move(vocab)}, {"byte_fallback", false}};
  std::optional<uint32_t> unknown = TokenId(metadata, "unknown_token_id", end);
  for (uint32_t i = 0; i < end; ++i) {
    if (tokens[i].type == kUnknown && !unknown) unknown = i;
    if (tokens[i].type == kByte) model["byte_fallback"] = true;
  }
  if (unknown) model["unk_id"] = *unknown;
  const nlohmann::json charsmap = Charsmap(metadata);
  const nlohmann::json pieces = {
      {"type", "Metaspace"},
      {"replacement", kBlank},
      {"add_prefix_space", metadata->Bool("tokenizer.ggml.add_space_prefix", true)}};
  nlohmann::json steps = nlohmann::json::array();
  // XLM-R splits at spaces; its key comes from another setting, of decoding.
  const bool is_encoder = metadata->String("general.architecture").value_or("") == "bert";
  if (is_encoder || metadata->Bool("tokenizer.ggml.remove_extra_whitespaces", true)) {
    steps.push_back({{"type", "WhitespaceSplit"}});
  }
  steps.push_back(pieces);
  return {{"normalizer", charsmap.is_null() ? nlohmann::json()
                                            : nlohmann::json({{"type", "Precompiled"},
                                                              {"precompiled_charsmap", charsmap}})},
          {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", steps}}},
          {"decoder", pieces},
          {"post_processor", Template(metadata, tokens, /*adds_bos=*/false, /*adds_eos=*/true)},
          {"added_tokens", AddedTokens(tokens)},
          {"model", std::move(model)}};
}

// BERT's WordPiece model. llama.cpp's converter puts a blank before pieces that begin a word, and
// removes the "##" of others.
nlohmann::json WordPieceTokenizer(ConfigReader* metadata, const std::vector<Token>& tokens) {
  const std::string blank = kBlank;
  nlohmann::json vocab = nlohmann::json::object();
  bool has_capitals = false;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const Token& token = tokens[i];
    if (token.type == kUnused || token.text.empty()) continue;
    const bool begins = token.text.compare(0, blank.size(), blank) == 0;
    const std::string text = IsAdded(token) ? token.text
                             : begins       ? token.text.substr(blank.size())
                                            : "##" + token.text;
    vocab[text] = i;
    if (IsAdded(token) || text[0] == '[') continue;
    has_capitals |=
        std::any_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  }
  // Files without the key are those of older converters: a model that lowers its texts has no
  // piece with a capital letter.
  const bool lowers = metadata->Bool("tokenizer.ggml.normalizer.lowercase", !has_capitals);
  nlohmann::json normalizer = {{"type", "BertNormalizer"},
                               {"clean_text", true},
                               {"handle_chinese_chars", true},
                               {"strip_accents", nullptr},
                               {"lowercase", lowers}};
  constexpr const char* kAccents = "tokenizer.ggml.normalizer.strip_accents";
  if (metadata->Has(kAccents)) normalizer["strip_accents"] = metadata->Bool(kAccents, lowers);
  const auto special = [&](const char* key, const char* other, const char* text) {
    std::optional<uint32_t> id = TokenId(metadata, key, tokens.size());
    if (!id) id = TokenId(metadata, other, tokens.size());
    for (uint32_t i = 0; i < tokens.size() && !id; ++i) {
      if (tokens[i].text == text) id = i;
    }
    if (!id) metadata->FailKey(std::string("tokenizer.ggml.") + key, "the number of a token");
    return *id;
  };
  const uint32_t first = special("cls_token_id", "bos_token_id", "[CLS]");
  const uint32_t end = special("seperator_token_id", "eos_token_id", "[SEP]");
  const uint32_t unknown = special("unknown_token_id", "unknown_token_id", "[UNK]");
  const auto piece = [](const char* kind, const std::string& id, uint32_t type) {
    return nlohmann::json({{kind, {{"id", id}, {"type_id", type}}}});
  };
  const std::string first_text = tokens[first].text, end_text = tokens[end].text;
  const auto around = [](const std::string& text, uint32_t id) {
    return nlohmann::json({{"id", text}, {"ids", {id}}});
  };
  const nlohmann::json single = {piece("SpecialToken", first_text, 0), piece("Sequence", "A", 0),
                                 piece("SpecialToken", end_text, 0)};
  nlohmann::json pair = single;
  pair.push_back(piece("Sequence", "B", 1));
  pair.push_back(piece("SpecialToken", end_text, 1));
  return {{"normalizer", std::move(normalizer)},
          {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
          {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
          {"post_processor",
           {{"type", "TemplateProcessing"},
            {"single", single},
            {"pair", std::move(pair)},
            {"special_tokens",
             {{first_text, around(first_text, first)}, {end_text, around(end_text, end)}}}}},
          {"added_tokens", AddedTokens(tokens)},
          {"model",
           {{"type", "WordPiece"},
            {"unk_token", tokens[unknown].text},
            {"continuing_subword_prefix", "##"},
            {"max_input_chars_per_word", 100u},
            {"vocab", std::move(vocab)}}}};
}

// Texts of stop tokens.
constexpr const char* kEnds[] = {
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>",   "<|endoftext|>", "<|end_of_text|>",
    "<|eom_id|>", "<EOT>",      "_<EOT>",  "<|end_of_turn|>", "<turn|>",
};

}  // namespace

nlohmann::json MakeTokenizerJson(ConfigReader* metadata, std::vector<std::string>* warnings) {
  const std::string model = metadata->String(kModelKey).value_or("none");
  if (model == "none" || model == "no_vocab") return nullptr;
  const bool has_merges = model == "gemma4", is_pieces = model == "llama" || has_merges;
  if (!is_pieces && model != "gpt2" && model != "t5" && model != "bert") {
    Fail("%s: %s %s is not supported (supported: gpt2, llama, gemma4, t5, bert; or --no-tokenizer)",
         metadata->label().c_str(), kModelKey, model.c_str());
  }
  const std::vector<Token> tokens = ReadTokens(metadata);
  if (model == "t5") return UnigramTokenizer(metadata, tokens);
  if (model == "bert") return WordPieceTokenizer(metadata, tokens);
  return is_pieces ? SentencePieceTokenizer(metadata, tokens, has_merges, warnings)
                   : ByteLevelTokenizer(metadata, tokens, warnings);
}

std::vector<int64_t> EndTokens(ConfigReader* metadata) {
  std::vector<int64_t> ids;
  const auto add = [&](int64_t id) {
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  };
  const nlohmann::json* texts = metadata->Find(kTokensKey);
  const nlohmann::json* types = metadata->Find(kTypesKey);
  const size_t n_tokens = texts != nullptr && texts->is_array() ? texts->size() : 0;
  for (const char* name : {"eos_token_id", "eot_token_id", "eom_token_id"}) {
    if (n_tokens == 0) {
      for (const int64_t id : metadata->IntOrList(std::string("tokenizer.ggml.") + name)) add(id);
    } else if (const std::optional<uint32_t> id = TokenId(metadata, name, n_tokens)) {
      add(*id);
    }
  }
  if (types == nullptr || !types->is_array() || types->size() != n_tokens) return ids;
  for (size_t i = 0; i < n_tokens; ++i) {
    if ((*types)[i] != kControl && (*types)[i] != kUserDefined) continue;
    const bool ends = std::any_of(std::begin(kEnds), std::end(kEnds),
                                  [&](const char* text) { return (*texts)[i] == text; });
    if (ends) add(static_cast<int64_t>(i));
  }
  return ids;
}

}  // namespace arn::convert
