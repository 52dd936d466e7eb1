// Implementation of MakeTensorPlan: takes tensors from a checkpoint and combines them into the
// bundle's tensors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "converter/family/decoder_spec.h"
#include "converter/tensors/tensor_plan.h"
#include "converter/tensors/tensor_sources.h"

namespace arn::convert {

// Returns "model.layers.3.mlp" for "model.layers.{}.mlp" and 3.
std::string LayerName(const char* pattern, uint32_t layer);
// True if each layer has a tensor of this name.
bool IsOfEachLayer(const char* pattern);
// Returns the bundle's own name, such as "layers.3.qkv".
std::string OwnName(uint32_t layer, const char* name);
inline std::string WeightName(const std::string& base) { return base + ".weight"; }

// Adds to an index, or to all of a layer, what lies before the tensors of another plan.
void MoveTensor(uint32_t by, uint32_t* index);
void MoveLayer(uint32_t by, LayerTensors* layer);

class Planner {
 public:
  Planner(const DecoderSpec& spec, const Checkpoint& checkpoint, const Formats& formats,
          std::vector<std::string>* warnings);
  TensorPlan Make();
  // Plans a vision tower, whose layers are `spec`.
  VisionTensors MakeVision(const VisionSpec& vision, std::vector<PlannedTensor>* tensors);
  // Plans a multi-token prediction head, whose layers are `spec`.
  MtpTensors MakeMtp(std::vector<PlannedTensor>* tensors);

 private:
  // The current layer, the names of its tensors in the checkpoint, and its prefix in the bundle,
  // which the decoder's layers do not have.
  struct LayerScope {
    uint32_t layer = 0;
    const TensorNames* names = nullptr;
    const char* prefix = "";
    uint32_t first_stored = 0;  // layer of the checkpoint that is layer 0

    std::string Own(const char* name) const { return prefix + OwnName(layer, name); }
    std::string Stored(const char* pattern) const {
      return LayerName(pattern, first_stored + layer);
    }
  };

  // True if the layer uses another one's keys and values.
  bool SharesKv(const LayerScope& scope) const {
    if (spec_.assistant.exists()) return true;
    return scope.prefix[0] == '\0' && !spec_.kv_layers.empty() &&
           spec_.kv_layers[scope.layer] != scope.layer;
  }

  void LeaveOutExtraLayers();
  const Checkpoint::Entry* EmbeddingSource();
  const Checkpoint::Entry* HeadSource(const Checkpoint::Entry* embedding);

  void AddLayer(uint32_t layer, const LayerKindSpec& kind);
  void AddAttention(const LayerScope& scope, const LayerKindSpec& kind, LayerTensors* out);
  void AddFeedForward(const LayerScope& scope, const LayerKindSpec& kind, LayerTensors* out);
  // latent_tensors.cc: queries and latent of latent attention.
  void AddLatent(const LayerScope& scope, const LayerKindSpec& kind, LayerTensors* out);
  void AddLatentHeads(const LayerScope& scope, const LayerKindSpec& kind, LayerTensors* out);

  void AddPerLayer(const LayerScope& scope, LayerTensors* out);
  void AddPerLayerEmbeddings();
  // stream_tensors.cc: residual streams and low-rank residuals.
  void AddStreams();
  void AddLayerStreams(const LayerScope& scope, const LayerKindSpec& kind, LayerTensors* out);
  std::vector<SourcePart> QkvParts(const LayerScope& scope, const LayerKindSpec& kind);
  void SplitFused(const SourcePart& whole, const LayerKindSpec& kind, SourcePart* q, SourcePart* k,
                  SourcePart* v) const;
  std::vector<SourcePart> UpParts(const LayerScope& scope, const LayerKindSpec& kind);

  // mixer_tensors.cc: replaces q, k and v in layers with another mixer.
  void AddMixer(uint32_t layer, const LayerKindSpec& kind, LayerTensors* out);
  void AddConvolution(uint32_t layer, const LayerKindSpec& kind, LayerTensors* out);
  void AddSplitConvolution(uint32_t layer, const LayerKindSpec& kind, LayerTensors* out);
  void AddScanNorms(uint32_t layer, const LayerKindSpec& kind, LayerTensors* out);
  void AddLinearAttention(uint32_t layer, const LayerKindSpec& kind, LayerTensors* out);
  HeadTurns ValueHeadTurns(const LayerKindSpec& kind, uint32_t first, uint32_t head_dim) const;
  std::vector<SourcePart> LinearAttentionParts(uint32_t layer, const LayerKindSpec& kind);
  uint32_t AddByChannel(const std::string& name, const std::string& source, uint32_t rows,
                        const std::vector<uint64_t>& shape, bool is_negative_log);

