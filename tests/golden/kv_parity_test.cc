// The KV cache of a session equals transformers' after the same tokens, and cached decoding equals
// decoding without a cache.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "nlohmann/json.hpp"
#include "tests/golden/cache_goldens.h"
#include "tests/golden/golden_case.h"

namespace arn::test {
namespace {

using nlohmann::json;

constexpr double kKvTolerance = 1e-4;
// Rounding of reordered sums, relative to the largest logit. Post-norms rescale their input and
// enlarge it most: 2.8e-6 measured with them, 7e-7 without.
constexpr double kUncachedTolerance = 3.5e-6;

arn_session_options Options(uint32_t backend, uint32_t chunk, uint32_t page_tokens) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.backend = backend;
  options.kv_type = ARN_KV_F32;
  options.prefill_chunk = chunk;
  options.kv_page_tokens = page_tokens;
  options.n_threads = 2;
  return options;
}

// K and V of one layer, read back as [n_kv_heads, n, head_dim] from position `first` on.
struct LayerKv {
  uint32_t first = 0, n = 0, head_dim = 0;
  std::vector<float> keys, values;

  const float* Row(bool is_keys, uint32_t head, uint32_t position) const {
    return (is_keys ? keys : values).data() + (size_t{head} * n + position - first) * head_dim;
  }
};

void ReadLayer(arn_session* session, uint32_t layer, LayerKv* out) {
  arn_kv_layer_info info = ARN_KV_LAYER_INFO_INIT;
  ASSERT_EQ(ARN_OK, arn_session_kv_layer(session, layer, &info));
  EXPECT_EQ(layer, info.kv_layer);
  out->first = info.first_position;
  out->n = arn_session_length(session) - info.first_position;
  out->head_dim = info.head_dim;
  out->keys.assign(size_t{info.n_kv_heads} * out->n * info.head_dim, NAN);
  out->values = out->keys;
  ASSERT_EQ(ARN_OK, arn_session_read_kv(session, layer, out->first, out->n, out->keys.data(),
                                        out->values.data()))
      << arn_session_last_error(session);
}

// Compares the positions that the layer still holds with the stored columns. Returns the largest
// error.
double CompareLayer(const json& golden, uint32_t layer, const LayerKv& found) {
  const std::vector<uint32_t> positions = golden["positions"];
  const std::vector<uint32_t> shape = golden["shape"];  // layers, heads, positions, columns
  const uint32_t step = golden["step"];
  double worst = 0;
  for (const bool is_keys : {true, false}) {
    const std::vector<float> wanted = DecodeFloats(golden[is_keys ? "keys" : "values"]);
    EXPECT_EQ(size_t{shape[0]} * shape[1] * shape[2] * shape[3], wanted.size());
    for (uint32_t head = 0; head < shape[1]; ++head) {
      for (uint32_t i = 0; i < shape[2]; ++i) {
        if (positions[i] < found.first) continue;
        const float* row = found.Row(is_keys, head, positions[i]);
        for (uint32_t c = 0; c < shape[3]; ++c) {
          const size_t at = ((size_t{layer} * shape[1] + head) * shape[2] + i) * shape[3] + c;
          const double error = std::abs(static_cast<double>(row[c * step] - wanted[at]));
          if (!(error <= worst)) worst = error;
        }
      }
    }
  }
  return worst;
}

// Positions outside the window are dropped: reading them fails and writes nothing.
void ExpectDropped(arn_session* session, uint32_t layer, uint32_t position) {
  float untouched = 7.0f;
  EXPECT_EQ(ARN_BAD_STATE,
            arn_session_read_kv(session, layer, position, 1, &untouched, &untouched));
  EXPECT_EQ(7.0f, untouched);
}

// Raises *worst to the largest error.
void ExpectCaches(arn_session* session, const json& golden, double* worst) {
  const uint32_t n_layers = golden["shape"][0];
  const uint32_t length = arn_session_length(session);
  for (uint32_t layer = 0; layer < n_layers; ++layer) {
    SCOPED_TRACE(testing::Message() << "layer " << layer);
    LayerKv found;
    ASSERT_NO_FATAL_FAILURE(ReadLayer(session, layer, &found));
    EXPECT_EQ(golden["head_dim"], found.head_dim);
    const double error = CompareLayer(golden, layer, found);
    EXPECT_LT(error, kKvTolerance);
    *worst = std::max(*worst, error);
    if (found.first > 0) ExpectDropped(session, layer, found.first - 1);
    // Each cache layer of transformers must hold some of the compared positions.
    for (const auto& [name, layers] : golden["caches"].items()) {
      EXPECT_LE(found.first, layers[layer][1]) << name << " " << layers[layer][0];
      EXPECT_EQ(length, layers[layer][2]) << name << " " << layers[layer][0];
    }
  }
}

void ExpectCachesOf(const arn_model* model, const json& golden) {
  const std::vector<int32_t> prompt = golden["prompt"], rest = golden["rest"];
  double worst = 0;
  for (const uint32_t backend : {ARN_BACKEND_CPU, ARN_BACKEND_REFERENCE}) {
    for (const uint32_t page_tokens : {8u, 32u}) {
      for (const uint32_t chunk : {7u, 64u}) {
        SCOPED_TRACE(testing::Message() << "backend " << backend << ", pages of " << page_tokens
                                        << ", chunks of " << chunk);
        const SessionPtr session = NewSession(model, Options(backend, chunk, page_tokens));
        ASSERT_NE(nullptr, session);
        ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data(), prompt.size()));
        for (const int32_t id : rest) {
          ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), &id, 1));
        }
        ASSERT_NO_FATAL_FAILURE(ExpectCaches(session.get(), golden, &worst));
      }
    }
  }
  testing::Test::RecordProperty("worst_error_e9", std::to_string(std::lround(worst * 1e9)));
}

