// Whole checkpoints: a quantised one gives the bundle of the checkpoint with its dequantised
// values, and the levels that int8 and int4 hold arrive as they are.
#include "converter/run/self_test.h"
#include "platform/base/arith.h"
#include "tests/support/tiny_quantised.h"
#include "tests/unit/converter/bundle_fixture.h"

namespace arn::convert {
namespace {

using test::TinyMethod;
using test::TinyTensor;
using test::TinyTensors;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class QuantisedWhole : public ConvertTest {
 protected:
  static test::TinyCheckpoint Tiny() {
    test::TinyCheckpoint tiny;
    tiny.architecture = "Qwen3ForCausalLM";
    tiny.model_type = "qwen3";
    tiny.qk_norm = true;
    tiny.hidden = 64;
    tiny.ffn = 96;
    tiny.max_context = 4096;
    return tiny;
  }

  // Writes the checkpoint quantised; keeps the packed tensors, and the dequantised ones.
  void WriteQuantised(TinyMethod method, const std::function<void(TinyTensors&)>& edit = {}) {
    test::TinyCheckpoint tiny = Tiny();
    tiny.config["quantization_config"] = test::TinyQuantisationConfig(method);
    WriteCheckpoint(tiny, [&](TinyTensors& tensors) {
      dense_ = test::QuantiseTiny(method, &tensors);
      if (edit) edit(tensors);
      packed_ = tensors;
    });
  }
  void WriteDense() {
    WriteCheckpoint(Tiny(), [&](TinyTensors& tensors) { tensors = dense_; });
  }
  std::vector<uint8_t> BundleOf(const ConvertOptions& options) {
    Run(options);
    return test::ReadFile(options.output);
  }

  // Returns the index of a tensor of the bundle.
  static uint32_t IndexOf(const OpenedBundle& bundle, const std::string& name) {
    const auto* tensors = bundle.model().tensors();
    for (uint32_t i = 0; i < tensors->size(); ++i) {
      if (tensors->Get(i)->name()->str() == name) return i;
    }
    ADD_FAILURE() << name;
    return 0;
  }

  std::vector<float> Dense(const std::string& name) const {
    const TinyTensor& tensor = dense_.at(name);
    std::vector<float> values(tensor.bytes.size() / 4);
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    return values;
  }

  TinyTensors packed_, dense_;
};

constexpr TinyMethod kAllMethods[] = {
    TinyMethod::kGptq,
    TinyMethod::kGptqActOrder,
    TinyMethod::kGptqHeld,
    TinyMethod::kAwq,
    TinyMethod::kCompressedInt4,
    TinyMethod::kCompressedInt8,
    TinyMethod::kCompressedFloat,
    TinyMethod::kFp8,
    TinyMethod::kBnbInt8,
    TinyMethod::kBnbNf4,
};

TEST_F(QuantisedWhole, EachMethod_GivesTheBundleOfItsDequantisedValues) {
  for (const TinyMethod method : kAllMethods) {
    SCOPED_TRACE(test::TinyQuantisationConfig(method).dump());
    WriteQuantised(method);
    for (const DType dtype : {DType::kF32, DType::kBf16}) {
      WriteQuantised(method);
      const std::vector<uint8_t> quantised = BundleOf(Options(dtype));
      EXPECT_THAT(warnings_, Contains(HasSubstr("14 matrices are read as method")));
      WriteDense();
      EXPECT_TRUE(quantised == BundleOf(Options(dtype)));
    }
  }
}

TEST_F(QuantisedWhole, EachMethod_Runs) {
  for (const TinyMethod method : kAllMethods) {
    SCOPED_TRACE(test::TinyQuantisationConfig(method).dump());
    WriteQuantised(method);
    ConvertOptions options = Options(DType::kF32);
    size_t n_tokens = 0;
    options.make_self_test = [&](const std::filesystem::path& bundle) {
      SelfTestData data = MakeSelfTest(bundle, 1);
      n_tokens = data.ids.size();
      return data;
    };
    Run(options);
    EXPECT_GT(n_tokens, 0u);
  }
}

TEST_F(QuantisedWhole, Int4ThatIsHeld_KeepsLevelsAndScales) {
  for (const TinyMethod method : {TinyMethod::kCompressedInt4, TinyMethod::kGptqHeld}) {
    WriteQuantised(method);
    ConvertOptions options = Options(DType::kInt4);
    options.formats.embedding = options.formats.head = DType::kInt8;
    Run(options);
    EXPECT_THAT(warnings_, testing::Not(Contains(HasSubstr("quantised again"))));
    const OpenedBundle bundle(options.output);
    for (const auto& [name, stored] :
         {std::pair<const char*, const char*>{"layers.1.down", "model.layers.1.mlp.down_proj"},
          {"layers.0.attention_out", "model.layers.0.self_attn.o_proj"}}) {
      const uint32_t index = IndexOf(bundle, name);
      EXPECT_EQ(bundle.values(index), Dense(std::string(stored) + ".weight"));
      if (method != TinyMethod::kCompressedInt4) continue;
      const Weight weight = bundle.weight(index);
      const TinyTensor& words = packed_.at(std::string(stored) + ".weight_packed");
      const TinyTensor& scales = packed_.at(std::string(stored) + ".weight_scale");
      const uint32_t blocks = weight.cols / 32;
      ASSERT_EQ(scales.bytes.size(), size_t{weight.rows} * blocks * 2);
      std::vector<int8_t> levels(weight.cols);
      std::vector<float> wide(blocks);
      for (uint32_t r = 0; r < weight.rows; ++r) {
        UnpackRowInt4(weight, r, levels.data(), wide.data());
        for (uint32_t c = 0; c < weight.cols; ++c) {
          const uint8_t byte = words.bytes[(r * weight.cols + c) / 2];
          ASSERT_EQ(levels[c] + 8, c % 2 == 0 ? byte & 15 : byte >> 4);
        }
        for (uint32_t b = 0; b < blocks; ++b) {
          uint16_t bits = 0;
          std::memcpy(&bits, scales.bytes.data() + 2 * (r * blocks + b), 2);
          ASSERT_EQ(Bf16FromF32(wide[b]), bits);
        }
      }
    }
  }
}

TEST_F(QuantisedWhole, Int8ThatIsHeld_KeepsLevelsAndScales) {
  for (const TinyMethod method : {TinyMethod::kCompressedInt8, TinyMethod::kBnbInt8}) {
    WriteQuantised(method);
    const ConvertOptions options = Options(DType::kInt8);
    Run(options);
    EXPECT_THAT(warnings_, testing::Not(Contains(HasSubstr("quantised again"))));
    const OpenedBundle bundle(options.output);
    const std::string base = "model.layers.1.mlp.down_proj.";
    const Weight weight = bundle.weight(IndexOf(bundle, "layers.1.down"));
    const TinyTensor& codes = packed_.at(base + "weight");
    const bool is_bnb = method == TinyMethod::kBnbInt8;
    const TinyTensor& scales = packed_.at(base + (is_bnb ? "SCB" : "weight_scale"));
    std::vector<int8_t> levels(weight.cols);
    float scale = 0.0f;
    for (uint32_t r = 0; r < weight.rows; ++r) {
      UnpackRowInt8(weight, r, levels.data(), &scale);
      ASSERT_EQ(std::memcmp(levels.data(), codes.bytes.data() + r * weight.cols, weight.cols), 0);
      if (is_bnb) {
        float largest = 0.0f;
        std::memcpy(&largest, scales.bytes.data() + 4 * r, 4);
        ASSERT_EQ(scale, largest * 7.874015718698502e-3f);
      } else {
        uint16_t bits = 0;
        std::memcpy(&bits, scales.bytes.data() + 2 * r, 2);
        ASSERT_EQ(scale, F32FromBf16(bits));
      }
    }
  }
}

// The type of the bundle decides whether levels are held: without --requantise the first tensor is
// named, with it the bundle is written and the error is said.
TEST_F(QuantisedWhole, WhatIsNotHeld_NeedsRequantise) {
  struct Row {
    TinyMethod method;
    DType dtype;
    const char* reason;
    double most_percent;  // of the largest of a row
  };
  for (const Row& row :
       {Row{TinyMethod::kGptq, DType::kInt4, "its levels or groups are others", 15},
        Row{TinyMethod::kGptqActOrder, DType::kInt8, "levels or groups", 0.5},
        Row{TinyMethod::kAwq, DType::kInt8, "its levels or groups", 0.5},
        Row{TinyMethod::kFp8, DType::kInt8, "its levels or groups", 0.5},
        Row{TinyMethod::kBnbNf4, DType::kInt4, "its levels or groups", 15},
        Row{TinyMethod::kCompressedInt8, DType::kInt4, "its levels or groups", 15}}) {
    WriteQuantised(row.method);
    ConvertOptions options = Options(row.dtype);
    options.formats.embedding = options.formats.head = DType::kInt8;
    EXPECT_THAT(ErrorOfRun(options), AllOf(HasSubstr("model.layers.0.self_attn.q_proj.weight"),
                                           HasSubstr(row.reason), HasSubstr("--requantise"),
                                           HasSubstr("bf16"), HasSubstr("8 matrices in all")));
    EXPECT_THAT(OutputFiles(), IsEmpty());
    options.requantise = true;
    Run(options);
    ASSERT_THAT(warnings_,
                Contains(HasSubstr("quantised again: 8 matrices, the largest error is ")));
    const std::string& said = warnings_.back();
    const double percent = std::stod(said.substr(said.find("error is ") + 9));
    EXPECT_GT(percent, 0.0) << said;
    EXPECT_LT(percent, row.most_percent) << said;
    std::filesystem::remove(options.output);
  }
}

// Scales that bfloat16 rounds: the levels stay.
TEST_F(QuantisedWhole, Int4WithOtherScales_KeepsTheLevels) {
  WriteQuantised(TinyMethod::kGptqHeld, [](TinyTensors& tensors) {
    for (auto& [name, tensor] : tensors) {
      if (name.find(".scales") == std::string::npos) continue;
      for (size_t i = 0; i < tensor.bytes.size(); i += 2) tensor.bytes[i] |= 1;  // of float16
    }
  });
  ConvertOptions options = Options(DType::kInt4);
  options.formats.embedding = options.formats.head = DType::kInt8;
  EXPECT_THAT(ErrorOfRun(options), HasSubstr("its scales are not bfloat16 numbers"));
  options.requantise = true;
  Run(options);
  EXPECT_THAT(warnings_, Contains(HasSubstr("quantised again: 8 matrices")));
  const OpenedBundle bundle(options.output);
  const Weight weight = bundle.weight(IndexOf(bundle, "layers.1.down"));
  const TinyTensor& words = packed_.at("model.layers.1.mlp.down_proj.qweight");
  std::vector<int8_t> levels(weight.cols);
  std::vector<float> scales(weight.cols / 32);
  for (uint32_t r = 0; r < weight.rows; ++r) {
    UnpackRowInt4(weight, r, levels.data(), scales.data());
    for (uint32_t c = 0; c < weight.cols; ++c) {
      uint32_t word = 0;
      std::memcpy(&word, words.bytes.data() + 4 * (c / 8 * weight.rows + r), 4);
      ASSERT_EQ(levels[c] + 8, static_cast<int>(word >> c % 8 * 4 & 15));
    }
  }
}

// A level of -128 becomes -127, and nothing else changes.
TEST_F(QuantisedWhole, Int8WithLevelMinus128_ChangesIt) {
  const std::string name = "model.layers.0.mlp.down_proj.weight";
  WriteQuantised(TinyMethod::kCompressedInt8,
                 [&](TinyTensors& tensors) { tensors[name].bytes[5] = 128; });
  ConvertOptions options = Options(DType::kInt8);
  EXPECT_THAT(ErrorOfRun(options), AllOf(HasSubstr(name), HasSubstr("it has levels of -128"),
                                         HasSubstr("1 matrix in all")));
  options.requantise = true;
  Run(options);
  EXPECT_THAT(warnings_, Contains(HasSubstr("largest error is 0.781 %")));
  const OpenedBundle bundle(options.output);
  const Weight weight = bundle.weight(IndexOf(bundle, "layers.0.down"));
  std::vector<int8_t> levels(weight.cols);
  float scale = 0.0f;
  UnpackRowInt8(weight, 0, levels.data(), &scale);
  EXPECT_EQ(levels[5], -127);
  levels[5] = -128;
  EXPECT_EQ(std::memcmp(levels.data(), packed_.at(name).bytes.data(), weight.cols), 0);
}

// Biases of zeros beside packed weights belong to no model, others do.
TEST_F(QuantisedWhole, BiasesOfZeros_AreLeftOut) {
  const auto with_bias = [](uint8_t byte) {
    return [byte](TinyTensors& tensors) {
      tensors["model.layers.0.mlp.down_proj.bias"] = {"F16", {64}, std::vector<uint8_t>(128, byte)};
    };
  };
  WriteQuantised(TinyMethod::kGptq, with_bias(0));
  Run(Options(DType::kF32));
  WriteQuantised(TinyMethod::kGptq, with_bias(1));
  EXPECT_THAT(ErrorOfRun(Options(DType::kF32)), HasSubstr("does not account for"));
}

// Every family that has a golden: matrices that are cut, reordered, transposed, scaled or put
// together on their way into the bundle arrive as dense ones do.
class QuantisedFamilies : public ConvertTest {
 protected:
  // Returns the golden's config and tensors, or no tensors if they are not float32.
  static std::pair<nlohmann::json, TinyTensors> Load(const std::filesystem::path& path) {
    const std::vector<uint8_t> file = test::ReadFile(path);
    const nlohmann::json golden = nlohmann::json::parse(file.begin(), file.end());
    if (!golden.contains("tensors") || golden.value("dtype", "") != "F32") return {};
    TinyTensors tensors;
    for (const auto& [name, shape] : golden.at("tensors").items()) {
      uint64_t n = 1;
      for (const uint64_t d : shape) n *= d;
      const std::vector<float> values =
          test::TinyValues(name, n, golden.at("base_seed"), golden.at("amplitude"));
      tensors[name] = {"F32", shape.get<std::vector<uint64_t>>(),
                       test::EncodeFloats(values, "F32")};
    }
    return {golden.at("config"), tensors};
  }

