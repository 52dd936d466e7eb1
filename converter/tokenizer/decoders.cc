// Reads the decoder of a tokenizer.json.
#include <utility>

#include "converter/tokenizer/pipeline.h"
#include "converter/tokenizer/pipeline_parts.h"

namespace arn::convert {
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
    if (pattern.is_regex) node["pattern"].FailUnsupported();
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
    if (step.stop != 0) node["stop"].FailUnsupported();
  } else if (type == "Metaspace") {
    step.kind = fbs::DecoderKind::Metaspace;
    step.pattern = ReadCharacter(node["replacement"]);
    step.content.assign(1, ' ');
    step.start = ReadPrependScheme(node) == fbs::PrependScheme::Never ? 0 : 1;
  } else if (type == "WordPiece") {
    step.kind = fbs::DecoderKind::WordPiece;
    step.pattern = node["prefix"].String("##");
    step.start = node["cleanup"].Bool(true) ? 1 : 0;
  } else if (type == "BPEDecoder") {
    step.kind = fbs::DecoderKind::WordEnd;
    step.pattern = node["suffix"].String("</w>");
    if (step.pattern.empty()) node["suffix"].FailUnsupported();
  } else {
    node["type"].FailUnsupported();
  }
  tables->decoders.push_back(std::move(step));
}

// Returns the position of a decoder in the chains that the runtime supports
// (runtime/text/token_decoder.h).
int PlaceOf(fbs::DecoderKind kind) {
  switch (kind) {
    case fbs::DecoderKind::Replace:
    case fbs::DecoderKind::Metaspace: return 1;
    case fbs::DecoderKind::ByteLevel:
    case fbs::DecoderKind::ByteFallback: return 2;
    case fbs::DecoderKind::Fuse: return 3;
    case fbs::DecoderKind::Strip: return 4;
    case fbs::DecoderKind::WordPiece:
    case fbs::DecoderKind::WordEnd: return 5;
  }
  return 0;
}

}  // namespace

void ReadDecoders(const JsonNode& node, TokenizerTables* tables) {
  if (!node.IsNull()) {
    ReadDecoderSteps(node, tables);
    // A null decoder joins tokens with spaces; an empty sequence concatenates them.
    if (tables->decoders.empty()) tables->decoders.push_back({fbs::DecoderKind::Fuse, "", ""});
  }
  bool is_byte_level = false;
  int reached = 0;
  for (const auto& step : tables->decoders) {
    const int place = PlaceOf(step.kind);
    is_byte_level |= step.kind == fbs::DecoderKind::ByteLevel;
    const bool lone = (step.kind == fbs::DecoderKind::ByteLevel || place == 5) && reached != 0;
    const bool unfused = step.kind == fbs::DecoderKind::Strip && (reached != 3 || is_byte_level);
    if (place <= reached || lone || unfused) {
      node.Fail(std::string("has ") + fbs::EnumNameDecoderKind(step.kind) +
                " where it is not supported (supported: Replace or Metaspace, ByteFallback, Fuse, "
                "Strip in this order, or ByteLevel, WordPiece or BPEDecoder alone)");
    }
    reached = place;
  }
  if (is_byte_level != IsByteLevel(*tables)) {
    node.Fail(is_byte_level ? "is ByteLevel and the pre_tokenizer is not, which is not supported"
                            : "is not ByteLevel and the pre_tokenizer is, which is not supported");
  }
}

}  // namespace arn::convert
