// Uses a bundle as a program does, whatever bytes it holds.
#pragma once

#include <arenite/arenite.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace arn::test {

enum class Outcome : uint8_t {
  kNotOpened,  // refused on open
  kRefused,    // opened; a later call failed
  kRan,        // everything worked
};

// Opens the bundle, reads all its information, plans, creates a session, prefills, decodes four
// tokens, tokenizes and detokenizes, and encodes an image. REQUIRES: `data` is 64-byte aligned.
// Describes a wrong result in `problem`: an impossible value, a wrong count, text that is not
// UTF-8.
Outcome ExerciseBundle(const void* data, uint64_t bytes, std::string* problem);

// Encodes an image and runs its embeddings among tokens. False: the model takes no images, or a
// call failed. Sets `problem` as above.
bool ExerciseImages(const arn_model* model, std::string* problem);

// Tokenizes `text` and back. Sets `problem` as above.
void ExerciseTokenizer(const arn_model* model, const std::string& text, std::string* problem);

// Returns true for well-formed UTF-8 as Unicode defines it.
bool IsUtf8(const std::string& text);

}  // namespace arn::test
