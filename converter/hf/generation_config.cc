#include "converter/hf/generation_config.h"

#include <algorithm>
#include <optional>

#include "converter/base/error.h"
#include "converter/hf/config_reader.h"
#include "converter/hf/json_file.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

// Settings that change the output and that the runtime does not support. `neutral`: the number,
// besides null, false and empty, that has no effect.
struct NotApplied {
  const char* key;
  double neutral;
};
constexpr NotApplied kNotApplied[] = {
    {"encoder_repetition_penalty", 1},
    {"encoder_no_repeat_ngram_size", 0},
    {"epsilon_cutoff", 0},
    {"eta_cutoff", 0},
    {"top_h", 1},
    {"p_less", 0},
    {"num_beams", 1},
    {"num_beam_groups", 1},
    {"num_return_sequences", 1},
    {"diversity_penalty", 0},
    {"length_penalty", 1},
    {"penalty_alpha", 0},
    {"guidance_scale", 1},
    {"min_length", 0},
    {"forced_bos_token_id", -1},
    {"force_words_ids", 0},
    {"exponential_decay_length_penalty", 0},
    {"stop_strings", 0},
    {"watermarking_config", 0},
    {"token_healing", 0},
    {"dola_layers", 0},
    {"constraints", 0},
};

// Keys that do not affect the choice of tokens: metadata, limits that each call sets, caches,
// faster ways to the same tokens, and settings of other model types.
constexpr const char* kHarmlessGenerationKeys[] = {
    "_from_model_config",
    "transformers_version",
    "_commit_hash",
    "use_cache",
    "cache_implementation",
    "cache_config",
    "return_legacy_cache",
    "low_memory",
    "max_length",
    "max_new_tokens",
    "max_time",
    "early_stopping",
    "output_attentions",
    "output_hidden_states",
    "output_scores",
    "output_logits",
    "return_dict_in_generate",
    "return_dict",
    "renormalize_logits",
    "remove_invalid_values",
    "decoder_start_token_id",
    "sep_token_id",
    "is_assistant",
    "num_assistant_tokens",
    "num_assistant_tokens_schedule",
    "assistant_confidence_threshold",
    "assistant_early_exit",
    "assistant_lookbehind",
    "target_lookbehind",
    "prompt_lookup_num_tokens",
    "max_matching_ngram_size",
    "prefill_chunk_size",
    "compile_config",
    "disable_compile",
    "generation_kwargs",
    "chat_format",
    "max_window_size",
    "trust_remote_code",
    // Speech models: prompts that callers make.
    "forced_decoder_ids",
    "median_filter_width",
    "return_timestamps",
};

class IdReader {
 public:
  // `generation` may be null.
  IdReader(ConfigReader* generation, ConfigReader* config, uint32_t vocab,
           std::vector<std::string>* warnings)
      : generation_(generation), config_(config), vocab_(vocab), warnings_(warnings) {}

  // Returns the ids in the given order, without duplicates.
  std::vector<uint32_t> Ids(const char* key) {
    ConfigReader* from = generation_ != nullptr && generation_->Has(key) ? generation_ : config_;
    std::vector<uint32_t> ids;
    for (const int64_t id : from->IntOrList(key)) {
      if (id < 0 || id >= vocab_) {
        if (id != -1) {
          warnings_->push_back(from->label() + ": " + key + " " + std::to_string(id) +
                               " is outside the vocabulary of " + std::to_string(vocab_) +
                               " and is ignored");
        }
        continue;
      }
      const uint32_t valid = static_cast<uint32_t>(id);
      if (std::find(ids.begin(), ids.end(), valid) == ids.end()) ids.push_back(valid);
    }
    return ids;
  }

 private:
  ConfigReader* generation_;
  ConfigReader* config_;
  uint32_t vocab_;
  std::vector<std::string>* warnings_;
};

double Ranged(ConfigReader* reader, const char* key, double low, double high, double fallback) {
  const std::optional<double> value = reader->Number(key);
  if (!value) return fallback;
  if (*value < low || *value > high) {
    reader->FailKey(key, Format("a number from %g to %g", low, high).c_str());
  }
  return *value;
}

