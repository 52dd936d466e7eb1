// The planner behind MakeTensorPlan: takes tensors from a checkpoint and puts them together into
// those of the bundle.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "converter/decoder_spec.h"
#include "converter/tensor_plan.h"
#include "converter/tensor_sources.h"

namespace arn::convert {

class Planner {
 public:
  Planner(const DecoderSpec& spec, const Checkpoint& checkpoint, const Formats& formats,
          std::vector<std::string>* warnings);
  TensorPlan Make();

 private:
  const Checkpoint::Entry* EmbeddingSource();
  const Checkpoint::Entry* HeadSource(const Checkpoint::Entry* embedding);

  void AddLayer(uint32_t layer, const LayerKindSpec& kind);
  void AddAttention(uint32_t layer, const LayerKindSpec& kind, LayerTensors* out);
  void AddFeedForward(uint32_t layer, const LayerKindSpec& kind, LayerTensors* out);
  std::vector<SourcePart> QkvParts(uint32_t layer, const LayerKindSpec& kind);
  std::vector<SourcePart> UpParts(uint32_t layer, const LayerKindSpec& kind);

  // mixer_tensors.cc: what a layer has instead of q, k and v.
  void AddMixer(uint32_t layer, const MixerSpec& mixer, LayerTensors* out);
  uint32_t AddByChannel(const std::string& name, const std::string& source, uint32_t rows,
                        const std::vector<uint64_t>& shape, bool is_negative_log);

  // expert_tensors.cc: a layer's router and experts, and what is beside them.
  void AddExperts(uint32_t layer, const LayerKindSpec& kind, LayerTensors* out);
  void AddStoredExperts(uint32_t layer, const LayerKindSpec& kind, LayerTensors* out);
  void AddStackedExperts(uint32_t layer, const LayerKindSpec& kind, LayerTensors* out);
  void AddSharedExpert(uint32_t layer, const LayerKindSpec& kind, LayerTensors* out);

  // All rows of one matrix of a layer.
  SourcePart Part(const std::string& base, uint32_t rows, uint32_t cols, bool bias);
  // A matrix whose result is added to the residual stream.
  SourcePart OutPart(const std::string& base, uint32_t cols, bool bias);

  // Each adds a tensor to the plan and returns its index.
  uint32_t AddVector(const std::string& name, const std::string& source, uint32_t count,
                     float offset);
  uint32_t AddOnes(const std::string& name, uint32_t count);
  uint32_t AddMatrix(const std::string& name, DType dtype, bool is_multiplied,
                     std::vector<SourcePart> parts, uint32_t cols);
  // *bias is set for NormKind::kLayer.
  void AddNorm(const std::string& name, const std::string& source, NormKind kind, uint32_t count,
               uint32_t* weight, uint32_t* bias);

  const DecoderSpec& spec_;
  const Formats& formats_;
  std::vector<std::string>* warnings_;
  TensorSources sources_;
  TensorPlan plan_;
};

// "model.layers.{}.mlp" and 3 give "model.layers.3.mlp".
std::string LayerName(const char* pattern, uint32_t layer);
// "layers.3.qkv": the bundle's own names.
std::string OwnName(uint32_t layer, const char* name);
inline std::string WeightName(const std::string& base) { return base + ".weight"; }

}  // namespace arn::convert
