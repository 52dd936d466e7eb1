#include "converter/gguf/gguf_pooling.h"

#include "converter/base/error.h"
#include "converter/gguf/gguf_keys.h"

namespace arn::convert {
namespace {

// Adds the dense layers behind the pooling, which have neither bias nor activation.
void AddDenseModules(const GgufFacts& facts, PoolingSpec* pooling) {
  for (const char* name : {"dense_2", "dense_3"}) {
    const auto found = facts.shapes.find(std::string(name) + ".weight");
    if (found == facts.shapes.end() || found->second.size() != 2) continue;
    DenseSpec dense;
    dense.weight = name;
    dense.width = static_cast<uint32_t>(found->second[0]);
    pooling->dense.push_back(std::move(dense));
  }
}

// Reads the head of a BERT that scores texts: dense, activation, out. llama.cpp's converter leaves
// the dense layer of plain BERT out.
void ReadHead(const GgufArchitecture& row, const GgufFacts& facts, const std::string& label,
              DecoderSpec* spec) {
  const auto has = [&](const char* name) { return facts.tensors.count(name) != 0; };
  const std::vector<uint64_t>& out_shape = facts.shapes.at("cls.output.weight");
  if (!has("cls.weight") || out_shape.size() != 2) {
    Fail("%s: cls.output.weight: a head without its dense layer, cls.weight, is not supported",
         label.c_str());
  }
  PoolingSpec& pooling = spec->pooling;
  pooling.exists = pooling.is_score = true;
  pooling.mode = PoolKind::kFirst;
  const bool is_distilled = row.names->token_types == nullptr;
  DenseSpec dense;
  dense.weight = "cls";
  dense.width = spec->hidden;
  dense.has_bias = has("cls.bias");
  dense.activation = is_distilled ? Activation::kRelu : Activation::kTanh;
  DenseSpec out;
  out.weight = "cls.output";
  out.width = static_cast<uint32_t>(out_shape[0]);
  out.has_bias = has("cls.output.bias");
  out.is_exact = true;
  pooling.score = out.width == 1 ? ScoreRule::kSigmoid : ScoreRule::kLogits;
  pooling.dense = {std::move(dense), std::move(out)};
  constexpr const char* kModel = "Model";
  const size_t at = spec->architecture.rfind(kModel);
  if (at != std::string::npos) {
    spec->architecture.replace(at, std::string::npos, "ForSequenceClassification");
  }
}

}  // namespace

void ReadGgufPooling(const GgufArchitecture& row, const GgufFacts& facts, ConfigReader* metadata,
                     DecoderSpec* spec, std::vector<std::string>* warnings) {
  constexpr const char* kType = "pooling_type";
  // llama.cpp's enum llama_pooling_type.
  constexpr int64_t kNone = 0, kMean = 1, kFirst = 2, kLast = 3, kRank = 4;
  GgufKeys keys(row.name, metadata);
  PoolingSpec& pooling = spec->pooling;
  const int64_t type = metadata->Int(keys.Key(kType)).value_or(kNone);
  if (type == kNone && spec->makes_text) return;
  const bool has_head = row.names->positions != nullptr && facts.shapes.count("cls.output.weight");
  if (has_head && (type == kNone || type == kRank)) {
    return ReadHead(row, facts, metadata->label(), spec);
  }
  switch (type) {
    case kNone:
      warnings->push_back(metadata->label() + ": no " + keys.Key(kType) +
                          ": vectors are the mean of all tokens (see --pooling)");
      pooling.mode = PoolKind::kMean;
      break;
    case kMean: pooling.mode = PoolKind::kMean; break;
    case kFirst: pooling.mode = PoolKind::kFirst; break;
    case kLast: pooling.mode = PoolKind::kLast; break;
    default: keys.Fail(kType, "0 (none), 1 (mean), 2 (first token) or 3 (last token)");
  }
  pooling.exists = pooling.normalizes = true;
  AddDenseModules(facts, &pooling);
  if (row.has_dense_modules && pooling.dense.empty()) {
    warnings->push_back(metadata->label() +
                        ": no dense layers behind the pooling, which the published model has");
  }
}

}  // namespace arn::convert
