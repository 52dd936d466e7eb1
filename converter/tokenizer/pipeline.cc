#include "converter/tokenizer/pipeline.h"

#include <stdexcept>
#include <utility>

#include "converter/tokenizer/regex_translate.h"

namespace arn::convert {
namespace {

// The built-in pattern of ByteLevel (tokenizers/src/pre_tokenizers/byte_level.rs).
constexpr char kByteLevelPattern[] =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

std::string Translated(const JsonNode& node, const std::string& pattern) {
  try {
    return TranslateRegex(pattern);
  } catch (const std::invalid_argument& reason) {
    node.Fail("cannot be used as a regular expression: " + std::string(reason.what()));
  }
}

// {"String": s} or {"Regex": r}.
struct Pattern {
  std::string text;
  bool is_regex;
};
Pattern ReadPattern(const JsonNode& node) {
  const JsonNode literal = node["String"];
  const JsonNode regex = node["Regex"];
  if (literal.IsNull() == regex.IsNull()) node.Unsupported();
  const bool is_regex = literal.IsNull();
  std::string text = (is_regex ? regex : literal).String();
  if (text.empty()) node.Fail("is empty");
  return {is_regex ? Translated(regex, text) : std::move(text), is_regex};
}

size_t CharacterCount(const std::string& text) {
  size_t count = 0;
  for (const char c : text) count += (static_cast<uint8_t>(c) & 0xC0) != 0x80;
  return count;
}

std::string ReadCharacter(const JsonNode& node) {
  std::string text = node.String();
  if (CharacterCount(text) != 1) node.Fail("is not one character");
  return text;
}

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
  node.Unsupported();
}

// prepend_scheme, or add_prefix_space of older files.
fbs::PrependScheme ReadPrependScheme(const JsonNode& metaspace) {
  const JsonNode scheme = metaspace["prepend_scheme"];
  if (scheme.IsNull()) {
    return metaspace["add_prefix_space"].Bool(true) ? fbs::PrependScheme::Always
                                                    : fbs::PrependScheme::Never;
  }
  const std::string name = scheme.String();
  if (name == "always") return fbs::PrependScheme::Always;
  if (name == "first") return fbs::PrependScheme::First;
  if (name == "never") return fbs::PrependScheme::Never;
  scheme.Unsupported();
}

}  // namespace

void ReadNormalizers(const JsonNode& node, TokenizerTables* tables) {
  if (node.IsNull()) return;
  const std::string type = node["type"].String();
  if (type == "Sequence") {
    for (const JsonNode& item : node["normalizers"].Items()) ReadNormalizers(item, tables);
    return;
  }
  TokenizerTables::Normalizer step;
  if (type == "Prepend") {
    step.kind = fbs::NormalizerKind::Prepend;
    step.content = node["prepend"].String();
  } else if (type == "Replace") {
    step.kind = fbs::NormalizerKind::Replace;
    Pattern pattern = ReadPattern(node["pattern"]);
    step.pattern = std::move(pattern.text);
    step.pattern_is_regex = pattern.is_regex;
    step.content = node["content"].String();
    if (step.pattern_is_regex && step.content.find('$') != std::string::npos) {
      node["content"].Fail("refers to groups of the pattern, which is not supported");
    }
  } else if (type == "NFC") {
    step.kind = fbs::NormalizerKind::Nfc;
  } else {
    node["type"].Unsupported();
  }
  tables->normalizers.push_back(std::move(step));
}

bool IsByteLevel(const TokenizerTables& tables) {
  return !tables.pre_tokenizers.empty() &&
         tables.pre_tokenizers.back().kind == fbs::PreTokenizerKind::ByteLevel;
}

