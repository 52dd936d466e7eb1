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

}  // namespace

void ReadGgufPooling(const GgufArchitecture& row, const GgufFacts& facts, ConfigReader* metadata,
                     DecoderSpec* spec, std::vector<std::string>* warnings) {
  constexpr const char* kType = "pooling_type";
  // llama.cpp's enum llama_pooling_type.
  constexpr int64_t kNone = 0, kMean = 1, kFirst = 2, kLast = 3;
  GgufKeys keys(row.name, metadata);
  PoolingSpec& pooling = spec->pooling;
  const int64_t type = metadata->Int(keys.Key(kType)).value_or(kNone);
  if (type == kNone && spec->makes_text) return;
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
