// Restores whatever bytes and uses what comes of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/session_support.h"

namespace arn::test {

// A small model with full, windowed and chunked layers, and a state of three sequences on it, two
// of them forks.
class StateSubject {
 public:
  enum class Kind {
    kOpen,    // int8
    kSealed,  // keys in 4 bits and values in 2 once they are old, in every group
    kStates,  // int8, and layers that keep a state
  };
  explicit StateSubject(Kind kind);
  const std::vector<uint8_t>& state() const { return state_; }
  // What the saved sequences say next.
  const std::vector<int32_t>& tokens() const { return tokens_; }
  const arn_model* model() const { return model_.get(); }

  // Restores the bytes into a fresh session. Refused: kOk is not returned and the session must be
  // as it was. Restored: each sequence steps and is forked, rewound and saved again. `tokens`: what
  // came out. What is wrong is put in `problem`.
  arn_status Exercise(const uint8_t* data, size_t bytes, uint32_t verify,
                      std::vector<int32_t>* tokens, std::string* problem) const;

 private:
  SessionPtr NewSubject() const;
  // Where states are restored into: two of its sequences have tokens.
  SessionPtr NewInUse() const;

  const Kind kind_;
  BundleBytes bytes_;
  ModelPtr model_;
  std::vector<uint8_t> state_;
  std::vector<int32_t> tokens_;
  std::vector<int32_t> untouched_;  // what comes of a session into which nothing was restored
};

}  // namespace arn::test
