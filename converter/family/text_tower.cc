#include "converter/family/text_tower.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "converter/base/error.h"
#include "converter/family/family.h"
#include "converter/family/text_tower_table.h"
#include "converter/family/vision_family.h"
#include "converter/hf/config_reader.h"
#include "converter/hf/json_file.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

const Wrapper* FindWrapper(const nlohmann::json& config) {
  if (!config.is_object()) return nullptr;
  const auto names = config.find("architectures");
  if (names == config.end() || !names->is_array() || names->empty()) return nullptr;
  const auto at = std::find_if(std::begin(kWrappers), std::end(kWrappers),
                               [&](const Wrapper& row) { return (*names)[0] == row.architecture; });
  return at == std::end(kWrappers) ? nullptr : at;
}

bool StartsWith(const std::string& text, const std::string& start) {
  return text.compare(0, start.size(), start) == 0;
}

void FillAbsent(const char* defaults, nlohmann::json* config) {
  if (defaults == nullptr) return;
  const nlohmann::json object = nlohmann::json::parse(defaults);
  for (const auto& [key, value] : object.items()) {
    if (!config->contains(key)) (*config)[key] = value;
  }
}

// A text_config is written as what differs from its class.
void FillSizes(const Family& family, nlohmann::json* config) {
  const auto fill = [&](const char* key, uint32_t value) {
    if (value != 0 && (!config->contains(key) || (*config)[key].is_null())) (*config)[key] = value;
  };
  const ClassSizes& sizes = family.sizes;
  fill("vocab_size", sizes.vocab);
  fill(family.keys.hidden, sizes.hidden);
  fill(family.keys.layers, sizes.layers);
  fill(family.keys.heads, sizes.heads);
  fill(family.keys.ffn, sizes.ffn);
}

// A token of text has the same position in each dimension of mrope.
void MakeRopePlain(nlohmann::json* config) {
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    if (!config->contains(key) || !(*config)[key].is_object()) continue;
    nlohmann::json& rope = (*config)[key];
    rope.erase("mrope_section");
    rope.erase("mrope_interleaved");
    for (const char* type : {"type", "rope_type"}) {
      if (rope.contains(type) && rope[type] == "mrope") rope[type] = "default";
    }
  }
}

constexpr const char* kCrossLayers = "cross_attention_layers";

// Takes the layers that attend to an image away from the config; returns which.
std::set<uint32_t> TakeCrossLayers(const std::string& label, nlohmann::json* config) {
  constexpr const char* kLayers = "num_hidden_layers";
  ConfigReader reader(*config, label);
  const uint32_t n_layers = reader.RequiredCount(kLayers);
  std::set<uint32_t> cross;
  for (const int64_t layer : reader.IntOrList(kCrossLayers)) {
    if (layer < 0 || layer >= n_layers) reader.FailKey(kCrossLayers, "indices of layers");
    cross.insert(static_cast<uint32_t>(layer));
  }
  if (cross.size() >= n_layers) reader.FailKey(kCrossLayers, "some of the layers");
  config->erase(kCrossLayers);
  (*config)[kLayers] = n_layers - cross.size();
  return cross;
}

// Gives the config the keys of the family that computes what it says.
void AdaptToFamily(TextTower* tower) {
  nlohmann::json& config = tower->config;
  const auto type =
      std::find_if(std::begin(kTextTypes), std::end(kTextTypes),
                   [&](const TextType& row) { return config["model_type"] == row.model_type; });
  if (type != std::end(kTextTypes)) {
    if (config.value(kCrossLayers, nlohmann::json()).is_null()) config.erase(kCrossLayers);
    FillAbsent(type->defaults, &config);
    config.update(nlohmann::json::parse(type->always));
    config["model_type"] = type->family;
    MakeRopePlain(&config);
    if (type->has_cross_layers) {
      tower->left_out_layers = TakeCrossLayers(tower->label, &config);
      tower->spare_rows = 8;
    }
  }
  for (const Family& family : Families()) {
    if (config["model_type"] == family.model_type) FillSizes(family, &config);
  }
}

// The whole models have a head of their own, which in transformers 5 does to logits nothing that
// the decoder's own does.
void LeaveLogitsAlone(TextTower* tower) {
  nlohmann::json& config = tower->config;
  for (const Family& family : Families()) {
    if (config["model_type"] != family.model_type) continue;
    const auto set = [&](const char* key, const nlohmann::json& off,
                         const nlohmann::json& fallback) {
      const nlohmann::json value = config.contains(key) ? config[key] : fallback;
      config[key] = off;
      if (value.is_null() || value == off) return;
      tower->notes.push_back(tower->label + ": " + key + " " + Shown(value) + " has no effect in " +
                             tower->wrapper + ", as in transformers 5");
    };
    if (family.caps_logits) {
      set("final_logit_softcapping", nlohmann::json(),
          family.default_logits_softcap == 0 ? nlohmann::json()
                                             : nlohmann::json(family.default_logits_softcap));
    }
    if (family.has_multipliers) set("logits_scaling", 1.0, 1.0);
    if (family.default_logit_scale != 0) set("logit_scale", 1.0, family.default_logit_scale);
  }
}

// The tower that a tensor belongs to, empty when it is none of kOtherTowers.
std::string OtherTower(const std::string& name) {
  const std::string model = "model.";
  const std::string bare = StartsWith(name, model) ? name.substr(model.size()) : name;
  for (const std::string tower : kOtherTowers) {
    if (!StartsWith(bare, tower)) continue;
    return tower.back() == '.' ? tower.substr(0, tower.size() - 1) : tower;
  }
  return "";
}

