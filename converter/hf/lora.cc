#include "converter/hf/lora.h"

#include <algorithm>
#include <cmath>
#include <regex>

#include "converter/base/error.h"
#include "converter/hf/config_reader.h"
#include "converter/hf/json_file.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "base_model.model.";
constexpr const char* kA = ".lora_A.weight";
constexpr const char* kB = ".lora_B.weight";

// Keys of LoraConfig (peft/tuners/lora/config.py) that the merged matrices do not depend on.
constexpr const char* kHarmlessLoraKeys[] = {
    "auto_mapping",
    "base_model_name_or_path",
    "revision",
    "inference_mode",
    "task_type",
    "target_modules",
    "exclude_modules",
    "lora_dropout",
    "layers_to_transform",
    "layers_pattern",
    "loftq_config",
    "eva_config",
    "corda_config",
    "megatron_config",
    "megatron_core",
    "peft_version",
    "runtime_config",
    "qalora_group_size",
    "ensure_weight_tying",
};
// Keys that change more than the matrices, and must be off.
constexpr const char* kMustBeOff[] = {
    "use_dora",          "modules_to_save",         "lora_bias",
    "layer_replication", "trainable_token_indices", "use_qalora",
    "target_parameters", "alora_invocation_tokens", "arrow_config",
    "use_bdlora",
};

bool IsOff(const nlohmann::json& value) {
  return value.is_null() || value == false || value == "" ||
         (value.is_structured() && value.empty());
}

// Numbers by pattern of a module's name, as get_pattern_key (peft/utils/other.py).
class Patterns {
 public:
  Patterns(ConfigReader* config, const char* key) {
    const nlohmann::json* found = config->Find(key);
    if (found == nullptr) return;
    if (!found->is_object()) config->FailKey(key, "an object of numbers");
    for (const auto& [pattern, value] : found->items()) {
      if (!value.is_number()) config->FailKey(key, "an object of numbers");
      try {
        rows_.push_back({std::regex("(.*\\.)?(" + pattern + ")"), value.get<double>()});
      } catch (const std::regex_error&) {
        config->FailKey(key, "regular expressions of names of modules");
      }
    }
  }
  double Of(const std::string& module, double fallback) const {
    for (const Row& row : rows_) {
      if (std::regex_match(module, row.pattern)) return row.value;
    }
    return fallback;
  }

 private:
  struct Row {
    std::regex pattern;
    double value;
  };
  std::vector<Row> rows_;
};

// Checks the keys that Lora() does not read.
void CheckKeys(ConfigReader* config, const nlohmann::json& json) {
  for (const char* key : kMustBeOff) {
    if (const nlohmann::json* value = config->Find(key); value != nullptr && !IsOff(*value)) {
      config->FailKey(key, "none: it changes more than the adapter's matrices");
    }
  }
  if (config->String("peft_type").value_or("") != "LORA") config->FailKey("peft_type", "LORA");
  if (config->String("bias").value_or("none") != "none") config->FailKey("bias", "none");
  if (const nlohmann::json* start = config->Find("init_lora_weights")) {
    // Others change the base model's matrices too.
    const bool is_plain = start->is_boolean() || *start == "gaussian" || *start == "orthogonal";
    if (!is_plain) config->FailKey("init_lora_weights", "true, false, gaussian or orthogonal");
  }
  for (const char* key : kHarmlessLoraKeys) config->MarkRead(key);
  std::vector<std::string> unknown;
  for (const std::string& key : config->Unread()) {
    if (!IsOff(json.at(key))) unknown.push_back(key);
  }
  if (!unknown.empty()) {
    Fail("%s: unknown keys: %s", config->label().c_str(), JoinNames(unknown, 20).c_str());
  }
}

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// Returns a matrix of the adapter, transposed if `transposes`.
std::vector<float> ReadMatrix(const Checkpoint::Entry& entry, bool transposes) {
  const SourceTensor& tensor = *entry.tensor;
  std::vector<float> stored(tensor.elements());
  Checkpoint::ReadFloats(entry, 0, stored.size(), stored.data());
  if (!transposes) return stored;
  const uint64_t rows = tensor.shape[0], cols = tensor.shape[1];
  std::vector<float> turned(stored.size());
  for (uint64_t r = 0; r < rows; ++r) {
    for (uint64_t c = 0; c < cols; ++c) turned[c * rows + r] = stored[r * cols + c];
  }
  return turned;
}

fs::path TensorsOf(const fs::path& folder) {
  const fs::path path = folder / "adapter_model.safetensors";
  if (fs::exists(path)) return path;
  const fs::path older = folder / "adapter_model.bin";
  if (fs::exists(older)) return older;
  Fail("%s: no such file", path.c_str());
}

}  // namespace

void CheckLoraMatrix(const Checkpoint::Entry& entry) {
  if (entry.tensor->shape.size() == 2 && Checkpoint::IsFloat(*entry.tensor)) return;
  Fail("%s: tensor %s: expected a matrix of floats, found %s of shape %s",
       entry.file->path().c_str(), entry.tensor->name.c_str(), entry.tensor->dtype.c_str(),
       ShapeText(entry.tensor->shape).c_str());
}

