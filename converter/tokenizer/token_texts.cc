#include "converter/tokenizer/token_texts.h"

#include <algorithm>

#include "converter/tokenizer/byte_alphabet.h"
#include "converter/tokenizer/pipeline.h"
#include "converter/tokenizer/utf8_text.h"

namespace arn::convert {
namespace {

uint32_t CodePoint(const std::string& text, size_t at) {
  const size_t bytes = CharacterBytes(text, at);
  static constexpr uint8_t kLeadBits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  uint32_t c = static_cast<uint8_t>(text[at]) & kLeadBits[bytes];
  for (size_t i = 1; i < bytes; ++i) c = c << 6 | (static_cast<uint8_t>(text[at + i]) & 0x3F);
  return c;
}

}  // namespace

TokenTexts::TokenTexts(const Vocabulary& vocabulary, const TokenizerTables& tables)
    : byte_level_(IsByteLevel(tables)) {
  size_t count = std::max<size_t>(1, vocabulary.texts.size());
  for (const auto& token : tables.added) count = std::max<size_t>(count, size_t{token.id} + 1);
  texts_.resize(count);
  spelled_.resize(count);
  for (uint32_t id = 0; id < vocabulary.texts.size(); ++id) {
    const std::string& text = vocabulary.texts[id];
    const auto found = vocabulary.ids.find(text);
    Set(id, text, found != vocabulary.ids.end() && found->second == id);
  }
  for (const auto& token : tables.added) {
    if (tables.normalizes_to_bytes && token.normalized) {
      // Spelled in the alphabet, the content decodes to itself.
      texts_[token.id] = token.content;
    } else if (!vocabulary.ids.contains(token.content)) {
      Set(token.id, token.content, false);
    }
  }
}

void TokenTexts::Set(uint32_t id, const std::string& text, bool in_model) {
  texts_[id] = text;
  spelled_[id] = in_model && !text.empty();
  if (!byte_level_) return;
  // A token with characters outside the alphabet decodes literally and never matches in encoding.
  if (const auto bytes = BytesOfAlphabet(text)) {
    texts_[id] = *bytes;
  } else {
    spelled_[id] = false;
  }
}

std::vector<std::string> TokenTexts::Units(uint32_t id) const {
  const std::string& text = texts_[id];
  std::vector<std::string> units;
  for (size_t i = 0; i < text.size();) {
    const size_t bytes = byte_level_ ? 1 : CharacterBytes(text, i);
    units.push_back(text.substr(i, bytes));
    i += bytes;
  }
  return units;
}

uint32_t TokenTexts::FirstUnit(uint32_t id) const {
  const std::string& text = texts_[id];
  return byte_level_ ? static_cast<uint8_t>(text[0]) : CodePoint(text, 0);
}

uint32_t TokenTexts::LastUnit(uint32_t id) const {
  const std::string& text = texts_[id];
  size_t at = text.size() - 1;
  if (byte_level_) return static_cast<uint8_t>(text[at]);
  while ((static_cast<uint8_t>(text[at]) & 0xC0) == 0x80) --at;
  return CodePoint(text, at);
}

}  // namespace arn::convert
