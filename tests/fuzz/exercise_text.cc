#include "tests/fuzz/exercise_text.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "nlohmann/json.hpp"
#include "tests/fuzz/json_edits.h"
#include "tests/fuzz/small_tokenizer.h"

namespace arn::test {
namespace {

using nlohmann::json;

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Returns true for well-formed UTF-8 as Unicode defines it.
bool IsUtf8(const std::string& text) {
  for (size_t i = 0; i < text.size();) {
    const auto byte = [&](size_t k) {
      return i + k < text.size() ? static_cast<uint8_t>(text[i + k]) : 0u;
    };
    const uint32_t lead = byte(0);
    const size_t bytes = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if ((lead >= 0x80 && lead < 0xC2) || lead > 0xF4) return false;
    for (size_t k = 1; k < bytes; ++k) {
      if ((byte(k) & 0xC0) != 0x80) return false;
    }
    if ((lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) > 0x9F) ||
        (lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) > 0x8F)) {
      return false;
    }
    i += bytes;
  }
  return true;
}

std::string FolderOf(const std::string& name) {
  return std::string(ARN_TEXT_TEST_DATA) + "/" + name;
}

const JsonMaterial& Material() {
  static const JsonMaterial kMaterial = {json::parse(R"json([
    null, true, false, 0, 1, -1, 4294967295, 1e300, -0.5, "", "a", "▁", "##", "</w>", "Ġ",
    [], {}, "NFC", "NFKC", "NFD", "Lowercase", "StripAccents", "Strip", "Precompiled",
    "BertNormalizer", "Nmt", "Prepend", "Replace", "Sequence", "ByteLevel", "Metaspace",
    "WhitespaceSplit", "Whitespace", "Punctuation", "Digits", "BertPreTokenizer", "Split",
    "CharDelimiterSplit", "BPE", "Unigram", "WordPiece", "WordLevel", "BPEDecoder", "Fuse",
    "ByteFallback", "TemplateProcessing", "BertProcessing", "RobertaProcessing", "first",
    {"Regex": "\\s+|(?=a)"}, {"Regex": "a*"}, {"String": " "}, "Removed", "MergedWithNext",
    {"type": "NFKD"}, {"type": "Lowercase"}, {"type": "BertPreTokenizer"}, {"type": "Fuse"},
    {"type": "Prepend", "prepend": "▁"}, {"type": "Strip", "strip_left": true, "strip_right": true},
    {"type": "WordPiece", "prefix": "##", "cleanup": true}, {"type": "BPEDecoder"},
    {"type": "Replace", "pattern": {"Regex": " *"}, "content": "xyz"},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"}])json"),
                                         {}};
  return kMaterial;
}

std::string ChangedDocument(const uint8_t* data, size_t size) {
  static const std::vector<json> kDocuments = [] {
    std::vector<json> documents;
    for (const std::string& name : SmallTokenizers()) {
      documents.push_back(
          SmallTokenizer(json::parse(ReadFile(FolderOf(name) + "/tokenizer.json"))));
    }
    return documents;
  }();
  Choices choices(data, size);
  json document = kDocuments[choices.Below(kDocuments.size())];
  for (int i = 0; i < 8 && choices.left() > 0; ++i) EditJson(Material(), &document, &choices);
  return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

const char* const kTexts[] = {
    "", "Once upon a time, the fox's den\u2019t 123 caf\u00e9 <s>x</s>[CLS] ",
    "\xE2\x96\x81\xEF\xBC\xA1\xCC\x81 \xEF\xB7\xBA\xF0\x9F\xA6\x8A\xE4\xB8\xAD\r\n\t\x01\xFF."};

bool Try(bool is_converted, const convert::TokenizerTables& tables, const std::string& error,
         std::string* problem) {
  if (!is_converted) {
    if (error.empty()) *problem = "a failure without a reason";
    return false;
  }
  const auto tokenizer = LoadedTokenizer::FromImage(MakeImage(tables));
  if (!tokenizer.ok()) {
    if (tokenizer.error().empty()) *problem = "a failure without a reason";
    return false;
  }
  for (const char* text : kTexts) ExerciseText(tokenizer, text, problem);
  return true;
}

}  // namespace

