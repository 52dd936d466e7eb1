// Does with tokenizers what a program does, whatever they are made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/unit/text/tokenizer_fixture.h"

namespace arn::test {

// The folders of small tokenizers in tests/unit/text/data that hold a tokenizer.json, in order.
const std::vector<std::string>& SmallTokenizers();

// Encodes the text, and decodes the ids at once and as a stream. What is wrong with a result is put
// in `problem`: an id that no token has, text that is not UTF-8, text that a byte-level tokenizer
// without normalizers does not give back.
void ExerciseText(const LoadedTokenizer& tokenizer, const std::string& text, std::string* problem);

// `data` is a choice of a small tokenizer's tokenizer.json and of changes to it, or a
// tokenizer.json as it is. It is converted, loaded and tried. True when it worked; a failure has a
// reason.
bool ExerciseTokenizerJson(const uint8_t* data, size_t size, std::string* problem);

// The same for bytes as a SentencePiece model.
bool ExerciseSentencePiece(const uint8_t* data, size_t size, std::string* problem);

// The first byte chooses one of the small tokenizers, the others are the text.
void ExerciseSmallTokenizer(const uint8_t* data, size_t size, std::string* problem);

}  // namespace arn::test