void ReadSampling(ConfigReader* from, GenerationSpec* spec) {
  spec->do_sample = from->Bool("do_sample", false);
  spec->temperature = static_cast<float>(Ranged(from, "temperature", 0, 1e6, 1));
  spec->top_p = static_cast<float>(Ranged(from, "top_p", 0, 1, 1));
  spec->min_p = static_cast<float>(Ranged(from, "min_p", 0, 1, 0));
  const int64_t top_k = from->Int("top_k").value_or(0);
  if (top_k < -1 || top_k > INT32_MAX) from->FailKey("top_k", "a whole number; 0 or -1: off");
  spec->top_k = static_cast<uint32_t>(std::max<int64_t>(top_k, 0));
  // Both values leave only the argmax; the runtime accepts neither value.
  if (spec->top_p == 0.0f || spec->min_p == 1.0f) {
    spec->top_k = 1;
    spec->top_p = 1.0f;
    spec->min_p = 0.0f;
  }
}

bool ChangesNothing(const nlohmann::json& value, double neutral) {
  return value.is_null() || value == false || (value.is_number() && value == neutral) ||
         ((value.is_structured() || value.is_string()) && value.empty()) || value == "";
}

void WarnOfNotApplied(ConfigReader* from, bool has_start_ids, std::vector<std::string>* warnings) {
  for (const NotApplied& row : kNotApplied) {
    const nlohmann::json* value = from->Find(row.key);
    if (value == nullptr || ChangesNothing(*value, row.neutral)) continue;
    if (has_start_ids && row.key == std::string("forced_bos_token_id")) continue;
    warnings->push_back(from->label() + ": " + row.key + " " + Shown(*value) + " is not applied");
  }
}

}  // namespace

GenerationSpec ReadGeneration(const GenerationSources& sources, uint32_t vocab,
                              std::vector<std::string>* warnings) {
  ConfigReader config(*sources.config, sources.config_label);
  std::optional<ConfigReader> generation;
  if (sources.generation != nullptr) {
    generation.emplace(*sources.generation, sources.generation_label);
  }
  GenerationSpec spec;
  IdReader ids(generation ? &*generation : nullptr, &config, vocab, warnings);
  spec.eos_ids = ids.Ids("eos_token_id");
  spec.bos_ids = ids.Ids("bos_token_id");
  const std::vector<uint32_t> pads = ids.Ids("pad_token_id");
  if (!pads.empty()) spec.pad_id = static_cast<int32_t>(pads[0]);
  spec.start_ids = ids.Ids("decoder_start_token_id");

  ConfigReader* sampling = generation ? &*generation : &config;
  ReadSampling(sampling, &spec);
  IdReader own_ids(sampling, sampling, vocab, warnings);
  spec.options = ReadSamplingOptions({sampling, vocab, !spec.start_ids.empty(),
                                      [&](const char* key) { return own_ids.Ids(key); }});
  WarnOfNotApplied(sampling, !spec.start_ids.empty(), warnings);
  spec.transcription = ReadTranscription(sampling, &config, vocab, warnings);
  if (!generation) return spec;
  std::vector<std::string> unknown;
  for (const std::string& key : generation->Unread()) {
    const bool is_harmless =
        std::any_of(std::begin(kHarmlessGenerationKeys), std::end(kHarmlessGenerationKeys),
                    [&](const char* harmless) { return key == harmless; });
    if (!is_harmless && !ChangesNothing((*sources.generation)[key], 0)) unknown.push_back(key);
  }
  if (!unknown.empty()) {
    warnings->push_back(sources.generation_label +
                        ": unknown keys, ignored: " + JoinNames(unknown, 20));
  }
  return spec;
}

GenerationSpec ReadGeneration(const std::filesystem::path& folder, const nlohmann::json& config,
                              const std::string& config_label, uint32_t vocab,
                              std::vector<std::string>* warnings) {
  const std::filesystem::path path = folder / "generation_config.json";
  nlohmann::json json;
  GenerationSources sources;
  sources.config = &config;
  sources.config_label = config_label;
  if (std::filesystem::exists(path)) {
    json = LoadJson(path);
    sources.generation = &json;
    sources.generation_label = path.string();
  }
  return ReadGeneration(sources, vocab, warnings);
}

}  // namespace arn::convert