void LowRank::AddTo(uint64_t first, uint64_t count, float* out) const {
  const uint64_t last = first + count;
  std::vector<double> sums;
  for (uint64_t at = first; at < last;) {
    const uint64_t row = at / cols, begin = at - row * cols;
    const uint64_t n = std::min(cols - begin, last - at);
    sums.assign(n, 0.0);
    for (uint32_t k = 0; k < rank; ++k) {
      const auto factor = static_cast<double>(left[row * rank + k]);
      const float* from = right.data() + k * cols + begin;
      for (uint64_t i = 0; i < n; ++i) sums[i] += factor * static_cast<double>(from[i]);
    }
    float* to = out + (at - first);
    for (uint64_t i = 0; i < n; ++i) {
      to[i] = static_cast<float>(static_cast<double>(to[i]) + sums[i]);
    }
    at += n;
  }
}

Lora::Lora(const fs::path& folder, double scale) : source_(folder) {
  const fs::path path = folder / "adapter_config.json";
  const nlohmann::json json = LoadJson(path);
  ConfigReader config(json, path.string());
  const uint32_t rank = config.RequiredCount("r");
  const double alpha = config.Number("lora_alpha").value_or(8);  // of LoraConfig
  const bool is_root = config.Bool("use_rslora", false);
  const bool fan_in_fan_out = config.Bool("fan_in_fan_out", false);
  const Patterns ranks(&config, "rank_pattern"), alphas(&config, "alpha_pattern");
  CheckKeys(&config, json);

  const Checkpoint tensors = Checkpoint::OfFile(TensorsOf(folder));
  for (const auto& [name, entry] : tensors.entries()) {
    const bool is_a = EndsWith(name, kA);
    if ((!is_a && !EndsWith(name, kB)) || name.rfind(kPrefix, 0) != 0) {
      Fail("%s: tensor %s is not a LoRA matrix of a linear layer", entry.file->path().c_str(),
           name.c_str());
    }
    const size_t begin = std::string(kPrefix).size();
    const std::string module = name.substr(begin, name.size() - begin - std::string(kA).size());
    const Checkpoint::Entry* other = tensors.Find(kPrefix + module + (is_a ? kB : kA));
    if (other == nullptr) {
      Fail("%s: tensor %s has no %s beside it", entry.file->path().c_str(), name.c_str(),
           is_a ? "lora_B" : "lora_A");
    }
    if (!is_a) continue;
    CheckLoraMatrix(entry);
    CheckLoraMatrix(*other);
    const uint64_t own = entry.tensor->shape[0];
    if (static_cast<double>(own) != ranks.Of(module, rank) || other->tensor->shape[1] != own) {
      Fail("%s: module %s: lora_A is %s and lora_B %s, expected rank %g",
           entry.file->path().c_str(), module.c_str(), ShapeText(entry.tensor->shape).c_str(),
           ShapeText(other->tensor->shape).c_str(), ranks.Of(module, rank));
    }
    // Stored as [outputs, inputs], or the other way round with fan_in_fan_out.
    LowRank matrix;
    matrix.rank = static_cast<uint32_t>(own);
    matrix.left = ReadMatrix(fan_in_fan_out ? entry : *other, fan_in_fan_out);
    matrix.right = ReadMatrix(fan_in_fan_out ? *other : entry, fan_in_fan_out);
    matrix.rows = matrix.left.size() / own;
    matrix.cols = matrix.right.size() / own;
    const double divisor = is_root ? std::sqrt(static_cast<double>(own)) : static_cast<double>(own);
    const double factor = scale * alphas.Of(module, alpha) / divisor;
    for (float& x : matrix.left) x = static_cast<float>(static_cast<double>(x) * factor);
    matrices_[module] = std::move(matrix);
  }
  if (matrices_.empty()) Fail("%s: has no LoRA matrices", folder.c_str());
}

void Lora::Merge(Checkpoint* checkpoint) const {
  std::map<std::string, Checkpoint::Entry> entries = checkpoint->entries();
  std::vector<std::string> missing;
  for (const auto& [module, matrix] : matrices_) {
    auto at = entries.find(module + ".weight");
    // A checkpoint of the bare decoder omits the first part of its names.
    const size_t dot = module.find('.');
    if (at == entries.end() && dot != std::string::npos) {
      at = entries.find(module.substr(dot + 1) + ".weight");
    }
    if (at == entries.end()) {
      missing.push_back(module);
      continue;
    }
    const std::vector<uint64_t> shape = {matrix.rows, matrix.cols};
    if (at->second.tensor->shape != shape) {
      Fail("%s: module %s adapts a matrix %s, the checkpoint's is %s", source_.c_str(),
           module.c_str(), ShapeText(shape).c_str(), ShapeText(at->second.tensor->shape).c_str());
    }
    at->second.added = &matrix;
  }
  if (!missing.empty()) {
    Fail("%s: adapts %zu modules that the checkpoint does not have: %s", source_.c_str(),
         missing.size(), JoinNames(missing, 20).c_str());
  }
  checkpoint->SetEntries(std::move(entries));
}

}  // namespace arn::convert
