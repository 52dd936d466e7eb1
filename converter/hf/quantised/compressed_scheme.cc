#include "converter/hf/quantised/compressed_scheme.h"

#include <algorithm>
#include <regex>

#include "converter/base/error.h"
#include "converter/hf/json_file.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

constexpr const char* kCompressedFormats[] = {
    "int-quantized",        "pack-quantized",       "naive-quantized", "float-quantized",
    "nvfp4-pack-quantized", "mxfp4-pack-quantized", "mxfp8-quantized", "dense",
};

void CheckCompressedFormat(ConfigReader* config, bool is_whole) {
  const std::optional<std::string> format = config->String("format");
  if (!format || (is_whole && *format == "mixed-precision")) return;
  for (const char* known : kCompressedFormats) {
    if (*format == known) return;
  }
  config->FailKey("format",
                  "int-quantized, pack-quantized, naive-quantized, float-quantized, "
                  "nvfp4-pack-quantized, mxfp4-pack-quantized, mxfp8-quantized or "
                  "mixed-precision");
}

void RefuseUnreadOfScheme(const ConfigReader& config) {
  std::vector<std::string> unknown;
  for (const std::string& key : config.Unread()) {
    if (!config.IsNull(key)) unknown.push_back(key);
  }
  if (unknown.empty()) return;
  Fail("%s: unknown keys: %s", config.label().c_str(), JoinNames(unknown, 20).c_str());
}

CompressedStrategy ReadSchemeStrategy(ConfigReader* weights, int64_t group_size) {
  const std::optional<std::string> name = weights->String("strategy");
  if (!name) {
    return group_size > 0    ? CompressedStrategy::kGroup
           : group_size == 0 ? CompressedStrategy::kTensor
                             : CompressedStrategy::kChannel;
  }
  if (*name == "tensor") return CompressedStrategy::kTensor;
  if (*name == "channel") return CompressedStrategy::kChannel;
  if (*name == "group" || *name == "tensor_group") return CompressedStrategy::kGroup;
  if (*name == "block") return CompressedStrategy::kBlock;
  weights->FailKey("strategy", "tensor, channel, group, tensor_group or block");
}

void ReadBlockStructure(ConfigReader* weights, CompressedScheme* scheme) {
  const nlohmann::json* value = weights->Find("block_structure");
  if (scheme->strategy != CompressedStrategy::kBlock) return;
  const auto side = [&](size_t i) -> uint64_t {
    if (value == nullptr || !value->is_array() || value->size() != 2 ||
        !(*value)[i].is_number_unsigned() || (*value)[i].get<uint64_t>() < 1 ||
        (*value)[i].get<uint64_t>() > INT32_MAX) {
      weights->FailKey("block_structure", "two whole numbers from 1 to 2147483647");
    }
    return (*value)[i].get<uint64_t>();
  };
  scheme->block_rows = side(0);
  scheme->block_cols = side(1);
}

bool ReadsGroupIndices(ConfigReader* weights) {
  const nlohmann::json* value = weights->Find("actorder");
  if (value == nullptr || *value == false) return false;
  if (*value == true || *value == "group" || *value == "dynamic") return true;
  if (*value == "weight" || *value == "static") return false;
  weights->FailKey("actorder", "group, dynamic, weight or static");
}

void ReadWeightScheme(const nlohmann::json& json, CompressedScheme* scheme) {
  ConfigReader weights(json, scheme->label + ": weights");
  const uint32_t bits = weights.Count("num_bits").value_or(8);
  if (bits > 8) weights.FailKey("num_bits", "1 to 8");
  scheme->bits = bits;
  const std::string type = weights.String("type").value_or("int");
  if (type != "int" && type != "float") weights.FailKey("type", "int or float");
  scheme->is_float = type == "float";
  if (scheme->is_float && bits != 4 && bits != 8) {
    weights.FailKey("num_bits", "4 or 8, of floats");
  }
  scheme->is_symmetric = weights.Bool("symmetric", true);
  const int64_t group_size = weights.Int("group_size").value_or(0);
  if (group_size < -1 || group_size > INT32_MAX) {
    weights.FailKey("group_size", "-1 or a number of columns");
  }
  scheme->strategy = ReadSchemeStrategy(&weights, group_size);
  if (scheme->strategy == CompressedStrategy::kGroup && group_size < 1) {
    weights.FailKey("group_size", "a number of columns");
  }
  scheme->group_size = group_size > 0 ? static_cast<uint64_t>(group_size) : 0;
  ReadBlockStructure(&weights, scheme);
  scheme->has_indices = ReadsGroupIndices(&weights);
  if (const nlohmann::json* dynamic = weights.Find("dynamic");
      dynamic != nullptr && *dynamic != false) {
    weights.FailKey("dynamic", "false for weights");
  }
  for (const char* key : {"observer", "observer_kwargs", "scale_dtype", "zp_dtype"}) {
    weights.MarkRead(key);
  }
  RefuseUnreadOfScheme(weights);
}

