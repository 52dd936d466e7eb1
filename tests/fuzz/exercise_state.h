// Restores arbitrary bytes as a session state and uses the result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/session_support.h"

namespace arn::test {

// A small model with full, windowed and chunked layers, and a saved state of three sequences, two
// of them forks.
class StateSubject {
 public:
  enum class Kind {
    kActive,     // int8
    kQuantised,  // 4-bit keys and 2-bit values in older pages, in every group
    kStates,     // int8, and recurrent layers
  };
  static constexpr int kDecodes = 4;  // past the end of a page
  explicit StateSubject(Kind kind);
  const std::vector<uint8_t>& state() const { return state_; }
  // The next tokens of the saved sequences, kDecodes of each.
  const std::vector<int32_t>& tokens() const { return tokens_; }
  const arn_model* model() const { return model_.get(); }

  // Restores the bytes into a new session. If refused, the session must be unchanged: it saves the
  // same bytes, and goes on as before. If restored,
  // each sequence decodes, forks, rewinds and saves again. Returns the status of the restore and
  // the decoded `tokens`; describes a wrong result in `problem`.
  arn_status Exercise(const uint8_t* data, size_t bytes, uint32_t verify,
                      std::vector<int32_t>* tokens, std::string* problem) const;
  // The same from a file, whose pages are mapped.
  arn_status ExerciseFile(const std::string& path, uint32_t verify, std::vector<int32_t>* tokens,
                          std::string* problem) const;

 private:
  using Restore = std::function<arn_status(arn_session*, const arn_restore_options*)>;
  arn_status ExerciseBy(const Restore& restore, uint32_t verify, std::vector<int32_t>* tokens,
                        std::string* problem) const;
  SessionPtr NewSubject() const;
  // Checks that a session of NewInUse() is as it was.
  void ExpectUntouched(arn_session* session, std::string* problem) const;
  // Returns the session to restore into: two of its sequences have tokens.
  SessionPtr NewInUse() const;

  const Kind kind_;
  BundleBytes bytes_;
  ModelPtr model_;
  std::vector<uint8_t> state_;
  std::vector<int32_t> tokens_;
  // What a session without a restore saves, and its next token.
  std::vector<uint8_t> untouched_;
  int32_t untouched_next_ = -1;
};

}  // namespace arn::test
