#include "tests/golden/golden_case.h"

#include <algorithm>
#include <cmath>

#include "nlohmann/json.hpp"

namespace arn::test {

namespace fs = std::filesystem;

std::vector<int32_t> GoldenCase::all_ids() const {
  std::vector<int32_t> ids = prompt;
  ids.insert(ids.end(), greedy.begin(), greedy.end());
  return ids;
}

namespace {

TinyTensors ListedTensors(const GoldenCase& golden) {
  const TinyCheckpoint& c = golden.checkpoint;
  TinyTensors tensors;
  for (const auto& [name, shape] : golden.tensors) {
    uint64_t count = 1;
    for (const uint64_t n : shape) count *= n;
    const std::vector<float> values = TinyValues(name, count, c.base_seed, c.amplitude);
    tensors[name] = {c.dtype, shape, EncodeFloats(values, c.dtype)};
  }
  return tensors;
}

// The file stores [width, frames] as transformers does.
void LoadFeatures(const nlohmann::json& shape, GoldenCase* golden) {
  const uint32_t width = shape[0], frames = shape[1];
  const std::vector<float> stored =
      TinyValues("features", uint64_t{width} * frames, golden->checkpoint.base_seed, 1.0f);
  golden->feature_width = width;
  for (size_t f = 0; f < frames; ++f) {
    for (size_t w = 0; w < width; ++w) golden->features.push_back(stored[w * frames + f]);
  }
}

}  // namespace

std::vector<std::string> GoldenNames(const std::string& folder) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(SourcePath("tests/golden/data/" + folder))) {
    if (entry.path().extension() == ".json") names.push_back(folder + entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

GoldenCase LoadGolden(const std::string& name) {
  const nlohmann::json json =
      nlohmann::json::parse(ReadText(SourcePath("tests/golden/data/" + name + ".json")));
  GoldenCase golden;
  golden.name = name;
  golden.config = json.at("config");
  golden.old_config = json.at("old_config");
  TinyCheckpoint& c = golden.checkpoint;
  const nlohmann::json& text =
      golden.config.contains("text_config") ? golden.config.at("text_config") : golden.config;
  c.vocab = text.at("vocab_size");
  if (json.contains("tensors")) {
    json.at("tensors").get_to(golden.tensors);
  } else {
    c.hidden = golden.config.at("hidden_size");
    c.ffn = golden.config.at("intermediate_size");
    c.layers = golden.config.at("num_hidden_layers");
    c.heads = golden.config.at("num_attention_heads");
    c.kv_heads = golden.config.at("num_key_value_heads");
    c.head_dim = golden.config.value("head_dim", c.hidden / c.heads);
    c.tied = golden.config.at("tie_word_embeddings");
    c.qkv_bias = json.at("qkv_bias");
    c.o_bias = json.at("o_bias");
    c.mlp_bias = json.at("mlp_bias");
    c.qk_norm = json.at("qk_norm");
  }
  c.dtype = json.at("dtype");
  c.shards = json.at("shards");
  c.base_seed = json.at("base_seed");
  c.amplitude = json.at("amplitude");
  json.at("prompt").get_to(golden.prompt);
  json.at("greedy").get_to(golden.greedy);
  json.at("log_sum_exp").get_to(golden.log_sum_exp);
  json.at("argmax").get_to(golden.argmax);
  json.at("positions").get_to(golden.positions);
  golden.stride = json.at("stride");
  json.at("logits").get_to(golden.logits);
  if (json.contains("encoder_ids")) json.at("encoder_ids").get_to(golden.encoder_ids);
  if (json.contains("feature_shape")) LoadFeatures(json.at("feature_shape"), &golden);
  return golden;
}

bool ConvertGolden(const GoldenCase& golden, ConfigStyle style, const fs::path& folder,
                   const fs::path& bundle, const std::vector<std::string>& options,
                   const std::function<void(TinyTensors&)>& edit) {
  WriteTinyCheckpoint(folder, golden.checkpoint, [&](TinyTensors& tensors) {
    if (!golden.tensors.empty()) tensors = ListedTensors(golden);
    if (edit) edit(tensors);
  });
  const nlohmann::json& config =
      style == ConfigStyle::kTransformers5 ? golden.config : golden.old_config;
  WriteFile(folder / "config.json", config.dump(1));
  return Convert(folder, bundle, options);
}

arn_session_options GoldenOptions(uint32_t backend, uint32_t chunk) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.backend = backend;
  options.kv_type = ARN_KV_F32;
  options.prefill_chunk = chunk;
  options.n_threads = 2;
  options.all_logits = 1;
  return options;
}

bool EncodeInput(const GoldenCase& golden, arn_session* session) {
  arn_status status = ARN_OK;
  if (golden.feature_width != 0) {
    const auto frames = static_cast<uint32_t>(golden.features.size() / golden.feature_width);
    status =
        arn_session_encode_features(session, golden.features.data(), frames, golden.feature_width);
  } else {
    status = arn_session_encode_ids(session, golden.encoder_ids.data(), golden.encoder_ids.size());
  }
  EXPECT_EQ(ARN_OK, status) << arn_session_last_error(session);
  return status == ARN_OK;
}

void ExpectLogits(const GoldenCase& golden, size_t position, const float* logits,
                  double tolerance) {
  const uint32_t vocab = golden.vocab();
  const float* highest = std::max_element(logits, logits + vocab);
  EXPECT_EQ(golden.argmax[position], highest - logits) << "position " << position;
  double sum = 0;
  for (uint32_t i = 0; i < vocab; ++i) sum += std::exp(static_cast<double>(logits[i] - *highest));
  EXPECT_NEAR(golden.log_sum_exp[position], static_cast<double>(*highest) + std::log(sum),
              tolerance)
      << "position " << position;

  const auto at = std::find(golden.positions.begin(), golden.positions.end(), position);
  if (at == golden.positions.end()) return;
  const std::vector<float>& wanted =
      golden.logits[static_cast<size_t>(at - golden.positions.begin())];
  ASSERT_EQ((vocab + golden.stride - 1) / golden.stride, wanted.size());
  double worst = 0;
  size_t worst_id = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double error = std::abs(static_cast<double>(logits[i * golden.stride] - wanted[i]));
    if (!(error <= worst)) {
      worst = error;
      worst_id = i * golden.stride;
    }
  }
  EXPECT_LT(worst, tolerance) << "position " << position << ", token " << worst_id;
}

