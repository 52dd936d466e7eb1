// Texts of all tokens as the runtime uses them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "converter/tokenizer/tokenizer_tables.h"
#include "converter/tokenizer/vocabulary.h"

namespace arn::convert {

class TokenTexts {
 public:
  TokenTexts(const Vocabulary& vocabulary, const TokenizerTables& tables);

  uint32_t count() const { return static_cast<uint32_t>(texts_.size()); }
  const std::string& text(uint32_t id) const { return texts_[id]; }
  // True if the token is in the model's vocabulary and within the pre-tokenizer's alphabet.
  bool is_spelled(uint32_t id) const { return spelled_[id]; }

  // Splits the text into the units that merging starts with.
  std::vector<std::string> Units(uint32_t id) const;
  uint32_t FirstUnit(uint32_t id) const;
  uint32_t LastUnit(uint32_t id) const;

 private:
  void Set(uint32_t id, const std::string& text, bool in_model);

  bool byte_level_;
  std::vector<std::string> texts_;
  std::vector<bool> spelled_;
};

}  // namespace arn::convert
