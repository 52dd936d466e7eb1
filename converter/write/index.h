// The FlatBuffers index of a bundle, from the plans of its parts.
#pragma once

#include <string>
#include <vector>

#include "converter/decoder_spec.h"
#include "converter/hf/generation_config.h"
#include "converter/tensor_plan.h"
#include "flatbuffers/flatbuffers.h"
#include "runtime/bundle/bundle_generated.h"

namespace arn::convert {

struct ModelIndex {
  const DecoderSpec* spec = nullptr;
  const TensorPlan* plan = nullptr;
  const std::vector<fbs::Segment>* segments = nullptr;  // one for each tensor of the plan
  std::string source_name;
};

flatbuffers::Offset<fbs::Model> BuildModel(const ModelIndex& model,
                                           flatbuffers::FlatBufferBuilder* builder);
flatbuffers::Offset<fbs::Generation> BuildGeneration(const GenerationSpec& generation,
                                                     flatbuffers::FlatBufferBuilder* builder);

// A prompt's beginning that was run.
struct PrefixIndex {
  std::vector<int32_t> ids;
  fbs::Segment state;
  uint64_t model_hash = 0;  // of the index without it
};
flatbuffers::Offset<fbs::Prefix> BuildPrefix(const PrefixIndex& prefix,
                                             flatbuffers::FlatBufferBuilder* builder);

}  // namespace arn::convert