void ExpectGreedyWithGuesses(const GoldenCase& golden, const arn_model* model, uint64_t least) {
  for (const uint32_t backend : kBackends) {
    for (const uint32_t chunk : {8u, 64u}) {
      arn_session_options options = GoldenOptions(backend, chunk);
      options.all_logits = 0;
      options.speculation = ARN_SPECULATE_MTP;
      options.guess_always = 1;
      const SessionPtr session = NewSession(model, options);
      ASSERT_EQ(ARN_OK,
                arn_session_prefill(session.get(), golden.prompt.data(), golden.prompt.size()));
      std::vector<int32_t> ids;
      arn_generate_options generate = ARN_GENERATE_OPTIONS_INIT;
      generate.max_tokens = static_cast<uint32_t>(golden.greedy.size());
      generate.ignore_eos = 1;
      generate.user = &ids;
      generate.callback = [](void* to, int32_t token, const char*, size_t) -> int32_t {
        static_cast<std::vector<int32_t>*>(to)->push_back(token);
        return 0;
      };
      ASSERT_EQ(ARN_OK, arn_session_generate(session.get(), &generate, nullptr))
          << arn_session_last_error(session.get());
      EXPECT_EQ(golden.greedy, ids);
      arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
      ASSERT_EQ(ARN_OK, arn_session_stats(session.get(), &stats));
      EXPECT_GE(stats.guesses_proposed, least);
    }
  }
}

}  // namespace arn::test