const std::vector<std::string>& SmallTokenizers() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(ARN_TEXT_TEST_DATA)) {
      if (std::filesystem::exists(entry.path() / "tokenizer.json")) {
        names.push_back(entry.path().filename().string());
      }
    }
    std::sort(names.begin(), names.end());
    return names;
  }();
  return kNames;
}

void ExerciseText(const LoadedTokenizer& tokenizer, const std::string& text, std::string* problem) {
  const auto encoded = tokenizer.Encode(text, true);
  if (encoded.status != Status::kOk) {
    if (encoded.error.empty()) *problem = "encoding failed without a reason";
    return;
  }
  for (const int32_t id : encoded.ids) {
    if (id < 0 || static_cast<uint32_t>(id) >= tokenizer->n_tokens()) *problem = "a wrong id";
  }
  for (const bool skip_special : {false, true}) {
    const std::string back = tokenizer.Decode(encoded.ids, skip_special);
    const std::string stream = tokenizer.DecodeStream(encoded.ids, skip_special);
    for (const std::string& result : {back, stream}) {
      if (!IsUtf8(result)) *problem = "decoded text is not UTF-8";
    }
  }
  if (!IsUtf8(text)) return;
  const TextSpan third = {text.size() / 3, text.size() / 3};
  Tokenizer::EncodeOptions in_parts;
  in_parts.plain_spans = {&third, 1};
  const auto parts = tokenizer.Encode(text, in_parts);
  if (parts.status != Status::kOk) *problem = "encoding with a plain part failed: " + parts.error;
  if (!tokenizer.GivesBack(text)) return;
  if (tokenizer.Decode(parts.ids, false) != text) *problem = "a plain part does not come back";
  const auto plain = tokenizer.Encode(text, false);
  if (tokenizer.Decode(plain.ids, false) != text) *problem = "the text does not come back";
}

bool ExerciseTokenizerJson(const uint8_t* data, size_t size, std::string* problem) {
  if (size == 0) return false;
  const bool is_text = data[0] == '{';
  const std::string text =
      is_text ? std::string(data, data + size) : ChangedDocument(data + 1, size - 1);
  convert::TokenizerTables tables;
  std::string error;
  const bool is_converted = convert::ConvertTokenizerJson(text, &tables, &error);
  return Try(is_converted, tables, error, problem);
}

bool ExerciseSentencePiece(const uint8_t* data, size_t size, std::string* problem) {
  convert::TokenizerTables tables;
  std::string error;
  const bool is_converted =
      convert::ConvertSentencePieceBytes(std::string(data, data + size), &tables, &error);
  return Try(is_converted, tables, error, problem);
}

void ExerciseSmallTokenizer(const uint8_t* data, size_t size, std::string* problem) {
  static const std::vector<LoadedTokenizer> kTokenizers = [] {
    std::vector<LoadedTokenizer> tokenizers;
    for (const std::string& name : SmallTokenizers()) {
      tokenizers.push_back(LoadedTokenizer::FromFolder(FolderOf(name)));
    }
    for (const char* name : {"pieces_unigram", "pieces_unigram_bytes", "pieces_bpe"}) {
      tokenizers.push_back(LoadedTokenizer::FromFolder(FolderOf(name)));
    }
    tokenizers.push_back(LoadedTokenizer::FromFolder(ARN_FABLE_MODEL));
    return tokenizers;
  }();
  if (size == 0) return;
  ExerciseText(kTokenizers[data[0] % kTokenizers.size()], std::string(data + 1, data + size),
               problem);
}

}  // namespace arn::test
