// Converts bundles during a test, opens models and sessions on them, and locates the references.
#pragma once

#include <arenite/arenite.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/session_support.h"

namespace arn::test {

// True if arenite-convert can run here.
bool HasConverter();
std::string ConverterPath();
#define ARN_NEEDS_CONVERTER()                                                                \
  do {                                                                                       \
    if (!::arn::test::HasConverter()) {                                                      \
      GTEST_SKIP() << "no arenite-convert for this machine (CMake: ARENITE_HOST_CONVERTER)"; \
    }                                                                                        \
  } while (false)

// Converts `folder`. On failure the test fails with the converter's message and it returns false.
bool Convert(const std::filesystem::path& folder, const std::filesystem::path& bundle,
             const std::vector<std::string>& options);

// Returns the folder of references, or an empty path if it does not exist.
std::filesystem::path SharedDir();
#define ARN_NEEDS_SHARED_DIR()                                               \
  do {                                                                       \
    if (::arn::test::SharedDir().empty()) {                                  \
      GTEST_SKIP() << "no folder of references (CMake: ARENITE_SHARED_DIR)"; \
    }                                                                        \
  } while (false)

// Returns the absolute path of a file in the source tree.
std::filesystem::path SourcePath(const std::string& path);
std::string ReadText(const std::filesystem::path& path);

// Returns null and fails the test with the library's message on error.
ModelPtr OpenModel(const std::filesystem::path& bundle);

uint32_t VocabSize(const arn_model* model);

// Prefills `ids` in chunks and returns the logits after each token as [tokens, vocab].
// REQUIRES: a session with all_logits. Returns an empty vector and fails the test on error.
std::vector<float> AllLogits(arn_session* session, uint32_t vocab, uint32_t chunk,
                             const std::vector<int32_t>& ids);

// Up to max_tokens greedy tokens after the prompt, and their text.
struct Generated {
  std::vector<int32_t> ids;
  std::string text;
  uint32_t finish = ARN_FINISH_NONE;
};
Generated GenerateGreedy(arn_session* session, const std::vector<int32_t>& prompt,
                         uint32_t max_tokens, bool ignore_eos);

std::vector<int32_t> Tokenize(const arn_model* model, const std::string& text, uint32_t flags);
std::string Detokenize(const arn_model* model, const std::vector<int32_t>& ids, uint32_t flags);

// Returns the mean negative log-likelihood over disjoint windows of `window` tokens. The first
// token of each window is not scored. REQUIRES: a session with all_logits.
double MeanNll(arn_session* session, uint32_t vocab, uint32_t chunk,
               const std::vector<int32_t>& ids, uint32_t window);

}  // namespace arn::test