std::string NameInDecoder(const std::string& name, const std::string& prefix) {
  for (const std::string body : kBodies) {
    if (StartsWith(name, body)) return prefix + name.substr(body.size());
  }
  for (const std::string whole : kWholeDecoders) {
    if (!StartsWith(name, whole)) continue;
    const std::string inside = name.substr(whole.size());
    return whole == kWholeDecoders[0] ? prefix + inside : inside;
  }
  return name;
}

// The decoder's name of a tensor of a layer, counted without those that are left out; false for a
// tensor of one of those.
bool CountLayerAnew(const std::set<uint32_t>& left_out, const std::string& prefix,
                    std::string* name) {
  const std::string start = prefix + "layers.";
  if (left_out.empty() || !StartsWith(*name, start)) return true;
  const size_t end = name->find('.', start.size());
  const std::string digits = name->substr(start.size(), end - start.size());
  if (digits.empty() || digits.size() > 5 ||
      digits.find_first_not_of("0123456789") != std::string::npos) {
    return true;
  }
  const auto layer = static_cast<uint32_t>(std::stoul(digits));
  if (left_out.count(layer) != 0) return false;
  const auto before = std::distance(left_out.begin(), left_out.lower_bound(layer));
  *name = start + std::to_string(layer - static_cast<uint32_t>(before)) +
          (end == std::string::npos ? "" : name->substr(end));
  return true;
}

}  // namespace

TextTower FindTextTower(const nlohmann::json& given, const std::string& file) {
  const Wrapper* wrapper = FindWrapper(given);
  if (wrapper == nullptr) return {given, file, ""};
  const char* part = wrapper->part_key;
  const bool has_part = part != nullptr && given.contains(part) && given[part].is_object();
  if (part != nullptr && !has_part) ConfigReader(given, file).FailKey(part, "an object");
  const nlohmann::json& config = has_part ? given[part] : given;
  const std::string label = has_part ? file + ": " + part : file;
  if (wrapper->refusal != nullptr) {
    Fail("%s: %s: its decoder alone is not supported: %s", label.c_str(), wrapper->architecture,
         wrapper->refusal);
  }
  ConfigReader outer(config, label);
  const nlohmann::json* text = outer.Find("text_config");
  const bool is_flat = wrapper->is_flat && text == nullptr;
  if (is_flat) text = &config;
  if (text == nullptr || !text->is_object()) outer.FailKey("text_config", "an object");
  TextTower tower = {*text, is_flat ? label : label + ": text_config", wrapper->architecture};
  // The type alone decides: the name is left over from the checkpoint that the decoder was taken
  // from.
  tower.config.erase("architectures");
  if (is_flat || tower.config.value("model_type", nlohmann::json()).is_null()) {
    tower.config["model_type"] = wrapper->text_type;
  }
  for (const char* key : kOtherKeys) tower.config.erase(key);
  for (const char* key : kOuterKeys) {
    if (const nlohmann::json* value = outer.Find(key)) tower.config[key] = *value;
  }
  // Either may say it: a head that is there and differs is kept apart anyway.
  constexpr const char* kTied = "tie_word_embeddings";
  const bool is_tied = outer.Bool(kTied, wrapper->default_tied);
  tower.config[kTied] = ConfigReader(tower.config, tower.label).Bool(kTied, false) || is_tied;
  FillAbsent(wrapper->defaults, &tower.config);
  AdaptToFamily(&tower);
  if (!wrapper->caps_logits) LeaveLogitsAlone(&tower);
  return tower;
}

void KeepTextTower(const TextTower& tower, const TensorNames& names, uint32_t vocab,
                   bool keeps_vision, Checkpoint* checkpoint, std::vector<std::string>* warnings) {
  if (tower.wrapper.empty()) return;
  const std::string prefix = names.prefix;
  std::map<std::string, Checkpoint::Entry> kept;
  std::map<std::string, uint32_t> left_out;
  for (const auto& [name, entry] : checkpoint->entries()) {
    const std::string inner = StartsWith(name, kPart) ? name.substr(std::strlen(kPart)) : name;
    const std::string other = OtherTower(inner);
    const std::string seen = keeps_vision ? VisionTensorName(name) : "";
    std::string own = seen.empty() ? NameInDecoder(inner, prefix) : seen;
    if (!other.empty() && seen.empty()) {
      ++left_out[other];
    } else if (!CountLayerAnew(tower.left_out_layers, prefix, &own)) {
      ++left_out["layers that attend to an image"];
    } else if (!kept.emplace(std::move(own), entry).second) {
      Fail("tensor %s has two names", name.c_str());
    }
  }
  checkpoint->SetEntries(std::move(kept));
  if (tower.spare_rows != 0) {
    checkpoint->LeaveOutRows(std::string(names.embedding) + ".weight", vocab, tower.spare_rows);
  }
  std::vector<std::string> counted;
  for (const auto& [name, count] : left_out) {
    counted.push_back(Format("%s (%u tensor%s)", name.c_str(), count, count == 1 ? "" : "s"));
  }
  if (!keeps_vision || !counted.empty()) {
    warnings->push_back("of " + tower.wrapper + " only the text decoder" +
                        (keeps_vision ? " and the vision tower are converted" : " is converted") +
                        (counted.empty() ? "" : "; left out: " + JoinNames(counted, 20)));
  }
  warnings->insert(warnings->end(), tower.notes.begin(), tower.notes.end());
}

}  // namespace arn::convert
