#include "converter/hf/quantised/methods.h"

#include "converter/base/error.h"
#include "converter/hf/json_file.h"
#include "converter/hf/quantised/readers.h"
#include "converter/hf/quantised/stored_parts.h"

namespace arn::convert {
namespace {

// Names as in transformers' QuantizationMethod (utils/quantization_config.py).
struct QuantMethod {
  const char* name;
  void (*read)(StoredParts* parts);  // null: refused
};
constexpr QuantMethod kQuantMethods[] = {
    {"awq", ReadAwq},
    {"bitnet", ReadBitNet},
    {"bitsandbytes", ReadBitsAndBytes},
    {"compressed-tensors", ReadCompressedTensors},
    {"fp8", ReadFineGrainedFp8},
    {"gptq", ReadGptq},
    {"hqq", ReadHqq},
    {"mxfp4", ReadMxfp4Experts},
    {"mxfp8", ReadFineGrainedFp8},
    {"aqlm", nullptr},
    {"auto-round", nullptr},
    {"eetq", nullptr},
    {"fbgemm_fp8", nullptr},
    {"fouroversix", nullptr},
    {"fp_quant", nullptr},
    {"gemma", nullptr},
    {"higgs", nullptr},
    {"metal", nullptr},
    {"modelopt", nullptr},
    {"quanto", nullptr},
    {"quark", nullptr},
    {"sinq", nullptr},
    {"spqr", nullptr},
    {"torchao", nullptr},
    {"vptq", nullptr},
};

const QuantMethod* FindQuantMethod(const std::string& name) {
  for (const QuantMethod& row : kQuantMethods) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

// Old configs of bitsandbytes do not name their method.
std::string NameOfMethod(ConfigReader* config) {
  const bool is_old = config->Bool("load_in_4bit", false) || config->Bool("load_in_8bit", false);
  if (is_old && !config->Has("quant_method")) return "bitsandbytes";
  const std::optional<std::string> name = config->String("quant_method");
  if (!name) config->FailKey("quant_method", "the name of a method");
  return *name;
}

void RefuseMethod(const std::string& label, const std::string& name, const QuantMethod* row) {
  std::vector<std::string> read;
  for (const QuantMethod& other : kQuantMethods) {
    if (other.read != nullptr) read.push_back(other.name);
  }
  Fail(
      "%s: quant_method %s is not %s (read are: %s; or load the checkpoint with its own "
      "library, dequantise it and save it in BF16)",
      label.c_str(), name.c_str(), row == nullptr ? "known" : "read", JoinNames(read, 20).c_str());
}

}  // namespace

std::optional<QuantisationConfig> TakeQuantisation(nlohmann::json* config,
                                                   const std::string& label) {
  std::optional<QuantisationConfig> found;
  const auto take = [&](nlohmann::json* object, const std::string& from) {
    if (!object->is_object()) return;
    for (const char* key : {"quantization_config", "compression_config"}) {
      const auto at = object->find(key);
      if (at == object->end()) continue;
      const nlohmann::json value = *at;
      object->erase(at);
      if (found || value.is_null() || (value.is_object() && value.empty())) continue;
      found = QuantisationConfig{value, from + ": " + key};
    }
  };
  take(config, label);
  if (config->is_object() && config->contains("text_config")) {
    take(&(*config)["text_config"], label + ": text_config");
  }
  if (!found) return found;
  ConfigReader keys(found->keys, found->label);
  const std::string name = NameOfMethod(&keys);
  const QuantMethod* method = FindQuantMethod(name);
  if (method == nullptr || method->read == nullptr) RefuseMethod(found->label, name, method);
  return found;
}

void DecodeQuantised(const QuantisationConfig& config, const std::vector<std::string>& ignored_keys,
                     Checkpoint* checkpoint, std::vector<std::string>* warnings) {
  ConfigReader keys(config.keys, config.label);
  const QuantMethod* method = FindQuantMethod(NameOfMethod(&keys));
  StoredParts parts(config.keys, config.label, checkpoint, warnings);
  for (const std::string& key : ignored_keys) parts.config().MarkRead(key);
  method->read(&parts);
  size_t n_decoded = 0;
  for (const auto& [name, entry] : checkpoint->entries()) n_decoded += entry.decoded != nullptr;
  warnings->push_back(Format("%s: %zu matrices are read as method %s quantised them",
                             config.label.c_str(), n_decoded, method->name));
}

}  // namespace arn::convert