  // expert_tensors.cc: router, experts and shared expert of a layer.
  void AddExperts(const LayerScope& scope, const LayerKindSpec& kind, LayerTensors* out);
  void AddExpertNorms(const LayerScope& scope, LayerTensors* out);
  std::vector<float> ExpertFactors(const LayerScope& scope, const LayerKindSpec& kind);
  uint32_t AddRouterCorrection(const LayerScope& scope, uint32_t n_experts);
  void AddStoredExperts(const LayerScope& scope, const LayerKindSpec& kind, LayerTensors* out);
  void AddStackedExperts(const LayerScope& scope, const LayerKindSpec& kind, LayerTensors* out);
  void AddSharedExpert(const LayerScope& scope, const LayerKindSpec& kind, LayerTensors* out);

  // Takes all rows of one matrix of a layer.
  SourcePart Part(const std::string& base, uint32_t rows, uint32_t cols, bool bias);
  // Takes a matrix whose result is added to the residual stream.
  SourcePart OutPart(const std::string& base, uint32_t cols, bool bias, float factor = 1.0f);

  // pooling_tensors.cc: token types, and layers over pooled rows. head: the model's, if any.
  void AddTokenTypes();
  void AddPooling(const Checkpoint::Entry* head);

  void AddActParameters(const LayerScope& scope, LayerTensors* layer);
  void AddAlibi();

  // vision_tensors.cc: the tower of images.
  void AddVision();
  uint32_t AddPatchEmbedding(const VisionSpec& vision);
  std::vector<SourcePart> PositionParts(const VisionSpec& vision);
  void AddClamps(const LayerScope& scope, LayerTensors* layer);
  // scope: prefix of the tensors' labels. cols: of the merged patches.
  ProjectorTensors AddProjector(const std::string& scope, const ProjectorSpec& projector,
                                uint32_t cols);

  // mtp_tensors.cc: the multi-token prediction head.
  void AddMtp();
  void AddAssistant(MtpTensors* out);

  // encoder_tensors.cc: encoder and cross-attention.
  void AddEncoder(const Checkpoint::Entry* embedding);
  void AddEncoderEmbedding(const Checkpoint::Entry* embedding);
  void AddCross(uint32_t layer, const LayerKindSpec& kind, LayerTensors* out);
  void AddConvolutions(const EncoderSpec& encoder);
  // Adds a relative position bias with one row per distance, buckets expanded; both_ways: the
  // middle row is distance 0.
  uint32_t AddRelativePositionBias(const std::string& name, const std::string& base,
                                   uint32_t n_heads, bool both_ways);

  // Each method adds a tensor to the plan and returns its index.
  uint32_t AddVector(const std::string& name, const std::string& source, uint32_t count,
                     float offset);
  // A norm after a block, with the factor of the residual sum.
  uint32_t AddPostNorm(const std::string& name, const std::string& source);
  uint32_t AddConstant(const std::string& name, uint32_t count, float value);
  // is_packed: in the target's layout, else in rows.
  uint32_t AddMatrix(const std::string& name, DType dtype, bool is_packed,
                     std::vector<SourcePart> parts, uint32_t cols);
  // True if tables that no matmul reads are packed too.
  bool packs_tables() const { return formats_.target->is_device; }
  // Sets *bias for NormKind::kLayer. A family without weights or biases gets ones or zeros.
  void AddNorm(const std::string& name, const std::string& source, NormKind kind, uint32_t count,
               uint32_t* weight, uint32_t* bias);

  const DecoderSpec& spec_;
  const Checkpoint& checkpoint_;
  const Formats& formats_;
  std::vector<std::string>* warnings_;
  TensorSources sources_;
  uint32_t hidden_ = 0;  // of the layers that are planned: the encoder's, then the decoder's
  uint32_t relative_position_bias_ = kNoTensor;
  TensorPlan plan_;
};

}  // namespace arn::convert
