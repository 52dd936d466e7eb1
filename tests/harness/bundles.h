// Bundles that the converter makes while a test runs, models and sessions on them, and where the
// references lie.
#pragma once

#include <arenite/arenite.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/session_support.h"

namespace arn::test {

// Whether arenite-convert can be run here.
bool HasConverter();
std::string ConverterPath();
#define ARN_NEEDS_CONVERTER()                                                                \
  do {                                                                                       \
    if (!::arn::test::HasConverter()) {                                                      \
      GTEST_SKIP() << "no arenite-convert for this machine (CMake: ARENITE_HOST_CONVERTER)"; \
    }                                                                                        \
  } while (false)

// Converts `folder`; the test fails with the converter's words, and false is returned, when it
// does.
bool Convert(const std::filesystem::path& folder, const std::filesystem::path& bundle,
             const std::vector<std::string>& options);

// The folder of references; empty when there is none.
std::filesystem::path SharedDir();
#define ARN_NEEDS_SHARED_DIR()                                               \
  do {                                                                       \
    if (::arn::test::SharedDir().empty()) {                                  \
      GTEST_SKIP() << "no folder of references (CMake: ARENITE_SHARED_DIR)"; \
    }                                                                        \
  } while (false)

// A path in the source tree.
std::filesystem::path SourcePath(const std::string& path);
std::string ReadText(const std::filesystem::path& path);

// Null, and the test fails with the library's words, when it cannot be done.
ModelPtr OpenModel(const std::filesystem::path& bundle);

uint32_t VocabSize(const arn_model* model);

// Logits after each token, [tokens, vocab], prefilled in the session's chunks. The session has
// all_logits. Empty when it fails (the test fails too).
std::vector<float> AllLogits(arn_session* session, uint32_t vocab, uint32_t chunk,
                             const std::vector<int32_t>& ids);

// Up to max_tokens greedy tokens and their text after the prompt.
struct Generated {
  std::vector<int32_t> ids;
  std::string text;
  uint32_t finish = ARN_FINISH_NONE;
};
Generated GenerateGreedy(arn_session* session, const std::vector<int32_t>& prompt,
                         uint32_t max_tokens, bool ignore_eos);

std::vector<int32_t> Tokenize(const arn_model* model, const std::string& text, uint32_t flags);
std::string Detokenize(const arn_model* model, const std::vector<int32_t>& ids, uint32_t flags);

// Mean negative log-likelihood over windows of `window` tokens that do not overlap; the first token
// of each is not predicted. The session has all_logits.
double MeanNll(arn_session* session, uint32_t vocab, uint32_t chunk,
               const std::vector<int32_t>& ids, uint32_t window);

}  // namespace arn::test
