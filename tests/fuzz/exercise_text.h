// Uses tokenizers as a program does, whatever files they come from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/unit/text/tokenizer_fixture.h"

namespace arn::test {

// Returns the folders of small tokenizers in tests/unit/text/data that hold a tokenizer.json,
// sorted.
const std::vector<std::string>& SmallTokenizers();

// Encodes the text, and decodes the ids at once and as a stream. Describes a wrong result in
// `problem`: an unknown id, text that is not UTF-8, or a byte-level tokenizer without normalizers
// that does not give the text back.
void ExerciseText(const LoadedTokenizer& tokenizer, const std::string& text, std::string* problem);

// `data` selects a small tokenizer's tokenizer.json, made smaller (small_tokenizer.h), and edits to
// it, or is a tokenizer.json.
// Converts, loads and exercises it. Returns true on success; every failure must have a reason.
bool ExerciseTokenizerJson(const uint8_t* data, size_t size, std::string* problem);

// The same for the bytes of a SentencePiece model.
bool ExerciseSentencePiece(const uint8_t* data, size_t size, std::string* problem);

// The first byte selects a small tokenizer; the rest is the text.
void ExerciseSmallTokenizer(const uint8_t* data, size_t size, std::string* problem);

}  // namespace arn::test