const json& CaseOf(const json& cases, const std::string& name) {
  for (const json& c : cases) {
    if (c["checkpoint"] == name) return c;
  }
  throw std::runtime_error("data/cache has no " + name);
}

class SeededKvTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    ARN_NEEDS_CONVERTER();
    golden_ = LoadGolden(GetParam());
    ASSERT_TRUE(ConvertGolden(golden_, ConfigStyle::kTransformers5, folder_ / "checkpoint",
                              folder_ / "model.arn", {"--weights", "f32"}));
    model_ = OpenModel(folder_ / "model.arn");
    ASSERT_NE(nullptr, model_);
  }

  TempFolder folder_;
  GoldenCase golden_;
  ModelPtr model_;
};

// Returns true if the first layer keeps a recurrent state instead of KV.
bool HasStates(const json& config) {
  return config.contains("conv_kernel") || config.contains("conv_L_cache");
}

// Returns true if some layers have linear attention. make_cache_goldens.py has no caches of such
// models, which hold states too.
bool HasLinearAttention(const json& config) {
  return config.contains("linear_conv_kernel_dim") || config.contains("linear_key_head_dim") ||
         config.contains("mamba_d_conv");
}

// Returns true if the first layer keeps keys and values, alone or beside a state.
bool BeginsWithKeys(const json& config) {
  return config.contains("mamba_d_ssm") ||
         (config.contains("layer_types") && config.at("layer_types")[0] == "full_attention");
}

void ExpectKeys(const arn_model* model) {
  const SessionPtr session = NewSession(model, Options(ARN_BACKEND_CPU, 64, 8));
  const int32_t id = 1;
  arn_kv_layer_info info = ARN_KV_LAYER_INFO_INIT;
  ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), &id, 1));
  EXPECT_EQ(ARN_OK, arn_session_kv_layer(session.get(), 0, &info))
      << arn_session_last_error(session.get());
}

void ExpectNoKeys(const arn_model* model) {
  const SessionPtr session = NewSession(model, Options(ARN_BACKEND_CPU, 64, 8));
  const int32_t id = 1;
  float untouched = 7.0f;
  arn_kv_layer_info info = ARN_KV_LAYER_INFO_INIT;
  ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), &id, 1));
  EXPECT_EQ(ARN_UNSUPPORTED, arn_session_kv_layer(session.get(), 0, &info));
  EXPECT_EQ(ARN_UNSUPPORTED, arn_session_read_kv(session.get(), 0, 0, 1, &untouched, nullptr));
  EXPECT_STREQ("layer 0 has a recurrent state, not keys and values",
               arn_session_last_error(session.get()));
  EXPECT_EQ(7.0f, untouched);
}

// Layers of two shapes, of which transformers keeps no stack: which layer's keys and values each
// uses, and their head size.
void ExpectOwners(const arn_model* model, const json& config) {
  const SessionPtr session = NewSession(model, Options(ARN_BACKEND_CPU, 64, 8));
  const int32_t id = 1;
  ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), &id, 1));
  const uint32_t n_layers = config["num_hidden_layers"];
  const uint32_t n_shared = config.value("num_kv_shared_layers", 0u);
  const json& types = config["layer_types"];
  for (uint32_t layer = 0; layer < n_layers; ++layer) {
    SCOPED_TRACE(testing::Message() << "layer " << layer);
    uint32_t owner = layer;
    while (owner >= n_layers - n_shared || types[owner] != types[layer]) --owner;
    arn_kv_layer_info info = ARN_KV_LAYER_INFO_INIT;
    ASSERT_EQ(ARN_OK, arn_session_kv_layer(session.get(), layer, &info));
    EXPECT_EQ(owner, info.kv_layer);
    const bool is_global = types[layer] == "full_attention";
    EXPECT_EQ(config[is_global ? "global_head_dim" : "head_dim"], info.head_dim);
  }
}

