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
    tiny.shards = 3;  // with the parts of a matrix in several files
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
    TinyMethod::kAwqHeld,
    TinyMethod::kCompressedInt4,
    TinyMethod::kCompressedInt8,
    TinyMethod::kCompressedFloat,
    TinyMethod::kFp8,
    TinyMethod::kBitNet,
    TinyMethod::kBnbInt8,
    TinyMethod::kBnbNf4,
    TinyMethod::kHqq,
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
       {Row{TinyMethod::kGptq, DType::kInt4, "its levels or groups are not ones of that type", 15},
        Row{TinyMethod::kGptqActOrder, DType::kInt8, "levels or groups", 0.5},
        Row{TinyMethod::kAwq, DType::kInt8, "its levels or groups", 0.5},
        Row{TinyMethod::kFp8, DType::kInt8, "its levels or groups", 0.5},
        Row{TinyMethod::kHqq, DType::kInt8, "its levels or groups", 0.5},
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

TEST_F(QuantisedWhole, TheTypeThatHoldsAll_IsFound) {
  const auto held = [&](TinyMethod method) {
    WriteQuantised(method);
    return HeldWeights(Options(DType::kInt8));
  };
  EXPECT_EQ(held(TinyMethod::kCompressedInt4), DType::kInt4);
  EXPECT_EQ(held(TinyMethod::kGptqHeld), DType::kInt4);
  EXPECT_EQ(held(TinyMethod::kCompressedInt8), DType::kInt8);
  EXPECT_EQ(held(TinyMethod::kBnbInt8), DType::kInt8);
  EXPECT_EQ(held(TinyMethod::kAwq), std::nullopt);
  EXPECT_EQ(held(TinyMethod::kAwqHeld), DType::kInt4K);
  EXPECT_EQ(held(TinyMethod::kFp8), std::nullopt);
  WriteDense();
  EXPECT_EQ(HeldWeights(Options(DType::kInt8)), std::nullopt);
}

// GPTQModel's `dynamic` overrides bits and groups by module: the tensors say them too.
TEST_F(QuantisedWhole, DynamicBits_AreThoseOfTheTensors) {
  test::TinyCheckpoint tiny = Tiny();
  nlohmann::json keys = test::TinyQuantisationConfig(TinyMethod::kGptq);
  keys["bits"] = 8;
  keys["group_size"] = 64;
  keys["dynamic"] = {{"+:.*_proj", {{"bits", 4}, {"group_size", 16}}}};
  tiny.config["quantization_config"] = keys;
  WriteCheckpoint(tiny, [&](TinyTensors& t) { dense_ = QuantiseTiny(TinyMethod::kGptq, &t); });
  const std::vector<uint8_t> quantised = BundleOf(Options(DType::kF32));
  WriteDense();
  EXPECT_TRUE(quantised == BundleOf(Options(DType::kF32)));
}

// Scales of float16, zeros of every group: nothing is rounded.
TEST_F(QuantisedWhole, Int4K_HoldsScalesAndZeros) {
  const auto widen = [](TinyTensors& tensors) {
    for (auto& [name, tensor] : tensors) {
      if (name.find(".scales") == std::string::npos) continue;
      for (size_t i = 0; i < tensor.bytes.size(); i += 2) tensor.bytes[i] |= 1;  // of float16
    }
  };
  for (const TinyMethod method : {TinyMethod::kGptqHeld, TinyMethod::kAwqHeld}) {
    WriteQuantised(method, widen);
    EXPECT_EQ(HeldWeights(Options(DType::kInt8)), DType::kInt4K);
    Run(Options(DType::kF32));
    const std::vector<std::vector<float>> wanted =
        OpenedBundle(Options(DType::kF32).output).all_values();
    ConvertOptions options = Options(DType::kInt4K);
    options.formats.embedding = options.formats.head = DType::kF32;
    Run(options);
    EXPECT_THAT(warnings_, testing::Not(Contains(HasSubstr("quantised again"))));
    const OpenedBundle bundle(options.output);
    uint32_t n_held = 0;
    for (uint32_t i = 0; i < wanted.size(); ++i) {
      n_held += HasMinimums(static_cast<DType>(bundle.model().tensors()->Get(i)->dtype()));
      EXPECT_EQ(wanted[i], bundle.values(i)) << bundle.model().tensors()->Get(i)->name()->str();
    }
    EXPECT_EQ(n_held, 8u);
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

}  // namespace
}  // namespace arn::convert
