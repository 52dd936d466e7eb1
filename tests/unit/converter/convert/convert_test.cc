// The contents of a bundle against its checkpoint.
#include "converter/convert/convert.h"

#include <cmath>
#include <cstring>

#include "nlohmann/json.hpp"
#include "tests/unit/converter/bundle_fixture.h"

namespace arn::convert {
namespace {

using test::TinyCheckpoint;
using test::TinyValues;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<float> Source(const TinyCheckpoint& tiny, const std::string& name, uint64_t count) {
  return TinyValues(name, count, tiny.base_seed, tiny.amplitude);
}

// Concatenates the rows of several tensors.
std::vector<float> Stacked(const TinyCheckpoint& tiny,
                           const std::vector<std::pair<std::string, uint64_t>>& parts) {
  std::vector<float> all;
  for (const auto& [name, count] : parts) {
    const std::vector<float> values = Source(tiny, name, count);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

class EveryTarget : public ConvertTest, public ::testing::WithParamInterface<const char*> {};

std::vector<const char*> TargetNames() {
  std::vector<const char*> names;
  for (const PackTarget& target : PackTargets()) names.push_back(target.name);
  return names;
}

// F64 checkpoints give the same bundle as their values in F32.
TEST_F(ConvertTest, F64_EveryValueIsTheNearestFloat) {
  const TinyCheckpoint tiny;
  WriteCheckpoint(tiny);
  Run(Options(DType::kF32));
  const std::vector<uint8_t> floats = test::ReadFile(folder_ / "out/model.arn");
  WriteCheckpoint(tiny, [](test::TinyTensors& tensors) {
    for (auto& [name, tensor] : tensors) {
      tensor.dtype = "F64";
      std::vector<uint8_t> bytes(2 * tensor.bytes.size());
      for (size_t i = 0; i < tensor.bytes.size() / sizeof(float); ++i) {
        float value = 0;
        std::memcpy(&value, tensor.bytes.data() + i * sizeof(float), sizeof(float));
        // Less than half the distance to the next float.
        const double wide = static_cast<double>(value) * (1 + 1e-9);
        std::memcpy(bytes.data() + i * sizeof(double), &wide, sizeof(double));
      }
      tensor.bytes = std::move(bytes);
    }
  });
  Run(Options(DType::kF32));
  EXPECT_EQ(floats, test::ReadFile(folder_ / "out/model.arn"));
}

TEST_P(EveryTarget, F32_EveryValueIsTheCheckpoints) {
  TinyCheckpoint tiny;
  tiny.qkv_bias = tiny.o_bias = tiny.mlp_bias = true;
  tiny.config = {{"attention_bias", true}, {"mlp_bias", true}};
  tiny.hidden = 40;  // not a multiple of 32 or of a panel
  tiny.ffn = 52;
  tiny.vocab = 67;
  tiny.tied = false;
  WriteCheckpoint(tiny);
  Run(Options(DType::kF32, GetParam()));
  const OpenedBundle bundle(folder_ / "out/model.arn");
  const fbs::Model& model = bundle.model();

  const uint64_t h = tiny.hidden, q = 32, kv = 16, f = tiny.ffn;
  EXPECT_EQ(bundle.values(model.embedding()), Source(tiny, "model.embed_tokens.weight", 67 * h));
  EXPECT_EQ(bundle.values(model.head()), Source(tiny, "lm_head.weight", 67 * h));
  EXPECT_EQ(bundle.values(model.final_norm()), Source(tiny, "model.norm.weight", h));
  ASSERT_EQ(model.layers()->size(), 2u);
  for (uint32_t i = 0; i < 2; ++i) {
    const fbs::Layer& layer = *model.layers()->Get(i);
    const std::string p = "model.layers." + std::to_string(i) + ".";
    const std::string a = p + "self_attn.", m = p + "mlp.";
    EXPECT_EQ(bundle.values(layer.attention_norm()), Source(tiny, p + "input_layernorm.weight", h));
    EXPECT_EQ(bundle.values(layer.ffn_norm()),
              Source(tiny, p + "post_attention_layernorm.weight", h));
    EXPECT_EQ(bundle.values(layer.qkv()), Stacked(tiny, {{a + "q_proj.weight", q * h},
                                                         {a + "k_proj.weight", kv * h},
                                                         {a + "v_proj.weight", kv * h}}));
    EXPECT_EQ(
        bundle.bias(layer.qkv()),
        Stacked(tiny, {{a + "q_proj.bias", q}, {a + "k_proj.bias", kv}, {a + "v_proj.bias", kv}}));
    EXPECT_EQ(bundle.values(layer.attention_out()), Source(tiny, a + "o_proj.weight", h * q));
    EXPECT_EQ(bundle.bias(layer.attention_out()), Source(tiny, a + "o_proj.bias", h));
    EXPECT_EQ(bundle.values(layer.gate_up()),
              Stacked(tiny, {{m + "gate_proj.weight", f * h}, {m + "up_proj.weight", f * h}}));
    EXPECT_EQ(bundle.bias(layer.gate_up()),
              Stacked(tiny, {{m + "gate_proj.bias", f}, {m + "up_proj.bias", f}}));
    EXPECT_EQ(bundle.values(layer.down()), Source(tiny, m + "down_proj.weight", h * f));
    EXPECT_EQ(bundle.bias(layer.down()), Source(tiny, m + "down_proj.bias", h));
    EXPECT_EQ(layer.q_norm(), kNoTensor);
  }
  EXPECT_STREQ(bundle.index().target()->c_str(), GetParam());
}

// Returns the largest error relative to the row's largest value.
float WorstRowError(const std::vector<float>& a, const std::vector<float>& b, size_t cols) {
  float worst = 0;
  for (size_t row = 0; row * cols < a.size(); ++row) {
    float largest = 0, error = 0;
    for (size_t i = row * cols; i < (row + 1) * cols; ++i) {
      largest = std::max(largest, std::fabs(b[i]));
      error = std::max(error, std::fabs(a[i] - b[i]));
    }
    worst = std::max(worst, error / largest);
  }
  return worst;
}

TEST_P(EveryTarget, SmallerFormats_AreNearTheCheckpoint) {
  TinyCheckpoint tiny;
  tiny.hidden = 40;
  tiny.tied = false;
  tiny.qkv_bias = true;
  tiny.config = {{"architectures", {"Qwen2ForCausalLM"}}};
  WriteCheckpoint(tiny);
  const std::vector<float> head =
      Source(tiny, "lm_head.weight", uint64_t{tiny.vocab} * tiny.hidden);
  const std::vector<float> bias = Stacked(tiny, {{"model.layers.1.self_attn.q_proj.bias", 32},
                                                 {"model.layers.1.self_attn.k_proj.bias", 16},
                                                 {"model.layers.1.self_attn.v_proj.bias", 16}});
  const std::pair<DType, float> cases[] = {{DType::kF16, 0.0005f},
                                           {DType::kBf16, 0.004f},
                                           {DType::kInt8, 0.5f / 127 * 1.001f},
                                           {DType::kInt4, 0.2f}};
  for (const auto& [dtype, tolerance] : cases) {
    SCOPED_TRACE(DTypeName(dtype));
    Run(Options(dtype, GetParam()));
    const OpenedBundle bundle(folder_ / "out/model.arn");
    EXPECT_EQ(bundle.weight(bundle.model().head()).dtype, dtype);
    const float error = WorstRowError(bundle.values(bundle.model().head()), head, tiny.hidden);
    EXPECT_LE(error, tolerance);
    EXPECT_GT(error, tolerance / 20);
    EXPECT_EQ(bundle.bias(bundle.model().layers()->Get(1)->qkv()), bias);
    EXPECT_EQ(bundle.values(bundle.model().final_norm()),
              Source(tiny, "model.norm.weight", tiny.hidden));
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, EveryTarget, ::testing::ValuesIn(TargetNames()),
                         [](const auto& target) {
                           std::string name = target.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_F(ConvertTest, Index_SaysWhatTheConfigSays) {
  TinyCheckpoint tiny;
  tiny.architecture = "Qwen3ForCausalLM";
  tiny.qk_norm = true;
  tiny.head_dim = 16;
  tiny.config = {{"use_sliding_window", true}, {"sliding_window", 16}, {"max_window_layers", 1}};
  tiny.generation = {{"eos_token_id", {2, 5}},
                     {"bos_token_id", {1, 7}},
                     {"do_sample", true},
                     {"temperature", 0.7},
                     {"top_k", 40},
                     {"top_p", 0.95}};
  WriteCheckpoint(tiny);
  const ConvertResult result = Run(Options(DType::kF32));
  const OpenedBundle bundle(folder_ / "out/model.arn");
  const fbs::Model& model = bundle.model();
  EXPECT_EQ(model.hidden(), 32u);
  EXPECT_EQ(model.vocab(), 64u);
  EXPECT_EQ(model.max_context(), 128u);
  EXPECT_FLOAT_EQ(model.final_norm_epsilon(), 1e-5f);
  EXPECT_STREQ(model.architecture()->c_str(), "Qwen3ForCausalLM");
  EXPECT_STREQ(model.source_name()->c_str(), "model");
  ASSERT_EQ(model.kinds()->size(), 2u);
  EXPECT_EQ(model.layers()->Get(0)->kind(), 0u);
  EXPECT_EQ(model.layers()->Get(1)->kind(), 1u);
  EXPECT_EQ(model.kinds()->Get(0)->window(), 0u);
  EXPECT_EQ(model.kinds()->Get(1)->window(), 16u);
  const fbs::LayerKind& kind = *model.kinds()->Get(0);
  EXPECT_EQ(kind.n_heads(), 4u);
  EXPECT_EQ(kind.n_kv_heads(), 2u);
  EXPECT_EQ(kind.head_dim(), 16u);
  EXPECT_EQ(kind.attention_scale(), 0.25f);
  EXPECT_TRUE(kind.has_qk_norm());
  ASSERT_EQ(model.ropes()->size(), 1u);
  EXPECT_EQ(model.ropes()->Get(0)->rotary_dim(), 16u);
  ASSERT_EQ(model.ropes()->Get(0)->inv_freq()->size(), 8u);
  EXPECT_FLOAT_EQ(model.ropes()->Get(0)->inv_freq()->Get(4), 0.01f);
  EXPECT_EQ(bundle.values(model.layers()->Get(0)->q_norm()),
            Source(tiny, "model.layers.0.self_attn.q_norm.weight", 16));
  EXPECT_EQ(bundle.values(model.layers()->Get(1)->k_norm()),
            Source(tiny, "model.layers.1.self_attn.k_norm.weight", 16));
  const fbs::Generation& generation = *bundle.index().generation();
  EXPECT_THAT(std::vector<uint32_t>(generation.eos_ids()->begin(), generation.eos_ids()->end()),
              ElementsAre(2, 5));
  EXPECT_EQ(generation.bos_id(), 1);
  EXPECT_THAT(std::vector<uint32_t>(generation.bos_ids()->begin(), generation.bos_ids()->end()),
              ElementsAre(1, 7));
  EXPECT_EQ(generation.pad_id(), -1);
  EXPECT_TRUE(generation.do_sample());
  EXPECT_FLOAT_EQ(generation.temperature(), 0.7f);
  EXPECT_EQ(generation.top_k(), 40u);
  EXPECT_FLOAT_EQ(generation.top_p(), 0.95f);
  EXPECT_EQ(bundle.index().pack_version(), kPackVersion);
  EXPECT_EQ(bundle.index().tokenizer(), nullptr);
  EXPECT_FALSE(result.has_tokenizer);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("token ids only")));
  uint64_t elements = 0;
  for (const auto& [name, tensor] : test::MakeTinyTensors(tiny))
    elements += tensor.bytes.size() / 4;
  EXPECT_EQ(result.n_parameters, elements);
}

TEST_F(ConvertTest, SourceTypes_GiveTheSameBundleWhereExact) {
  // Values that are exact in all three types.
  const auto edit = [](const std::string& dtype) {
    return [dtype](test::TinyTensors& tensors) {
      for (auto& [name, tensor] : tensors) {
        const size_t count = tensor.bytes.size() / 4;
        std::vector<float> values = TinyValues(name, count, 1, 1.0f);
        for (float& v : values) v = std::round(v * 64.0f) / 64.0f;
        tensor = {dtype, tensor.shape, test::EncodeFloats(values, dtype)};
      }
    };
  };
  std::vector<uint8_t> first;
  for (const char* dtype : {"F32", "F16", "BF16"}) {
    WriteCheckpoint({}, edit(dtype));
    Run(Options(DType::kInt8));
    const std::vector<uint8_t> bytes = test::ReadFile(folder_ / "out/model.arn");
    if (first.empty()) first = bytes;
    EXPECT_EQ(bytes, first) << dtype;
  }
}

TEST_F(ConvertTest, Sharded_GivesTheSameBundle) {
  TinyCheckpoint tiny;
  WriteCheckpoint(tiny);
  Run(Options(DType::kInt4));
  const std::vector<uint8_t> whole = test::ReadFile(folder_ / "out/model.arn");
  tiny.shards = 3;
  WriteCheckpoint(tiny);
  Run(Options(DType::kInt4));
  EXPECT_EQ(test::ReadFile(folder_ / "out/model.arn"), whole);
}

TEST_F(ConvertTest, AnyThreadCount_SameBytes) {
  TinyCheckpoint tiny;
  tiny.hidden = 256;
  tiny.vocab = 9000;  // several slabs
  tiny.tied = true;
  WriteCheckpoint(tiny);
  for (const char* target : {"portable", "x86-avx2", "vulkan"}) {
    std::vector<uint8_t> first;
    for (const uint32_t threads : {1, 2, 5}) {
      ConvertOptions options = Options(DType::kInt4, target);
      options.n_threads = threads;
      Run(options);
      const std::vector<uint8_t> bytes = test::ReadFile(folder_ / "out/model.arn");
      if (first.empty()) first = bytes;
      EXPECT_EQ(bytes, first) << target << " " << threads;
    }
    // The slabs are in order.
    const OpenedBundle bundle(folder_ / "out/model.arn");
    const std::vector<float> source = Source(tiny, "model.embed_tokens.weight", 9000 * 256);
    EXPECT_LT(WorstRowError(bundle.values(bundle.model().embedding()), source, 256), 0.2f);
  }
}

TEST_F(ConvertTest, Tied_SharesOneTensorWhenTheFormatIsTheSame) {
  WriteCheckpoint({});
  Run(Options(DType::kInt8, "x86-avx2"));
  {
    const OpenedBundle bundle(folder_ / "out/model.arn");
    EXPECT_EQ(bundle.model().embedding(), bundle.model().head());
    EXPECT_EQ(bundle.weight(bundle.model().head()).layout, FindPackTarget("x86-avx2")->int8);
  }
  ConvertOptions options = Options(DType::kInt8, "x86-avx2");
  options.formats.head = DType::kInt4;
  Run(options);
  const OpenedBundle bundle(folder_ / "out/model.arn");
  EXPECT_NE(bundle.model().embedding(), bundle.model().head());
  EXPECT_EQ(bundle.weight(bundle.model().embedding()).layout.order, WeightOrder::kRows);
  EXPECT_EQ(bundle.weight(bundle.model().head()).dtype, DType::kInt4);
}

TEST_F(ConvertTest, TiedWithItsOwnHead_IsJudgedByTheValues) {
  const auto add_head = [](test::TinyTensors& tensors) {
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"];
  };
  WriteCheckpoint({}, add_head);
  Run(Options(DType::kF32));
  EXPECT_EQ(OpenedBundle(folder_ / "out/model.arn").model().head(),
            OpenedBundle(folder_ / "out/model.arn").model().embedding());

  WriteCheckpoint({}, [&](test::TinyTensors& tensors) {
    add_head(tensors);
    tensors["lm_head.weight"].bytes[2] ^= 1;
  });
  Run(Options(DType::kF32));
  EXPECT_THAT(warnings_,
              ::testing::Contains(HasSubstr("lm_head.weight differs from the embedding")));
  EXPECT_NE(OpenedBundle(folder_ / "out/model.arn").model().head(),
            OpenedBundle(folder_ / "out/model.arn").model().embedding());

  // Only the head is stored, and it is the embedding too.
  WriteCheckpoint({}, [&](test::TinyTensors& tensors) {
    add_head(tensors);
    tensors.erase("model.embed_tokens.weight");
  });
  Run(Options(DType::kF32));
  const OpenedBundle bundle(folder_ / "out/model.arn");
  EXPECT_EQ(bundle.model().head(), bundle.model().embedding());
  EXPECT_EQ(bundle.values(bundle.model().head()), Source({}, "model.embed_tokens.weight", 64 * 32));
}

TEST_F(ConvertTest, OtherConfigFile_IsRead) {
  WriteCheckpoint({});
  nlohmann::json config = test::TinyConfig({});
  config["max_position_embeddings"] = 77;
  test::WriteFile(folder_ / "other.json", config.dump());
  ConvertOptions options = Options(DType::kF32);
  options.config = folder_ / "other.json";
  options.source_name = "a name";
  Run(options);
  const OpenedBundle bundle(folder_ / "out/model.arn");
  EXPECT_EQ(bundle.model().max_context(), 77u);
  EXPECT_STREQ(bundle.model().source_name()->c_str(), "a name");
}

TEST_F(ConvertTest, IdsOutsideVocabulary_AreLeftOutWithAWarning) {
  TinyCheckpoint tiny;
  tiny.generation = {{"eos_token_id", {2, 64}}, {"bos_token_id", nullptr}, {"pad_token_id", -1}};
  WriteCheckpoint(tiny);
  Run(Options(DType::kF32));
  const OpenedBundle bundle(folder_ / "out/model.arn");
  ASSERT_EQ(bundle.index().generation()->eos_ids()->size(), 1u);
  EXPECT_EQ(bundle.index().generation()->bos_id(), 1);  // from config.json
  EXPECT_EQ(bundle.index().generation()->pad_id(), -1);
  EXPECT_THAT(warnings_,
              ElementsAre(HasSubstr("eos_token_id 64 is outside"), HasSubstr("token ids only")));
}

// The checkpoint in models/.
TEST_F(ConvertTest, TokenizerOnly_HoldsJustTheTokenizer) {
  std::filesystem::create_directories(folder_ / "out");
  std::filesystem::create_directories(folder_ / "tokenizer");
  std::filesystem::copy(std::filesystem::path(ARN_FABLE_DIR) / "tokenizer.json",
                        folder_ / "tokenizer" / "tokenizer.json");
  ConvertOptions options = Options(DType::kInt8);
  options.folder = folder_ / "tokenizer";
  options.tokenizer_only = true;
  EXPECT_TRUE(Run(options).has_tokenizer);
  EXPECT_THAT(warnings_, IsEmpty());
  const OpenedBundle bundle(folder_ / "out/model.arn");
  EXPECT_EQ(bundle.index().model(), nullptr);
  ASSERT_NE(bundle.index().tokenizer(), nullptr);
  EXPECT_EQ(bundle.index().tokenizer()->n_tokens(), 1024u);
  EXPECT_EQ(bundle.index().tokenizer()->token_offsets()->bytes(), 1025u * 4);
}

TEST_F(ConvertTest, WholeCheckpoint_HasModelTokenizerAndTemplate) {
  std::filesystem::create_directories(folder_ / "out");
  ConvertOptions options = Options(DType::kInt8);
  options.folder = ARN_FABLE_DIR;
  const ConvertResult result = Run(options);
  EXPECT_TRUE(result.has_tokenizer);
  EXPECT_THAT(warnings_, IsEmpty());
  EXPECT_GT(result.n_parameters, 2'500'000u);
  const OpenedBundle bundle(folder_ / "out/model.arn");
  EXPECT_EQ(bundle.model().layers()->size(), 6u);
  EXPECT_STREQ(bundle.model().source_name()->c_str(), "fable-2m");
  EXPECT_THAT(bundle.index().chat_template()->str(), HasSubstr("<|im_start|>"));
  const auto& eos = *bundle.index().generation()->eos_ids();
  EXPECT_THAT(std::vector<uint32_t>(eos.begin(), eos.end()), ElementsAre(1023, 1021));
  EXPECT_EQ(bundle.index().generation()->bos_id(), -1);
}

TEST_F(ConvertTest, IdsThatNoConfigGives_ComeFromTheTokenizer) {
  TinyCheckpoint tiny;
  tiny.vocab = 1024;
  tiny.generation = nullptr;
  tiny.config = {{"bos_token_id", nullptr}, {"eos_token_id", nullptr}};
  WriteCheckpoint(tiny);
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) {
    std::filesystem::copy(std::filesystem::path(ARN_FABLE_DIR) / name, folder_ / "model" / name);
  }
  Run(Options(DType::kInt8));
  const OpenedBundle bundle(folder_ / "out/model.arn");
  ASSERT_EQ(bundle.index().generation()->eos_ids()->size(), 1u);
  EXPECT_EQ(bundle.index().generation()->eos_ids()->Get(0), 1023u);  // <|im_end|>
  EXPECT_EQ(bundle.index().generation()->pad_id(), 1021);
}

TEST_F(ConvertTest, MoreTokensThanRows_GivesAWarning) {
  WriteCheckpoint({});  // 64 rows
  std::filesystem::copy(std::filesystem::path(ARN_FABLE_DIR) / "tokenizer.json",
                        folder_ / "model" / "tokenizer.json");
  Run(Options(DType::kInt8));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("ids up to 1023, the model's vocabulary has 64")));
}

}  // namespace
}  // namespace arn::convert
