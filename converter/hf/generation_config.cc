#include "converter/hf/generation_config.h"

#include <algorithm>
#include <optional>

#include "converter/error.h"
#include "converter/hf/config_reader.h"
#include "converter/hf/json_file.h"

namespace arn::convert {
namespace {

// Settings that a bundle does not carry, and the value that changes nothing.
struct NotCarried {
  const char* key;
  double neutral;
};
constexpr NotCarried kNotCarried[] = {
    {"repetition_penalty", 1.0}, {"no_repeat_ngram_size", 0.0}, {"typical_p", 1.0},
    {"num_beams", 1.0},          {"length_penalty", 1.0},       {"epsilon_cutoff", 0.0},
    {"eta_cutoff", 0.0},         {"penalty_alpha", 0.0},
};

class IdReader {
 public:
  IdReader(ConfigReader* generation, ConfigReader* config, uint32_t vocab,
           std::vector<std::string>* warnings)
      : generation_(generation), config_(config), vocab_(vocab), warnings_(warnings) {}

  // In the order given, each once.
  std::vector<uint32_t> Ids(const char* key) {
    ConfigReader* from = generation_->Has(key) ? generation_ : config_;
    std::vector<uint32_t> ids;
    for (const int64_t id : from->IntOrList(key)) {
      if (id < 0 || id >= vocab_) {
        if (id != -1) {
          warnings_->push_back(from->label() + ": " + key + " " + std::to_string(id) +
                               " is outside the vocabulary of " + std::to_string(vocab_) +
                               " and is left out");
        }
        continue;
      }
      const uint32_t valid = static_cast<uint32_t>(id);
      if (std::find(ids.begin(), ids.end(), valid) == ids.end()) ids.push_back(valid);
    }
    return ids;
  }

  int32_t Id(const char* key) {
    const std::vector<uint32_t> ids = Ids(key);
    return ids.empty() ? -1 : static_cast<int32_t>(ids[0]);
  }

 private:
  ConfigReader* generation_;
  ConfigReader* config_;
  uint32_t vocab_;
  std::vector<std::string>* warnings_;
};

float Ranged(ConfigReader* reader, const char* key, double low, double high, float fallback) {
  const std::optional<double> value = reader->Number(key);
  if (!value) return fallback;
  if (*value < low || *value > high) {
    reader->Wrong(key, Format("a number from %g to %g", low, high).c_str());
  }
  return static_cast<float>(*value);
}

}  // namespace

GenerationSpec ReadGeneration(const std::filesystem::path& folder, const nlohmann::json& config,
                              const std::string& config_label, uint32_t vocab,
                              std::vector<std::string>* warnings) {
  const std::filesystem::path path = folder / "generation_config.json";
  const nlohmann::json json =
      std::filesystem::exists(path) ? LoadJson(path) : nlohmann::json::object();
  ConfigReader generation(json, path.string());
  ConfigReader fallback(config, config_label);
  IdReader ids(&generation, &fallback, vocab, warnings);

  GenerationSpec spec;
  spec.eos_ids = ids.Ids("eos_token_id");
  spec.bos_id = ids.Id("bos_token_id");
  spec.pad_id = ids.Id("pad_token_id");
  spec.do_sample = generation.Bool("do_sample", false);
  spec.temperature = Ranged(&generation, "temperature", 0, 1e6, spec.temperature);
  spec.top_p = Ranged(&generation, "top_p", 0, 1, spec.top_p);
  spec.min_p = Ranged(&generation, "min_p", 0, 1, spec.min_p);
  const int64_t top_k = generation.Int("top_k").value_or(0);
  if (top_k < 0 || top_k > INT32_MAX) generation.Wrong("top_k", "a whole number of at least 0");
  spec.top_k = static_cast<uint32_t>(top_k);

  for (const NotCarried& row : kNotCarried) {
    const std::optional<double> value = generation.Number(row.key);
    if (value && *value != row.neutral) {
      warnings->push_back(generation.label() + ": " + row.key + " is not stored in the bundle");
    }
  }
  return spec;
}

}  // namespace arn::convert