  std::vector<uint8_t> BundleOf(const nlohmann::json& config, const TinyTensors& tensors) {
    const std::filesystem::path model = folder_ / "model";
    std::filesystem::create_directories(model);
    std::filesystem::create_directories(folder_ / "out");
    test::WriteFile(model / "config.json", config.dump());
    const std::vector<uint8_t> file = test::EncodeSafetensors(tensors);
    test::WriteFile(model / "model.safetensors", file.data(), file.size());
    Run(Options(DType::kF32));
    return test::ReadFile(folder_ / "out/model.arn");
  }

  static bool IsLinear(const std::string& name) {
    for (const char* other : {"embed", "wte", "wpe", "lm_head", "norm", "conv", "router"}) {
      if (name.find(other) != std::string::npos) return false;
    }
    return name.size() > 7 && name.compare(name.size() - 7, 7, ".weight") == 0;
  }

  // Exchanges rows and columns.
  static void Turn(test::TinyTensor* tensor) {
    const uint64_t rows = tensor->shape[0], cols = tensor->shape[1];
    std::vector<uint8_t> turned(tensor->bytes.size());
    for (uint64_t i = 0; i < rows * cols; ++i) {
      std::memcpy(turned.data() + 4 * (i % cols * rows + i / cols), tensor->bytes.data() + 4 * i,
                  4);
    }
    tensor->bytes = turned;
    std::swap(tensor->shape[0], tensor->shape[1]);
  }
};

TEST_F(QuantisedFamilies, EachGivesTheBundleOfItsDequantisedValues) {
  size_t n_families = 0;
  for (const auto& file : std::filesystem::directory_iterator(ARN_GOLDEN_DIR)) {
    if (file.path().extension() != ".json") continue;
    SCOPED_TRACE(file.path().filename().string());
    auto [config, tensors] = Load(file.path());
    if (tensors.empty()) continue;
    // GPT-2's matrices are [inputs, outputs]; quantisers store [outputs, inputs].
    const bool is_turned = config.at("architectures")[0] == "GPT2LMHeadModel";
    const auto turn_all = [&](TinyTensors* all) {
      for (auto& [name, tensor] : *all) {
        if (is_turned && IsLinear(name) && tensor.shape.size() == 2) Turn(&tensor);
      }
    };
    turn_all(&tensors);
    TinyTensors dense = test::QuantiseTiny(TinyMethod::kCompressedInt8, &tensors, IsLinear);
    turn_all(&dense);
    const std::vector<uint8_t> wanted = BundleOf(config, dense);
    config["quantization_config"] = test::TinyQuantisationConfig(TinyMethod::kCompressedInt8);
    EXPECT_TRUE(wanted == BundleOf(config, tensors));
    EXPECT_THAT(warnings_, Contains(HasSubstr("matrices are read as method compressed")));
    EXPECT_THAT(warnings_, testing::Not(Contains(HasSubstr(": 0 matrices"))));
    ++n_families;
  }
  EXPECT_GT(n_families, 80u);
}

// gpt-oss: the experts of a layer are packed together, outputs before inputs, which its dense
// checkpoints have the other way round.
class Mxfp4Whole : public ConvertTest {
 protected:
  static constexpr uint32_t kExperts = 3, kHidden = 64, kFfn = 32;

