#include "converter/gguf/gguf_lora.h"

#include <map>
#include <memory>
#include <utility>

#include "converter/base/error.h"
#include "converter/gguf/gguf_file.h"
#include "converter/hf/config_reader.h"

namespace arn::convert {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWeight = ".weight";
constexpr const char* kA = ".lora_a";
constexpr const char* kB = ".lora_b";
// llama.cpp looks the rows of its A up by token: another shape under the same name.
constexpr const char* kEmbedding = "token_embd";

void Need(ConfigReader* metadata, const char* key, const std::string& expected) {
  if (metadata->String(key).value_or("") != expected) metadata->FailKey(key, expected.c_str());
}

bool TakeEnd(const std::string& end, std::string* text) {
  if (text->size() < end.size() || text->compare(text->size() - end.size(), end.size(), end) != 0) {
    return false;
  }
  text->resize(text->size() - end.size());
  return true;
}

std::vector<float> ReadMatrix(const Checkpoint::Entry& entry) {
  CheckLoraMatrix(entry);
  std::vector<float> values(entry.tensor->elements());
  Checkpoint::ReadFloats(entry, 0, values.size(), values.data());
  return values;
}

}  // namespace

Lora ReadGgufLora(const fs::path& path, const std::string& architecture, double scale) {
  auto file = std::make_unique<GgufFile>(path);
  ConfigReader metadata(file->metadata(), path.string());
  Need(&metadata, "general.type", "adapter");
  Need(&metadata, "adapter.type", "lora");
  Need(&metadata, "general.architecture", architecture);
  if (metadata.Find("adapter.alora.invocation_tokens") != nullptr) {
    metadata.FailKey("adapter.alora.invocation_tokens", "none: the adapter holds for every token");
  }
  const double alpha = metadata.Number("adapter.lora.alpha").value_or(0);

  std::map<std::string, SourceTensor> named;
  for (const SourceTensor& tensor : file->tensors()) named[tensor.name] = tensor;
  const Checkpoint tensors(std::move(file), std::move(named));
  std::map<std::string, LowRank> matrices;
  for (const auto& [name, entry] : tensors.entries()) {
    std::string module = name;
    const bool is_a = TakeEnd(kA, &module);
    if ((!is_a && !TakeEnd(kB, &module)) || !TakeEnd(kWeight, &module) || module == kEmbedding) {
      Fail("%s: tensor %s is not a LoRA matrix of a linear layer", path.c_str(), name.c_str());
    }
    const Checkpoint::Entry* other = tensors.Find(module + kWeight + (is_a ? kB : kA));
    if (other == nullptr) {
      Fail("%s: tensor %s has no %s beside it", path.c_str(), name.c_str(), is_a ? kB : kA);
    }
    if (!is_a) continue;
    LowRank matrix;
    matrix.right = ReadMatrix(entry);
    matrix.left = ReadMatrix(*other);
    const uint64_t rank = entry.tensor->shape[0];
    if (rank > UINT16_MAX || other->tensor->shape[1] != rank) {
      Fail("%s: %s: lora_a is %s and lora_b %s, expected one rank", path.c_str(), module.c_str(),
           ShapeText(entry.tensor->shape).c_str(), ShapeText(other->tensor->shape).c_str());
    }
    matrix.rank = static_cast<uint32_t>(rank);
    matrix.rows = other->tensor->shape[0];
    matrix.cols = entry.tensor->shape[1];
    // llama.cpp takes an alpha of 0 for one that is the rank.
    const double factor = alpha == 0 ? scale : scale * alpha / static_cast<double>(rank);
    for (float& x : matrix.left) x = static_cast<float>(static_cast<double>(x) * factor);
    matrices[module] = std::move(matrix);
  }
  if (matrices.empty()) Fail("%s: has no LoRA matrices", path.c_str());
  return Lora(path, std::move(matrices));
}

}  // namespace arn::convert