// One key per token, which is the value too; transformers caches what is made of it.
void ExpectLatents(const arn_model* model, const json& config) {
  const SessionPtr session = NewSession(model, Options(ARN_BACKEND_CPU, 64, 8));
  const int32_t ids[] = {1, 7, 3};
  ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), ids, std::size(ids)));
  arn_kv_layer_info info = ARN_KV_LAYER_INFO_INIT;
  ASSERT_EQ(ARN_OK, arn_session_kv_layer(session.get(), 0, &info));
  const uint32_t latent = config["kv_lora_rank"], rotated = config["qk_rope_head_dim"];
  EXPECT_EQ(1u, info.n_kv_heads);
  EXPECT_EQ(latent + rotated, info.head_dim);
  LayerKv found;
  ASSERT_NO_FATAL_FAILURE(ReadLayer(session.get(), 0, &found));
  EXPECT_EQ(found.keys, found.values);
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
  arn_session_options options = Options(ARN_BACKEND_CPU, 64, 8);
  ASSERT_EQ(ARN_OK, arn_session_plan(model, &options, nullptr, 0, &plan));
  const uint32_t n_layers = config["num_hidden_layers"];
  // A page's block of a layer is rounded up to 64 bytes.
  EXPECT_GE(plan.kv_bytes_per_token, n_layers * info.head_dim * sizeof(float));
  EXPECT_LE(plan.kv_bytes_per_token, n_layers * (info.head_dim * sizeof(float) + 8));
}

TEST_P(SeededKvTest, KeysAndValues_AreThoseOfTheCaches) {
  if (HasStates(golden_.config)) return ExpectNoKeys(model_.get());
  if (golden_.config.contains("global_head_dim")) {
    return ExpectOwners(model_.get(), golden_.config);
  }
  if (golden_.config.contains("kv_lora_rank")) {
    return ExpectLatents(model_.get(), golden_.config);
  }
  if (HasLinearAttention(golden_.config)) {
    return BeginsWithKeys(golden_.config) ? ExpectKeys(model_.get()) : ExpectNoKeys(model_.get());
  }
  const json cases = LoadCacheGoldens("kv");
  ExpectCachesOf(model_.get(), CaseOf(cases, GetParam()));
}

TEST_P(SeededKvTest, PrefillAndDecode_GiveTheLogitsOfNoCache) {
  const std::vector<int32_t> ids = golden_.all_ids();
  const uint32_t vocab = golden_.vocab();
  double worst = 0;
  for (const uint32_t backend : {ARN_BACKEND_CPU, ARN_BACKEND_REFERENCE}) {
    arn_session_options options = Options(backend, 64, 8);
    options.all_logits = 1;
    options.no_cache = 1;
    const SessionPtr uncached = NewSession(model_.get(), options);
    const std::vector<float> wanted = AllLogits(uncached.get(), vocab, 64, ids);
    ASSERT_EQ(ids.size() * vocab, wanted.size());
    for (const uint32_t chunk : {5u, 16u, 31u}) {
      SCOPED_TRACE(testing::Message() << "backend " << backend << ", chunks of " << chunk);
      options.no_cache = 0;
      options.prefill_chunk = chunk;
      const SessionPtr session = NewSession(model_.get(), options);
      std::vector<float> found = AllLogits(session.get(), vocab, chunk, golden_.prompt);
      for (const int32_t id : golden_.greedy) {
        const float* row = nullptr;
        ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), &id, 1));
        ASSERT_EQ(ARN_OK, arn_session_logits(session.get(), &row));
        found.insert(found.end(), row, row + vocab);
      }
      ASSERT_EQ(wanted.size(), found.size());
      double largest = 0;
      for (size_t i = 0; i < wanted.size(); ++i) {
        const double error = std::abs(static_cast<double>(found[i] - wanted[i]));
        if (!(error <= worst)) worst = error;
        largest = std::max(largest, std::abs(static_cast<double>(wanted[i])));
      }
      EXPECT_LT(worst, kUncachedTolerance * largest);
    }
  }
  RecordProperty("worst_error_e9", std::to_string(std::lround(worst * 1e9)));
}

INSTANTIATE_TEST_SUITE_P(Cases, SeededKvTest, testing::ValuesIn(GoldenNames()),
                         [](const testing::TestParamInfo<std::string>& p) { return p.param; });

class ReferenceKvTest : public testing::TestWithParam<const char*> {};

TEST_P(ReferenceKvTest, KeysAndValues_AreThoseOfTheCaches) {
  ARN_NEEDS_CONVERTER();
  ARN_NEEDS_SHARED_DIR();
  const TempFolder folder;
  ASSERT_TRUE(Convert(SharedDir() / "reference/tiny" / GetParam(), folder / "model.arn",
                      {"--weights", "f32"}));
  const ModelPtr model = OpenModel(folder / "model.arn");
  ASSERT_NE(nullptr, model);
  const json cases = LoadCacheGoldens("kv_references");
  ExpectCachesOf(model.get(), CaseOf(cases, GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Cases, ReferenceKvTest,
                         testing::Values("llama_tied", "llama_untied", "llama_bias_hd",
                                         "llama3_rope", "llama_yarn", "mistral", "qwen2", "qwen3",
                                         "gemma3", "gpt_neox"),
                         [](const testing::TestParamInfo<const char*>& p) {
                           return std::string(p.param);
                         });

}  // namespace
}  // namespace arn::test
