// Reads the normalizer of a tokenizer.json.
#include <utility>

#include "converter/tokenizer/charsmap.h"
#include "converter/tokenizer/pipeline.h"
#include "converter/tokenizer/pipeline_parts.h"

namespace arn::convert {
namespace {

using Kind = fbs::NormalizerKind;

void Add(Kind kind, TokenizerTables* tables) {
  TokenizerTables::Normalizer step;
  step.kind = kind;
  tables->normalizers.push_back(std::move(step));
}

// Adds a normalizer without settings.
bool AddPlain(const std::string& type, TokenizerTables* tables) {
  static constexpr std::pair<const char*, Kind> kPlain[] = {
      {"NFC", Kind::Nfc},
      {"NFD", Kind::Nfd},
      {"NFKC", Kind::Nfkc},
      {"NFKD", Kind::Nfkd},
      {"Nmt", Kind::Nmt},
      {"Lowercase", Kind::Lowercase},
      {"StripAccents", Kind::StripAccents},
  };
  for (const auto& [name, kind] : kPlain) {
    if (type != name) continue;
    Add(kind, tables);
    return true;
  }
  return false;
}

void ReadBert(const JsonNode& node, TokenizerTables* tables) {
  const bool lowercase = node["lowercase"].Bool(true);
  if (node["clean_text"].Bool(true)) Add(Kind::CleanText, tables);
  if (node["handle_chinese_chars"].Bool(true)) Add(Kind::SpaceIdeographs, tables);
  if (node["strip_accents"].Bool(lowercase)) {
    Add(Kind::Nfd, tables);
    Add(Kind::StripNonspacing, tables);
  }
  if (lowercase) Add(Kind::Lowercase, tables);
}

}  // namespace

void ReadNormalizers(const JsonNode& node, TokenizerTables* tables) {
  if (node.IsNull()) return;
  const std::string type = node["type"].String();
  if (type == "Sequence") {
    for (const JsonNode& item : node["normalizers"].Items()) ReadNormalizers(item, tables);
    return;
  }
  if (IsByteLevel(*tables)) node.Fail("comes after ByteLevel, which is not supported");
  if (type == "ByteLevel") {
    // Equivalent to a first pre-tokenizer step: only added tokens see the text in between, and they
    // are spelled the same way (ReadAddedTokens).
    TokenizerTables::PreTokenizer step;
    step.kind = fbs::PreTokenizerKind::ByteLevel;
    tables->pre_tokenizers.push_back(std::move(step));
    tables->normalizes_to_bytes = true;
    return;
  }
  if (AddPlain(type, tables)) return;
  if (type == "BertNormalizer") return ReadBert(node, tables);
  TokenizerTables::Normalizer step;
  if (type == "Prepend") {
    step.kind = Kind::Prepend;
    step.content = node["prepend"].String();
  } else if (type == "Strip") {
    step.kind = Kind::Strip;
    step.left = node["strip_left"].Bool();
    step.right = node["strip_right"].Bool();
  } else if (type == "Precompiled") {
    const JsonNode map = node["precompiled_charsmap"];
    step.kind = Kind::Charsmap;
    step.charsmap = CharsmapBytes(map);
    step.growth = CharsmapGrowth(map, step.charsmap);
  } else if (type == "Replace") {
    step.kind = Kind::Replace;
    Pattern pattern = ReadPattern(node["pattern"]);
    step.pattern = std::move(pattern.text);
    step.pattern_is_regex = pattern.is_regex;
    step.content = node["content"].String();
    if (step.pattern_is_regex && step.content.find('$') != std::string::npos) {
      node["content"].Fail("refers to groups of the pattern, which is not supported");
    }
  } else {
    node["type"].FailUnsupported();
  }
  tables->normalizers.push_back(std::move(step));
}

}  // namespace arn::convert
