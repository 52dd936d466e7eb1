// Loads the cases of data/*.json, described in make_goldens.py.
#pragma once

#include <arenite/arenite.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/harness/bundles.h"
#include "tests/support/tiny_checkpoint.h"

namespace arn::test {

// Backends that goldens are held against. The reference backend is the same code on every CPU, so
// an emulator, which is slow, leaves it out.
#ifdef ARN_EMULATED
inline constexpr uint32_t kBackends[] = {ARN_BACKEND_CPU};
#else
inline constexpr uint32_t kBackends[] = {ARN_BACKEND_CPU, ARN_BACKEND_REFERENCE};
#endif

enum class ConfigStyle : uint8_t { kTransformers5, kTransformers4 };

struct GoldenCase {
  std::string name;
  TinyCheckpoint checkpoint;
  nlohmann::json config, old_config;
  // Tensor names and shapes. If empty, the tensors of `checkpoint`.
  std::map<std::string, std::vector<uint64_t>> tensors;
  std::vector<int32_t> prompt, greedy;
  // Encoder input of encoder-decoder models: token ids, or features f32 [n_frames, feature_width].
  std::vector<int32_t> encoder_ids;
  std::vector<float> features;
  uint32_t feature_width = 0;
  // Teacher-forced logits over prompt + greedy:
  std::vector<double> log_sum_exp;         // [tokens]
  std::vector<int32_t> argmax;             // [tokens]
  std::vector<uint32_t> positions;         // positions with stored logits
  uint32_t stride = 1;                     // every stride-th logit is stored
  std::vector<std::vector<float>> logits;  // [positions, vocab / stride rounded up]

  uint32_t vocab() const { return checkpoint.vocab; }
  std::vector<int32_t> all_ids() const;
};

// Those of data/FOLDER: "tied" of data/tied.json; "tower/audio" of data/tower/audio.json, with
// folder "tower/".
std::vector<std::string> GoldenNames(const std::string& folder = "");
GoldenCase LoadGolden(const std::string& name);

// Writes the checkpoint to `folder`, with tensors as `edit` leaves them, and converts it to
// `bundle`. Returns false after a test failure.
bool ConvertGolden(const GoldenCase& golden, ConfigStyle style, const std::filesystem::path& folder,
                   const std::filesystem::path& bundle, const std::vector<std::string>& options,
                   const std::function<void(TinyTensors&)>& edit = {});

// Returns options of a session with an f32 cache, two threads and the logits of all tokens.
arn_session_options GoldenOptions(uint32_t backend, uint32_t chunk);

// Runs the encoder on the case's input. Returns false after a test failure.
bool EncodeInput(const GoldenCase& golden, arn_session* session);

// Compares the logits after the token at `position` with the stored ones. A failure reports the
// largest error.
void ExpectLogits(const GoldenCase& golden, size_t position, const float* logits, double tolerance);

// Generates in sessions that guess with the bundle's drafter, on each backend: the tokens are the
// golden ones. Expects at least `least` guesses.
void ExpectGreedyWithGuesses(const GoldenCase& golden, const arn_model* model, uint64_t least);

}  // namespace arn::test
