// Soak: calls on a session, valid ones and others, beside plain lists of the tokens that its
// sequences must hold and a session without a cache that computes them anew. Random numbers or a
// fuzzer's bytes choose the calls.
#pragma once

#include <arenite/arenite.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/session_support.h"

namespace arn::test {

inline constexpr uint32_t kSoakVocab = 61, kSoakContext = 96, kSoakSequences = 3;

struct SoakKind {
  const char* name;
  std::vector<TinyLayer> layers;
  uint32_t kv_type = ARN_KV_F32;
  uint32_t overflow = ARN_OVERFLOW_STOP;
  uint32_t speculation = ARN_SPECULATE_NONE;
  uint32_t state_snapshots = 0;
  bool is_in_file = false;
  // Largest difference of logits from a session of f32 without a cache; 0: they are not compared.
  double tolerance = 3e-5;
};
std::vector<SoakKind> SoakKinds();

// The small model of a kind, and a session of it without a cache, which computes sequences from
// scratch: for one thread at a time.
struct SoakModel {
  explicit SoakModel(const SoakKind& kind);
  const SoakKind kind;
  const BundleBytes bytes;
  const ModelPtr model;
  const SessionPtr twin;
};

class Soak {
 public:
  using Numbers = std::function<uint32_t()>;
  // `numbers`: chooses the calls. `folder`: for its files, its own.
  Soak(std::shared_ptr<const SoakModel> model, Numbers numbers, const std::string& folder);
  // Random numbers from a seed.
  static Numbers RandomNumbers(uint32_t seed);

  // Makes one call, or a few that belong together. Fails the test if a sequence is not what it must
  // be.
  void Step();
  uint64_t n_steps() const { return n_steps_; }
  uint64_t n_compared() const { return n_compared_; }

 private:
  struct Sequence {
    std::vector<int32_t> ids;
    bool is_exact = true;  // no token was dropped from its beginning
  };

  uint32_t Below(uint32_t n) { return numbers_() % n; }
  std::vector<int32_t> NewIds(uint32_t n);
  Sequence& selected() { return sequences_[selected_]; }
  bool Holds(arn_status status, const char* call);
  // The last calls of the selected sequence, and those of all.
  std::string History() const;
  void TakeTokens();
  void Select();
  void Prefill();
  void Cancel();
  void Decode();
  void Generate();
  void Batch();
  void Fork();
  void Rewind();
  void Follow();
  void SaveOrRestore();
  void SetSampling();
  void Compare();
  // Makes a call that must be refused, and change nothing.
  void Refused();
  arn_status RefusedTokens();
  arn_status RefusedSequences();
  arn_status RefusedState();
  arn_status RefusedOptions();

  const std::shared_ptr<const SoakModel> subject_;
  const SoakKind& kind_;
  const Numbers numbers_;
  const std::string kv_path_, state_path_;
  SessionPtr session_;
  std::vector<Sequence> sequences_, saved_sequences_;
  std::vector<uint8_t> saved_;
  bool is_saved_in_file_ = false;
  uint32_t selected_ = 0;
  uint64_t n_steps_ = 0, n_compared_ = 0;
  std::deque<std::string> history_;
};

}  // namespace arn::test
