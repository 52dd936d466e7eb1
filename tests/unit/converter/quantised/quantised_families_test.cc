// Quantised checkpoints of every family: the bundles are those of the dequantised values.
#include <cmath>

#include "tests/support/tiny_quantised.h"
#include "tests/unit/converter/bundle_fixture.h"

namespace arn::convert {
namespace {

using test::TinyMethod;
using test::TinyTensors;
using ::testing::Contains;
using ::testing::HasSubstr;

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
                         int exponent, TinyTensors* tensors) {
    const uint64_t n = uint64_t{kExperts} * rows * cols;
    const std::vector<float> random = test::TinyValues(name, n, 3, 1.0f);
    std::vector<uint8_t> blocks(n / 2), scales(n / 32);
    std::vector<float> values(n);
    for (uint64_t i = 0; i < n / 32; ++i) {
      scales[i] = static_cast<uint8_t>(127 + exponent + (random[i * 32] > 0.0f ? 1 : 0));
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
    WriteModel(is_packed);
    Run(Options(DType::kF32));
    return test::ReadFile(folder_ / "out/model.arn");
  }

  // exponent: of the scales, without their bias.
  void WriteModel(bool is_packed, int exponent = -5) {
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
        AddExperts(layer + "mlp.experts.gate_up_proj", 2 * kFfn, kHidden, is_packed, exponent,
                   &tensors);
        AddExperts(layer + "mlp.experts.down_proj", kHidden, kFfn, is_packed, exponent, &tensors);
      }
    });
  }
};

TEST_F(Mxfp4Whole, Experts_GiveTheBundleOfTheirDequantisedValues) {
  EXPECT_TRUE(BundleOf(true) == BundleOf(false));
}

TEST_F(Mxfp4Whole, Experts_AreHeldBitForBit) {
  // The least and the largest of which half is an f16 number.
  for (const int exponent : {-5, -23, 15}) {
    WriteModel(/*is_packed=*/true, exponent);
    EXPECT_EQ(HeldWeights(Options(DType::kInt8)), DType::kInt4K);
    Run(Options(DType::kF32));
    const std::vector<std::vector<float>> wanted =
        OpenedBundle(Options(DType::kF32).output).all_values();
    ConvertOptions options = Options(DType::kInt4K);
    options.formats.embedding = options.formats.head = DType::kF32;
    Run(options);
    EXPECT_THAT(warnings_, testing::Not(testing::Contains(testing::HasSubstr("quantised again"))));
    const OpenedBundle bundle(options.output);
    ASSERT_EQ(wanted.size(), bundle.model().tensors()->size());
    uint32_t n_held = 0;
    for (uint32_t i = 0; i < wanted.size(); ++i) {
      const fbs::Tensor& tensor = *bundle.model().tensors()->Get(i);
      if (tensor.dtype() != fbs::DType::Fp4) continue;
      ++n_held;
      EXPECT_EQ(wanted[i], bundle.values(i)) << tensor.name()->str();
    }
    EXPECT_EQ(n_held, 2 * kExperts * Tiny().layers);
  }
  // Half of the larger scale is 2^16.
  WriteModel(/*is_packed=*/true, 16);
  EXPECT_NE(HeldWeights(Options(DType::kInt8)), DType::kInt4K);
}

}  // namespace
}  // namespace arn::convert
