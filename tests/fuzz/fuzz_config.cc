// libFuzzer: a checkpoint's config.json and generation_config.json, through the whole conversion
// and a few tokens of the bundle. The weights are small and intact.
//
// Input: a config.json and, after a NUL byte, a generation_config.json, if it begins with '{'; else
// a byte that selects a small checkpoint, and edits of its two files.
#include <algorithm>
#include <filesystem>

#include "converter/base/error.h"
#include "converter/convert/convert.h"
#include "converter/run/read_back.h"
#include "nlohmann/json.hpp"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/json_edits.h"
#include "tests/support/session_support.h"
#include "tests/support/tiny_checkpoint.h"

namespace arn::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kMaxEdits = 6;

std::vector<TinyCheckpoint> Checkpoints() {
  std::vector<TinyCheckpoint> all(5);
  for (TinyCheckpoint& checkpoint : all) {
    checkpoint.vocab = 24;
    checkpoint.hidden = 16;
    checkpoint.ffn = 16;
    checkpoint.heads = 2;
    checkpoint.kv_heads = 1;
  }
  all[1].architecture = "Qwen2ForCausalLM";
  all[1].model_type = "qwen2";
  all[1].qkv_bias = true;
  all[2].architecture = "Qwen3ForCausalLM";
  all[2].model_type = "qwen3";
  all[2].qk_norm = true;
  all[2].tied = false;
  all[3].architecture = "MistralForCausalLM";
  all[3].model_type = "mistral";
  all[3].config = {{"sliding_window", 9}};
  all[4].config = {{"rope_parameters",
                    {{"rope_type", "llama3"},
                     {"rope_theta", 500000.0},
                     {"factor", 8.0},
                     {"low_freq_factor", 1.0},
                     {"high_freq_factor", 4.0},
                     {"original_max_position_embeddings", 32}}}};
  all[4].generation = {{"bos_token_id", 1},        {"eos_token_id", {2, 3}}, {"do_sample", true},
                       {"temperature", 0.6},       {"top_p", 0.9},           {"top_k", 20},
                       {"repetition_penalty", 1.1}};
  return all;
}

const JsonMaterial& ConfigMaterial() {
  static const JsonMaterial kMaterial = {json::parse(R"json([
    null, true, false, 0, 1, 2, 3, 7, 16, 64, 128, -1, 2147483647, 4294967295, 9223372036854775807,
    18446744073709551615, 1e300, -1e300, 1e-300, -0.5, 0.5, 1e-5, 10000.0, "", "a", [], {}, [0],
    [1, 1], [1.0, 2.0, 3.0, 4.0], ["full_attention", "sliding_attention"], [[1]], "silu", "gelu",
    "gelu_pytorch_tanh", "relu2", "linear", "dynamic", "yarn", "longrope", "llama3", "default",
    "float32", "full_attention", "sliding_attention", "linear_attention", "chunked_attention",
    "LlamaForCausalLM", "Gemma2ForCausalLM", "Phi3ForCausalLM", "mamba", "granite", "smollm3",
    {"rope_type": "yarn", "factor": 4.0, "rope_theta": 10000.0},
    {"rope_type": "longrope", "short_factor": [1, 1, 1, 1], "long_factor": [2, 2, 2, 2]},
    {"type": "linear", "factor": 2.0}, {"quant_method": "gptq", "bits": 4, "group_size": 32}
      ])json"),
                                         {"num_hidden_layers",
                                          "num_key_value_heads",
                                          "num_attention_heads",
                                          "head_dim",
                                          "hidden_size",
                                          "intermediate_size",
                                          "vocab_size",
                                          "max_position_embeddings",
                                          "rope_theta",
                                          "rope_scaling",
                                          "rope_parameters",
                                          "partial_rotary_factor",
                                          "sliding_window",
                                          "use_sliding_window",
                                          "max_window_layers",
                                          "layer_types",
                                          "no_rope_layers",
                                          "no_rope_layer_interval",
                                          "tie_word_embeddings",
                                          "attention_bias",
                                          "mlp_bias",
                                          "hidden_act",
                                          "hidden_activation",
                                          "rms_norm_eps",
                                          "eos_token_id",
                                          "bos_token_id",
                                          "pad_token_id",
                                          "architectures",
                                          "model_type",
                                          "text_config",
                                          "quantization_config",
                                          "attn_logit_softcapping",
                                          "final_logit_softcapping",
                                          "query_pre_attn_scalar",
                                          "logits_scaling",
                                          "residual_multiplier",
                                          "embedding_multiplier",
                                          "temperature",
                                          "top_p",
                                          "top_k",
                                          "min_p",
                                          "typical_p",
                                          "do_sample",
                                          "repetition_penalty",
                                          "suppress_tokens",
                                          "begin_suppress_tokens",
                                          "bad_words_ids",
                                          "forced_bos_token_id",
                                          "forced_eos_token_id",
                                          "sequence_bias",
                                          "no_repeat_ngram_size",
                                          "num_experts",
                                          "num_local_experts",
                                          "num_experts_per_tok",
                                          "attention_chunk_size",
                                          "cache_implementation",
                                          "length_penalty"}};
  return kMaterial;
}

