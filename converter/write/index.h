// Builds the FlatBuffers index of a bundle from the plans of its parts.
#pragma once

#include <string>
#include <vector>

#include "converter/family/decoder_spec.h"
#include "converter/hf/generation_config.h"
#include "converter/tensors/tensor_plan.h"
#include "flatbuffers/flatbuffers.h"
#include "runtime/bundle/bundle_generated.h"

namespace arn::convert {

struct ModelIndex {
  const DecoderSpec* spec = nullptr;
  const TensorPlan* plan = nullptr;
  const std::vector<fbs::Segment>* segments = nullptr;  // one per tensor of the plan
  std::string source_name;
};

flatbuffers::Offset<fbs::Model> BuildModel(const ModelIndex& model,
                                           flatbuffers::FlatBufferBuilder* builder);
flatbuffers::Offset<fbs::Generation> BuildGeneration(const GenerationSpec& generation,
                                                     flatbuffers::FlatBufferBuilder* builder);

// A prompt prefix and its saved session.
struct PrefixIndex {
  std::vector<int32_t> ids;
  fbs::Segment state;
  uint64_t model_hash = 0;  // of the index without prefix and self-test
};
flatbuffers::Offset<fbs::Prefix> BuildPrefix(const PrefixIndex& prefix,
                                             flatbuffers::FlatBufferBuilder* builder);

// Contents of fbs::SelfTest, before it is written.
struct SelfTestData {
  std::vector<int32_t> ids;  // empty: no self-test
  std::vector<uint32_t> run_tokens;
  std::vector<float> scales;
  std::vector<int16_t> logits;
};
struct SelfTestIndex {
  SelfTestData data;
  fbs::Segment logits;
  uint64_t model_hash = 0;
};
flatbuffers::Offset<fbs::SelfTest> BuildSelfTest(const SelfTestIndex& test,
                                                 flatbuffers::FlatBufferBuilder* builder);

}  // namespace arn::convert
