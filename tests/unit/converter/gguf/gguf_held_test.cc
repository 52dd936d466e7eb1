// A file as Q4_K_M files are: its matrices run as they are stored.
#include <random>

#include "converter/gguf/block_formats.h"
#include "converter/run/verify.h"
#include "platform/base/arith.h"
#include "tests/unit/converter/gguf/gguf_fixture.h"

namespace arn::convert {
namespace {

using test::GgufWriter;
using test::TinyCheckpoint;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint32_t kQ8_0 = 8, kQ4_K = 12, kQ5_K = 13, kQ6_K = 14, kIq4Nl = 20, kIq3S = 21,
                   kIq4Xs = 23, kTq2_0 = 35, kMxfp4 = 39;

class HeldFile : public GgufTest {
 protected:
  HeldFile() { tiny_.layers = 3; }

  // Returns random blocks whose values are as large as those of a trained matrix.
  std::vector<uint8_t> Blocks(uint32_t type, uint64_t elements) {
    const BlockFormat& format = *FindBlockFormat(type == kQ8_0    ? "Q8_0"
                                                 : type == kQ4_K  ? "Q4_K"
                                                 : type == kQ5_K  ? "Q5_K"
                                                 : type == kQ6_K  ? "Q6_K"
                                                 : type == kIq4Nl ? "IQ4_NL"
                                                 : type == kIq4Xs ? "IQ4_XS"
                                                 : type == kTq2_0 ? "TQ2_0"
                                                 : type == kMxfp4 ? "MXFP4"
                                                                  : "IQ3_S");
    std::vector<uint8_t> bytes(elements / format.elements * format.bytes);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(rng_());
    std::uniform_real_distribution<float> scale(0.5f, 1.5f);
    for (size_t at = 0; at < bytes.size(); at += format.bytes) {
      uint8_t* block = bytes.data() + at;
      const auto put = [&](size_t offset, float value) {
        const uint16_t bits = F16FromF32(value);
        std::memcpy(block + offset, &bits, sizeof bits);
      };
      const float factor = scale(rng_);
      if (type == kQ8_0) put(0, 0.0008f * factor);
      if (type == kIq3S) put(0, 0.0008f * factor);
      for (size_t i = 0; type == kTq2_0 && i < 64; ++i) {
        // No pair of bits is 3.
        block[i] = static_cast<uint8_t>(block[i] & ~((block[i] & block[i] >> 1 & 0x55) * 3));
      }
      if (type == kMxfp4) block[0] = static_cast<uint8_t>(mxfp4_exponent_ + rng_() % 2);
      if (type == kTq2_0) put(64, 0.05f * factor);
      if (type == kQ6_K) put(208, 0.00004f * factor);
      if (type == kIq4Nl) put(0, 0.0008f * factor);
      if (type == kIq4Xs) put(0, 0.00004f * factor);
      if (type != kQ4_K && type != kQ5_K) continue;
      // Minimums are half of the steps, so that weights have both signs.
      const float step = type == kQ4_K ? 0.0003f : 0.00015f, least = 8 * 0.0003f;
      put(0, step * factor);
      put(2, least * factor);
      for (size_t j = 0; j < 4; ++j) {
        block[4 + j] = block[8 + j];
        block[12 + j] = static_cast<uint8_t>((block[12 + j] & 15) * 17);
      }
    }
    return bytes;
  }

  // other: the type of tensors whose names contain `part`. Of others: `most`, and `fine` of those
  // that such files store in more bits.
  void WriteFile(const std::string& part = "none", uint32_t other = kQ4_K, uint32_t most = kQ4_K,
                 uint32_t fine = kQ6_K) {
    GgufWriter writer;
    AddSizes("llama", tiny_, &writer);
    test::TinyTensors vectors;
    const test::TinyTensors tensors = test::MakeTinyTensors(tiny_);
    for (const auto& [name, tensor] : tensors) {
      if (tensor.shape.size() != 2) {
        vectors[name] = tensor;
        continue;
      }
      const auto has = [&name = name](const char* text) {
        return name.find(text) != std::string::npos;
      };
      const bool is_fine = has("embed") || has("layers.0.self_attn.v") || has("layers.0.mlp.down");
      const uint32_t type = has(part.c_str()) ? other : is_fine ? fine : most;
      writer.Tensor(GgufName(name, false), type, tensor.shape,
                    Blocks(type, tensor.shape[0] * tensor.shape[1]));
    }
    AddTensors(vectors, false, 0, tiny_.head_dim, &writer);
    WriteGguf(writer);
  }