void ReadPreTokenizers(const JsonNode& node, TokenizerTables* tables) {
  if (node.IsNull()) return;
  const std::string type = node["type"].String();
  if (type == "Sequence") {
    for (const JsonNode& item : node["pretokenizers"].Items()) ReadPreTokenizers(item, tables);
    return;
  }
  if (!tables->pre_tokenizers.empty()) {
    // These change the text that a later step would look at.
    const auto last = tables->pre_tokenizers.back().kind;
    if (last == fbs::PreTokenizerKind::ByteLevel || last == fbs::PreTokenizerKind::Metaspace) {
      node.Fail("comes behind ByteLevel or Metaspace, which is not supported");
    }
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
  } else {
    node["type"].Unsupported();
  }
  tables->pre_tokenizers.push_back(std::move(step));
}

namespace {

void ReadDecoderSteps(const JsonNode& node, TokenizerTables* tables) {
  const std::string type = node["type"].String();
  if (type == "Sequence") {
    for (const JsonNode& item : node["decoders"].Items()) ReadDecoderSteps(item, tables);
    return;
  }
  TokenizerTables::Decoder step;
  if (type == "ByteLevel") {
    step.kind = fbs::DecoderKind::ByteLevel;
  } else if (type == "Replace") {
    step.kind = fbs::DecoderKind::Replace;
    const Pattern pattern = ReadPattern(node["pattern"]);
    if (pattern.is_regex) node["pattern"].Unsupported();
    step.pattern = pattern.text;
    step.content = node["content"].String();
  } else if (type == "ByteFallback") {
    step.kind = fbs::DecoderKind::ByteFallback;
  } else if (type == "Fuse") {
    step.kind = fbs::DecoderKind::Fuse;
  } else if (type == "Strip") {
    step.kind = fbs::DecoderKind::Strip;
    step.content = ReadCharacter(node["content"]);
    step.start = node["start"].Uint();
    step.stop = node["stop"].Uint();
    if (step.stop != 0) node["stop"].Unsupported();
  } else if (type == "Metaspace") {
    step.kind = fbs::DecoderKind::Metaspace;
    step.pattern = ReadCharacter(node["replacement"]);
    step.content = " ";
    step.start = ReadPrependScheme(node) == fbs::PrependScheme::Never ? 0 : 1;
  } else {
    node["type"].Unsupported();
  }
  tables->decoders.push_back(std::move(step));
}

// The place of a kind in the chains that the runtime knows (runtime/text/token_decoder.h).
int PlaceOf(fbs::DecoderKind kind) {
  switch (kind) {
    case fbs::DecoderKind::Replace:
    case fbs::DecoderKind::Metaspace: return 1;
    case fbs::DecoderKind::ByteLevel:
    case fbs::DecoderKind::ByteFallback: return 2;
    case fbs::DecoderKind::Fuse: return 3;
    case fbs::DecoderKind::Strip: return 4;
  }
  return 0;
}

}  // namespace

void ReadDecoders(const JsonNode& node, TokenizerTables* tables) {
  if (!node.IsNull()) {
    ReadDecoderSteps(node, tables);
    // No decoders mean that tokens are joined by spaces; of an empty sequence they are just joined.
    if (tables->decoders.empty()) tables->decoders.push_back({fbs::DecoderKind::Fuse, "", ""});
  }
  bool is_byte_level = false;
  int reached = 0;
  for (const auto& step : tables->decoders) {
    const int place = PlaceOf(step.kind);
    is_byte_level |= step.kind == fbs::DecoderKind::ByteLevel;
    const bool lone = step.kind == fbs::DecoderKind::ByteLevel && reached != 0;
    const bool unfused = step.kind == fbs::DecoderKind::Strip && (reached != 3 || is_byte_level);
    if (place <= reached || lone || unfused) {
      node.Fail(std::string("has ") + fbs::EnumNameDecoderKind(step.kind) +
                " where it is not supported (supported: Replace or Metaspace, ByteFallback, Fuse, "
                "Strip in this order, or ByteLevel)");
    }
    reached = place;
  }
  if (is_byte_level != IsByteLevel(*tables)) {
    node.Fail(is_byte_level ? "is ByteLevel and the pre_tokenizer is not, which is not supported"
                            : "is not ByteLevel and the pre_tokenizer is, which is not supported");
  }
}

}  // namespace arn::convert