std::vector<std::string> ReadSchemeTargets(ConfigReader* group) {
  constexpr const char* kKey = "targets";
  const nlohmann::json* value = group->Find(kKey);
  std::vector<std::string> targets;
  if (value == nullptr || !value->is_array()) group->FailKey(kKey, "a list of strings");
  for (const nlohmann::json& target : *value) {
    if (!target.is_string()) group->FailKey(kKey, "a list of strings");
    targets.push_back(target.get<std::string>());
  }
  return targets;
}

// As re.match of Python: from the first character on.
bool MatchesTargetPattern(const std::string& label, const std::string& pattern,
                          const std::string& module) {
  try {
    return std::regex_search(module, std::regex(pattern), std::regex_constants::match_continuous);
  } catch (const std::regex_error&) {
    Fail("%s: targets: re:%s is no regular expression that is read", label.c_str(),
         pattern.c_str());
  }
}

// Ranks how a target matches a module: 3 by name, 2 by pattern, 1 by class, 0 not at all. Tensors
// have no classes, but packed ones belong to a linear layer or, by their names, to an embedding.
int TargetRank(const std::string& label, const std::string& target, const std::string& module) {
  if (target == module) return 3;
  if (target.compare(0, 3, "re:") == 0) {
    return MatchesTargetPattern(label, target.substr(3), module) ? 2 : 0;
  }
  const bool is_embedding = module.find("embed") != std::string::npos;
  return (target == "Embedding") == is_embedding && target.find('.') == std::string::npos ? 1 : 0;
}

}  // namespace

CompressedSchemes::CompressedSchemes(ConfigReader* config) : label_(config->label()) {
  CheckCompressedFormat(config, true);
  constexpr const char* kKey = "config_groups";
  const nlohmann::json* groups = config->Find(kKey);
  if (groups == nullptr || !groups->is_object()) config->FailKey(kKey, "an object");
  for (const auto& [name, json] : groups->items()) {
    ConfigReader group(json, label_ + ": " + kKey + ": " + name);
    CompressedScheme scheme;
    scheme.label = group.label();
    scheme.targets = ReadSchemeTargets(&group);
    CheckCompressedFormat(&group, false);
    scheme.format =
        group.String("format").value_or(config->String("format").value_or("naive-quantized"));
    for (const char* key : {"input_activations", "output_activations"}) {
      rounds_activations_ |= group.Has(key);
    }
    const nlohmann::json* weights = group.Find("weights");
    RefuseUnreadOfScheme(group);
    if (weights == nullptr) continue;
    ReadWeightScheme(*weights, &scheme);
    schemes_.push_back(std::move(scheme));
  }
}

const CompressedScheme& CompressedSchemes::Of(const std::string& module) const {
  if (schemes_.size() == 1) return schemes_[0];
  const CompressedScheme* best = nullptr;
  int best_rank = 0;
  for (const CompressedScheme& scheme : schemes_) {
    for (const std::string& target : scheme.targets) {
      const int rank = TargetRank(scheme.label, target, module);
      if (rank <= best_rank) continue;
      best = &scheme;
      best_rank = rank;
    }
  }
  if (best == nullptr) {
    Fail("%s: config_groups: no group has module %s, which is quantised", label_.c_str(),
         module.c_str());
  }
  return *best;
}

}  // namespace arn::convert
