// Reads the pre_tokenizer of a tokenizer.json.
#include <algorithm>
#include <utility>

#include "converter/tokenizer/pipeline.h"
#include "converter/tokenizer/pipeline_parts.h"
#include "converter/tokenizer/regex_translate.h"
#include "converter/tokenizer/unicode_scripts.h"

namespace arn::convert {
namespace {

// Built-in pattern of ByteLevel (tokenizers/src/pre_tokenizers/byte_level.rs).
constexpr char kByteLevelPattern[] =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

fbs::SplitBehavior ReadBehavior(const JsonNode& node) {
  static constexpr std::pair<const char*, fbs::SplitBehavior> kNames[] = {
      {"Isolated", fbs::SplitBehavior::Isolated},
      {"Removed", fbs::SplitBehavior::Removed},
      {"MergedWithPrevious", fbs::SplitBehavior::MergedWithPrevious},
      {"MergedWithNext", fbs::SplitBehavior::MergedWithNext},
      {"Contiguous", fbs::SplitBehavior::Contiguous},
  };
  const std::string name = node.String();
  for (const auto& [known, behavior] : kNames) {
    if (name == known) return behavior;
  }
  node.FailUnsupported();
}

}  // namespace

bool IsByteLevel(const TokenizerTables& tables) {
  const auto& steps = tables.pre_tokenizers;
  return std::any_of(steps.begin(), steps.end(), [](const auto& step) {
    return step.kind == fbs::PreTokenizerKind::ByteLevel;
  });
}

void ReadPreTokenizers(const JsonNode& node, TokenizerTables* tables) {
  if (node.IsNull()) return;
  const std::string type = node["type"].String();
  if (type == "Sequence") {
    for (const JsonNode& item : node["pretokenizers"].Items()) ReadPreTokenizers(item, tables);
    return;
  }
  if (!tables->pre_tokenizers.empty() &&
      tables->pre_tokenizers.back().kind == fbs::PreTokenizerKind::Metaspace) {
    node.Fail("comes after Metaspace, which is not supported");
  }
  if ((type == "ByteLevel" || type == "Metaspace") && IsByteLevel(*tables)) {
    node.Fail("is " + type + " after ByteLevel, which is not supported");
  }
  TokenizerTables::PreTokenizer step;
  if (type == "Split") {
    step.kind = fbs::PreTokenizerKind::SplitRegex;
    const Pattern pattern = ReadPattern(node["pattern"]);
    step.regex = pattern.is_regex ? pattern.text : LiteralRegex(pattern.text);
    step.behavior = ReadBehavior(node["behavior"]);
    step.invert = node["invert"].Bool(false);
  } else if (type == "ByteLevel") {
    step.kind = fbs::PreTokenizerKind::ByteLevel;
    step.add_prefix_space = node["add_prefix_space"].Bool();
    step.use_regex = node["use_regex"].Bool(true);
    if (step.use_regex) step.regex = Translated(node, kByteLevelPattern);
  } else if (type == "Digits") {
    step.kind = fbs::PreTokenizerKind::Digits;
    step.individual_digits = node["individual_digits"].Bool(false);
  } else if (type == "Metaspace") {
    step.kind = fbs::PreTokenizerKind::Metaspace;
    step.replacement = ReadCharacter(node["replacement"]);
    step.prepend_scheme = ReadPrependScheme(node);
    step.split = node["split"].Bool(true);
  } else if (type == "Whitespace") {
    step.kind = fbs::PreTokenizerKind::Words;
  } else if (type == "WhitespaceSplit") {
    step.kind = fbs::PreTokenizerKind::Whitespace;
  } else if (type == "Punctuation") {
    step.kind = fbs::PreTokenizerKind::Punctuation;
    if (!node["behavior"].IsNull()) step.behavior = ReadBehavior(node["behavior"]);
  } else if (type == "BertPreTokenizer") {
    step.kind = fbs::PreTokenizerKind::Whitespace;
    tables->pre_tokenizers.push_back(step);
    step.kind = fbs::PreTokenizerKind::Punctuation;
  } else if (type == "CharDelimiterSplit") {
    step.kind = fbs::PreTokenizerKind::SplitRegex;
    step.regex = LiteralRegex(ReadCharacter(node["delimiter"]));
    step.behavior = fbs::SplitBehavior::Removed;
  } else if (type == "UnicodeScripts") {
    step.kind = fbs::PreTokenizerKind::SplitRegex;
    step.regex = UnicodeScriptsRegex();
    step.behavior = fbs::SplitBehavior::Removed;
    step.invert = true;
  } else {
    node["type"].FailUnsupported();
  }
  tables->pre_tokenizers.push_back(std::move(step));
}

}  // namespace arn::convert