  static test::TinyCheckpoint Tiny() {
    test::TinyCheckpoint tiny;
    tiny.architecture = "GptOssForCausalLM";
    tiny.model_type = "gpt_oss";
    tiny.hidden = kHidden;
    tiny.ffn = kFfn;
    tiny.qkv_bias = tiny.o_bias = true;
    tiny.config = {{"num_local_experts", kExperts},
                   {"num_experts_per_tok", 2},
                   {"attention_bias", true},
                   {"sliding_window", 9},
                   {"hidden_act", "silu"}};
    return tiny;
  }

  static float Value(uint32_t code, uint8_t scale) {
    constexpr float kValues[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
    const float value = kValues[code & 7] * std::ldexp(1.0f, scale - 127);
    return (code & 8) != 0 ? -value : value;
  }

  // Adds random blocks, or the values that they have, as [experts, cols, rows].
  static void AddExperts(const std::string& name, uint32_t rows, uint32_t cols, bool is_packed,
                         TinyTensors* tensors) {
    const uint64_t n = uint64_t{kExperts} * rows * cols;
    const std::vector<float> random = test::TinyValues(name, n, 3, 1.0f);
    std::vector<uint8_t> blocks(n / 2), scales(n / 32);
    std::vector<float> values(n);
    for (uint64_t i = 0; i < n / 32; ++i) {
      scales[i] = static_cast<uint8_t>(122 + (random[i * 32] > 0.0f ? 1 : 0));
    }
    for (uint64_t i = 0; i < n; ++i) {
      const auto code = static_cast<uint32_t>((random[i] + 1.0f) * 7.999f);
      blocks[i / 2] = static_cast<uint8_t>(blocks[i / 2] | code << (i % 2 * 4));
      const uint64_t expert = i / (uint64_t{rows} * cols), row = i / cols % rows, col = i % cols;
      values[(expert * cols + col) * rows + row] = Value(code, scales[i / 32]);
    }
    if (is_packed) {
      (*tensors)[name + "_blocks"] = {"U8", {kExperts, rows, cols / 32, 16}, blocks};
      (*tensors)[name + "_scales"] = {"U8", {kExperts, rows, cols / 32}, scales};
    } else {
      (*tensors)[name] = {"F32", {kExperts, cols, rows}, test::EncodeFloats(values, "F32")};
    }
  }

  std::vector<uint8_t> BundleOf(bool is_packed) {
    test::TinyCheckpoint tiny = Tiny();
    if (is_packed) {
      tiny.config["quantization_config"] = {
          {"quant_method", "mxfp4"}, {"modules_to_not_convert", {"model.layers.*.mlp.router"}}};
    }
    WriteCheckpoint(tiny, [&](TinyTensors& tensors) {
      for (uint32_t i = 0; i < tiny.layers; ++i) {
        const std::string layer = "model.layers." + std::to_string(i) + ".";
        for (const char* name : {"gate_proj", "up_proj", "down_proj"}) {
          tensors.erase(layer + "mlp." + name + ".weight");
        }
        const auto add = [&](const std::string& name, std::vector<uint64_t> shape) {
          uint64_t n = 1;
          for (const uint64_t d : shape) n *= d;
          tensors[layer + name] = {
              "F32", shape, test::EncodeFloats(test::TinyValues(layer + name, n, 1, 0.1f), "F32")};
        };
        add("self_attn.sinks", {tiny.heads});
        add("mlp.router.weight", {kExperts, kHidden});
        add("mlp.router.bias", {kExperts});
        add("mlp.experts.gate_up_proj_bias", {kExperts, 2 * kFfn});
        add("mlp.experts.down_proj_bias", {kExperts, kHidden});
        AddExperts(layer + "mlp.experts.gate_up_proj", 2 * kFfn, kHidden, is_packed, &tensors);
        AddExperts(layer + "mlp.experts.down_proj", kHidden, kFfn, is_packed, &tensors);
      }
    });
    Run(Options(DType::kF32));
    return test::ReadFile(folder_ / "out/model.arn");
  }
};

TEST_F(Mxfp4Whole, Experts_GiveTheBundleOfTheirDequantisedValues) {
  EXPECT_TRUE(BundleOf(true) == BundleOf(false));
}

}  // namespace
}  // namespace arn::convert
