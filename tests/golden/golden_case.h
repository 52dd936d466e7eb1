// The cases in data/*.json, which make_goldens.py explains.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/harness/bundles.h"
#include "tests/support/tiny_checkpoint.h"

namespace arn::test {

enum class ConfigStyle : uint8_t { kTransformers5, kTransformers4 };

struct GoldenCase {
  std::string name;
  TinyCheckpoint checkpoint;
  nlohmann::json config, old_config;
  // Names to shapes; empty: the tensors of `checkpoint`.
  std::map<std::string, std::vector<uint64_t>> tensors;
  std::vector<int32_t> prompt, greedy;
  // Of models with a source: its tokens, or features f32 [n_frames, feature_width].
  std::vector<int32_t> source_ids;
  std::vector<float> features;
  uint32_t feature_width = 0;
  // Of the teacher-forced logits over prompt + greedy:
  std::vector<double> log_sum_exp;         // [tokens]
  std::vector<int32_t> argmax;             // [tokens]
  std::vector<uint32_t> positions;         // of some, ...
  uint32_t stride = 1;                     // ... every stride-th logit
  std::vector<std::vector<float>> logits;  // [positions, vocab / stride rounded up]

  uint32_t vocab() const { return checkpoint.vocab; }
  std::vector<int32_t> all_ids() const;
};

std::vector<std::string> GoldenNames();
// name: "tied" of data/tied.json, "source/features" of data/source/features.json.
GoldenCase LoadGolden(const std::string& name);

// Writes the checkpoint into `folder` and converts it to `bundle`. False when the test has failed.
bool ConvertGolden(const GoldenCase& golden, ConfigStyle style, const std::filesystem::path& folder,
                   const std::filesystem::path& bundle, const std::vector<std::string>& options);

// Encodes the case's source. False when the test has failed.
bool EncodeSource(const GoldenCase& golden, arn_session* session);

// Compares the logits after the token at `position` with what is known of them; a failure names
// the worst.
void ExpectLogits(const GoldenCase& golden, size_t position, const float* logits, double tolerance);

}  // namespace arn::test