  ConvertOptions Held() {
    ConvertOptions options = GgufOptions(DType::kInt4K);
    options.formats.embedding = options.formats.head = DType::kInt4K;
    return options;
  }

  // Converts to f32 and as the file is, and compares all values.
  void ExpectHeld() {
    Run(GgufOptions(DType::kF32));
    const std::vector<std::vector<float>> wanted =
        OpenedBundle(folder_ / "out/gguf.arn").all_values();
    Run(Held());
    EXPECT_THAT(warnings_, Not(Contains(HasSubstr("quantised again"))));
    const OpenedBundle bundle(folder_ / "out/gguf.arn");
    ASSERT_EQ(wanted.size(), bundle.model().tensors()->size());
    for (uint32_t i = 0; i < wanted.size(); ++i) {
      EXPECT_EQ(wanted[i], bundle.values(i)) << bundle.model().tensors()->Get(i)->name()->str();
    }
  }

  // Converts as the file is, and compares what runs with f32.
  VerifyResult VerifyHeld() {
    Run(Held());
    VerifyOptions verify;
    verify.convert = Held();
    verify.max_tokens = 64;
    verify.n_threads = 2;
    return Verify(verify, [](const std::string&, uint64_t, uint64_t) {});
  }

  // Expects what runs to differ from f32 by the rounding of activations only.
  void ExpectAboutF32() {
    const VerifyResult result = VerifyHeld();
    EXPECT_LT(result.mean_kl, 3e-3);
    EXPECT_GT(result.max_logit_error, 0.0);
  }

  fbs::DType TypeOf(const char* name) {
    const OpenedBundle bundle(folder_ / "out/gguf.arn");
    for (const fbs::Tensor* tensor : *bundle.model().tensors()) {
      if (tensor->name()->str() == name) return tensor->dtype();
    }
    ADD_FAILURE() << "no tensor " << name;
    return fbs::DType::F32;
  }

