// Does with a bundle what a program does, whatever is in it.
#pragma once

#include <arenite/arenite.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace arn::test {

enum class Outcome : uint8_t {
  kNotOpened,  // refused when opening
  kRefused,    // opened; a later call gave an error
  kRan,        // everything worked
};

// Opens it, looks at all there is, plans, creates a session, prefills, decodes four tokens,
// tokenizes and detokenizes. `data` is 64-byte aligned. What is wrong with a result is put in
// `problem`: an impossible value, a count that lies, text that is not UTF-8.
Outcome ExerciseBundle(const void* data, uint64_t bytes, std::string* problem);

// Tokenizes `text` and back. `problem` as above.
void ExerciseTokenizer(const arn_model* model, const std::string& text, std::string* problem);

// Well-formed UTF-8 as Unicode defines it.
bool IsUtf8(const std::string& text);

}  // namespace arn::test