// A folder with the weights of a small checkpoint. Its two other files are written for each run.
class ConfigSubject {
 public:
  explicit ConfigSubject(const TinyCheckpoint& checkpoint)
      : config_(TinyConfig(checkpoint)), generation_(checkpoint.generation) {
    WriteTinyCheckpoint(folder_ / "checkpoint", checkpoint);
  }

  void RunEdited(Choices choices) {
    json config = config_, generation = generation_;
    for (int i = 0; i < kMaxEdits && choices.left() > 0; ++i) {
      json* const edited = choices.Below(3) == 0 ? &generation : &config;
      EditJson(ConfigMaterial(), edited, &choices);
    }
    Run(Text(config), Text(generation));
  }

  void Run(const std::string& config, const std::string& generation) {
    WriteFile(folder_ / "checkpoint/config.json", config);
    WriteFile(folder_ / "checkpoint/generation_config.json", generation);
    convert::ConvertOptions options;
    options.folder = folder_ / "checkpoint";
    options.output = folder_ / "out.arn";
    options.no_tokenizer = true;
    options.n_threads = 1;
    options.formats.target = FindPackTarget("portable");
    options.check = [&](const fs::path& bundle) { convert::ReadBack(bundle, options.output); };
    try {
      convert::Convert(options, {});
      Use();
    } catch (const convert::ConvertError& error) {
      if (std::string(error.what()).empty()) EndFuzzing("refused without a reason");
    }
    fs::remove(folder_ / "out.arn");
    // Whatever happened, nothing of it is left behind.
    for (const fs::path& path : {folder_.path(), folder_ / "checkpoint"}) {
      const auto n = std::distance(fs::directory_iterator(path), fs::directory_iterator());
      if (n != (path == folder_.path() ? 1 : 3)) EndFuzzing("files are left in " + path.string());
    }
  }

 private:
  static std::string Text(const json& value) {
    return value.dump(-1, ' ', false, json::error_handler_t::replace);
  }

  // Runs a few tokens of what was written.
  void Use() {
    arn_model* opened = nullptr;
    char error[512] = "";
    const std::string path = folder_ / "out.arn";
    if (arn_model_open(path.c_str(), nullptr, error, sizeof error, &opened) != ARN_OK) {
      EndFuzzing(std::string("a bundle that was read back does not open: ") + error);
    }
    const ModelPtr model(opened);
    arn_model_info info = ARN_MODEL_INFO_INIT;
    arn_model_get_info(model.get(), &info);
    if (info.makes_text == 0) return;
    arn_session_options options = ARN_SESSION_OPTIONS_INIT;
    options.context_tokens = std::min(info.max_context, 16u);
    options.kv_type = ARN_KV_F32;
    options.n_threads = 1;
    arn_session* created = nullptr;
    if (arn_session_create(model.get(), &options, nullptr, 0, error, sizeof error, &created) !=
        ARN_OK) {
      EndFuzzing(std::string("a bundle that was read back has no session: ") + error);
    }
    const SessionPtr session(created);
    const std::vector<int32_t> ids = SomeIds(std::min(options.context_tokens, 5u), info.vocab);
    if (arn_session_prefill(session.get(), ids.data(), ids.size()) != ARN_OK) return;
    int32_t id = 0;
    for (int i = 0; i < 3 && arn_session_decode(session.get(), &id) == ARN_OK; ++i) {
      if (id < 0 || static_cast<uint32_t>(id) >= info.vocab) EndFuzzing("a token out of range");
    }
  }

  TempFolder folder_;
  const json config_, generation_;
};

std::vector<std::string> ConfigSeeds() {
  std::vector<std::string> seeds;
  for (char i = 0; i < 5; ++i) seeds.emplace_back(1, i);
  for (const TinyCheckpoint& checkpoint : Checkpoints()) {
    if (checkpoint.qkv_bias || checkpoint.qk_norm) continue;
    seeds.push_back(TinyConfig(checkpoint).dump() + '\0' + checkpoint.generation.dump());
  }
  return seeds;
}

}  // namespace
}  // namespace arn::test

ARN_FUZZ_TARGET(config, arn::test::ConfigSeeds) {
  using arn::test::ConfigSubject;
  static std::vector<std::unique_ptr<ConfigSubject>>* const subjects = [] {
    auto* made = new std::vector<std::unique_ptr<ConfigSubject>>;
    for (const auto& checkpoint : arn::test::Checkpoints()) {
      made->push_back(std::make_unique<ConfigSubject>(checkpoint));
    }
    return made;
  }();
  if (size == 0) return;
  if (data[0] == '{') {
    const uint8_t* const end = std::find(data, data + size, uint8_t{0});
    const std::string generation(end == data + size ? end : end + 1, data + size);
    return subjects->at(0)->Run(std::string(data, end), generation.empty() ? "{}" : generation);
  }
  subjects->at(data[0] % subjects->size())->RunEdited({data + 1, size - 1});
}