  TinyCheckpoint tiny_ = TinyOfWholeBlocks();
  std::mt19937 rng_{7};
  uint32_t mxfp4_exponent_ = 121;  // the least of the scales, plus 127
};

TEST_F(HeldFile, MixedTypes_AreHeldBitForBit) {
  WriteFile();
  EXPECT_TRUE(HoldsBlocks(Held()));
  ExpectHeld();
  EXPECT_EQ(fbs::DType::Int6K, TypeOf("embedding"));
  EXPECT_EQ(fbs::DType::Int6K, TypeOf("layers.0.qkv"));
  EXPECT_EQ(fbs::DType::Int6K, TypeOf("layers.0.down"));
  EXPECT_EQ(fbs::DType::Int4K, TypeOf("layers.0.gate_up"));
  EXPECT_EQ(fbs::DType::Int4K, TypeOf("layers.1.qkv"));
}

TEST_F(HeldFile, Q8_0_IsHeldBitForBit) {
  WriteFile(".", kQ8_0);
  ExpectHeld();
  EXPECT_EQ(fbs::DType::Int8K, TypeOf("embedding"));
  EXPECT_EQ(fbs::DType::Int8K, TypeOf("layers.0.qkv"));
}

TEST_F(HeldFile, Mxfp4_IsHeldBitForBit_UnlessAScaleIsNoF16Number) {
  // Half of the least and of the largest are the least f16 number and 2^15.
  for (const uint32_t exponent : {121u, 104u, 142u}) {
    mxfp4_exponent_ = exponent;
    WriteFile(".", kMxfp4);
    ExpectHeld();
    EXPECT_EQ(fbs::DType::Fp4, TypeOf("embedding"));
    EXPECT_EQ(fbs::DType::Fp4, TypeOf("layers.1.gate_up"));
  }
  for (const uint32_t exponent : {102u, 143u}) {
    mxfp4_exponent_ = exponent;
    WriteFile(".", kMxfp4);
    EXPECT_THAT(ErrorOfRun(Held()), AllOf(HasSubstr("model.gguf: tensor "), HasSubstr("MXFP4"),
                                          HasSubstr("no f16 number"), HasSubstr("--weights f32")));
  }
}

TEST_F(HeldFile, Mxfp4_RunsAsInF32) {
  WriteFile(".", kMxfp4);
  ExpectAboutF32();
}

// As files called IQ4_XS are: the embedding in Q6_K, v in Q5_K.
TEST_F(HeldFile, Iq4Xs_IsHeldBitForBit) {
  WriteFile("embed", kQ6_K, kIq4Xs, kQ5_K);
  ExpectHeld();
  EXPECT_EQ(fbs::DType::Int6K, TypeOf("embedding"));
  EXPECT_EQ(fbs::DType::Int8K256, TypeOf("layers.0.qkv"));
  EXPECT_EQ(fbs::DType::Int6K, TypeOf("layers.0.down"));
  EXPECT_EQ(fbs::DType::Iq4K, TypeOf("layers.0.gate_up"));
  EXPECT_EQ(fbs::DType::Iq4K, TypeOf("layers.1.qkv"));
}

TEST_F(HeldFile, Iq4Xs_RunsAsInF32) {
  WriteFile("embed", kQ6_K, kIq4Xs, kQ5_K);
  ExpectAboutF32();
}

TEST_F(HeldFile, Iq4Nl_IsHeldBitForBit) {
  WriteFile(".", kIq4Nl);
  ExpectHeld();
  EXPECT_EQ(fbs::DType::Iq4, TypeOf("embedding"));
  EXPECT_EQ(fbs::DType::Iq4, TypeOf("layers.0.qkv"));
}

TEST_F(HeldFile, Iq4Nl_RunsAsInF32) {
  WriteFile(".", kIq4Nl);
  ExpectAboutF32();
}

TEST_F(HeldFile, TernaryBlocks_AreHeldBitForBit) {
  WriteFile("mlp", kTq2_0);
  ExpectHeld();
  EXPECT_EQ(fbs::DType::Ternary, TypeOf("layers.0.down"));
  EXPECT_EQ(fbs::DType::Int6K, TypeOf("layers.0.qkv"));
}

// What is lost is the rounding of activations to int8.
TEST_F(HeldFile, MixedTypes_RunAsInF32) {
  WriteFile();
  const VerifyResult result = VerifyHeld();
  EXPECT_LT(result.mean_kl, 1e-3);
  EXPECT_GT(result.top1_agreement, 0.9);
  EXPECT_GT(result.max_logit_error, 0.0);
}

// Rounding again has to be asked for; the error says of what, and what holds it.
TEST_F(HeldFile, OtherTypes_NeedRequantise) {
  WriteFile();
  EXPECT_THAT(ErrorOfRun(GgufOptions(DType::kInt8)),
              AllOf(HasSubstr("model.gguf"), HasSubstr("token_embd.weight"), HasSubstr("type Q6_K"),
                    HasSubstr("--weights held"), HasSubstr("--requantise")));
  EXPECT_THAT(ErrorOfRun(GgufOptions(DType::kInt4)), HasSubstr("--requantise"));
  ConvertOptions options = GgufOptions(DType::kInt8);
  options.requantise = true;
  Run(options);
  EXPECT_THAT(warnings_, Contains(AllOf(HasSubstr("quantised again: "), HasSubstr("largest"))));
}

TEST_F(HeldFile, TypesThatNothingHolds_NeedRequantise) {
  WriteFile("layers.1.mlp.down", kIq3S);
  EXPECT_THAT(ErrorOfRun(Held()),
              AllOf(HasSubstr("blk.1.ffn_down.weight"), HasSubstr("type IQ3_S"),
                    HasSubstr("--weights f32, bf16 or f16"), HasSubstr("--requantise")));
  ConvertOptions options = Held();
  options.requantise = true;
  Run(options);
  EXPECT_THAT(warnings_, Contains(HasSubstr("quantised again: 1 matri")));
  EXPECT_EQ(fbs::DType::Int8, TypeOf("layers.1.down"));
  EXPECT_EQ(fbs::DType::Int6K, TypeOf("layers.0.down"));
}

}  // namespace
}  // namespace arn::convert
