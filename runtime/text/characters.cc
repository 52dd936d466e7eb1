#include "runtime/text/characters.h"

#include "runtime/bundle/bundle_generated.h"
#include "runtime/text/unicode.h"
#include "runtime/text/utf8.h"

namespace arn {
namespace {

using Kind = fbs::NormalizerKind;

bool IsLineOrTab(uint32_t c) { return c == '\t' || c == '\n' || c == '\r'; }

// SentencePiece's nmt rules, as in Hugging Face tokenizers.
bool IsNmtControl(uint32_t c) {
  return (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F ||
         c == 0x8F || c == 0x9F;
}
bool IsNmtSpace(uint32_t c) {
  return c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
         (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF ||
         c == 0xFFFD;
}

void Map(Kind kind, const char* p, const Utf8Char& c, TextWriter* writer) {
  const uint32_t code = c.code_point;
  const StringView same(p, c.bytes);
  if (kind == Kind::Lowercase) {
    uint32_t lower[2];
    const size_t count = ToLowercase(code, lower);
    for (size_t i = 0; i < count; ++i) writer->PutCharacter(lower[i]);
  } else if (kind == Kind::StripAccents) {
    if (!IsMark(code)) writer->Put(same);
  } else if (kind == Kind::StripNonspacing) {
    if (!IsNonspacingMark(code)) writer->Put(same);
  } else if (kind == Kind::CleanText) {
    const bool is_dropped =
        code == 0 || code == kReplacementCharacter || (IsControl(code) && !IsLineOrTab(code));
    if (!is_dropped) writer->Put(IsWhiteSpace(code) ? StringView(" ") : same);
  } else if (kind == Kind::SpaceIdeographs) {
    const bool is_spaced = IsIdeograph(code);
    if (is_spaced) writer->Put(" ");
    writer->Put(same);
    if (is_spaced) writer->Put(" ");
  } else if (kind == Kind::Nmt) {
    if (!IsNmtControl(code)) writer->Put(IsNmtSpace(code) ? StringView(" ") : same);
  }
}

// True if the step leaves an ASCII character unchanged.
bool KeepsAscii(Kind kind, uint8_t c) {
  if (kind == Kind::Lowercase) return c < 'A' || c > 'Z';
  if (kind == Kind::CleanText || kind == Kind::Nmt) return c >= 0x20 && c != 0x7F;
  return true;
}

}  // namespace

void MapCharacters(Kind kind, StringView text, TextWriter* writer) {
  const char* const end = text.data + text.size;
  for (const char* p = text.data; p != end;) {
    const char* kept = p;
    while (kept != end && static_cast<uint8_t>(*kept) < 0x80 &&
           KeepsAscii(kind, static_cast<uint8_t>(*kept))) {
      ++kept;
    }
    if (kept != p) {
      writer->Put({p, static_cast<size_t>(kept - p)});
      p = kept;
      continue;
    }
    const Utf8Char c = ReadValidUtf8(p);
    Map(kind, p, c, writer);
    p += c.bytes;
  }
}

StringView StripEnds(StringView text, StringView what, bool left, bool right) {
  const auto is_stripped = [what](StringView character) {
    return what.size > 0 ? character == what
                         : IsWhiteSpace(ReadValidUtf8(character.data).code_point);
  };
  while (left && text.size > 0) {
    const size_t bytes = ReadValidUtf8(text.data).bytes;
    if (!is_stripped({text.data, bytes})) break;
    text = {text.data + bytes, text.size - bytes};
  }
  while (right && text.size > 0) {
    const char* const last = PreviousUtf8(text.data + text.size);
    const size_t bytes = static_cast<size_t>(text.data + text.size - last);
    if (!is_stripped({last, bytes})) break;
    text.size -= bytes;
  }
  return text;
}

}  // namespace arn
