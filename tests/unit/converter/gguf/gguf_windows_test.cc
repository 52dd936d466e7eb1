// Windows and patterns that GGUF files do not store: assumptions give a warning, --window sets
// them.
#include "converter/gguf/gguf_model.h"
#include "tests/unit/converter/gguf/gguf_fixture.h"

namespace arn::convert {
namespace {

using test::GgufWriter;
using test::TinyCheckpoint;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class GgufWindowTest : public GgufTest {
 protected:
  // Writes a tiny model as a file of `arch`.
  void Write(const std::string& arch, const TinyCheckpoint& tiny,
             const std::function<void(GgufWriter&)>& add = {}) {
    GgufWriter writer;
    AddSizes(arch, tiny, &writer);
    if (add) add(writer);
    AddTensors(test::MakeTinyTensors(tiny), false, 0, arch == "llama" ? tiny.head_dim : 0, &writer);
    WriteGguf(writer);
  }
  // Returns the warnings from reading the file.
  std::vector<std::string> Warnings(std::optional<uint32_t> window = std::nullopt) {
    warnings_.clear();
    ReadGgufWeights(folder_ / "model.gguf", &warnings_, window);
    return warnings_;
  }
};

TEST_F(GgufWindowTest, ALlamaThatMayBeAMistral_IsTold) {
  const TinyCheckpoint tiny;
  Write("llama", tiny);
  EXPECT_THAT(Warnings(), ElementsAre(AllOf(HasSubstr("model.gguf"), HasSubstr("llama"),
                                            HasSubstr("without a window"), HasSubstr("--window"))));
  EXPECT_THAT(Warnings(0), IsEmpty());
  EXPECT_THAT(Warnings(16), IsEmpty());
  // No Mistral model has Llama 3's RoPE scaling.
  Write("llama", tiny, [](GgufWriter& w) {
    w.Tensor("rope_freqs.weight", test::kGgufF32, {4}, test::EncodeFloats({1, 1, 2, 8}, "F32"));
  });
  EXPECT_THAT(Warnings(), IsEmpty());
}

TEST_F(GgufWindowTest, PublishedSizes_AreKnown) {
  TinyCheckpoint tiny;
  tiny.layers = 30;
  tiny.hidden = 576;
  Write("llama", tiny);
  EXPECT_THAT(Warnings(), IsEmpty());
}

TEST_F(GgufWindowTest, GivenWindow_IsThatOfTheFolder) {
  TinyCheckpoint tiny;
  tiny.architecture = "MistralForCausalLM";
  tiny.model_type = "mistral";
  tiny.config = {{"sliding_window", 16}};
  WriteCheckpoint(tiny);
  Write("llama", tiny);
  ConvertOptions options = GgufOptions(DType::kF32);
  options.window = 16;
  Run(options);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("no tokenizer:")));
  Run(Options(DType::kF32));
  EXPECT_TRUE(test::ReadFile(folder_ / "out/model.arn") ==
              test::ReadFile(folder_ / "out/gguf.arn"));
  options = Options(DType::kF32);
  options.window = 16;
  EXPECT_THAT(ErrorOfRun(options), HasSubstr("--window is for GGUF files"));
}

TEST_F(GgufWindowTest, WindowsThatAFileSays_AreNotOverridden) {
  const TinyCheckpoint tiny;
  Write("qwen3", tiny);
  EXPECT_THAT(test::ErrorOf([&] { Warnings(16); }),
              AllOf(HasSubstr("--window 16"), HasSubstr("qwen3")));
  Write("starcoder2", tiny,
        [](GgufWriter& w) { w.Uint("starcoder2.attention.sliding_window", 8); });
  EXPECT_THAT(
      test::ErrorOf([&] { Warnings(16); }),
      AllOf(HasSubstr("--window 16"), HasSubstr("starcoder2.attention.sliding_window is 8")));
}

TEST_F(GgufWindowTest, StarCoder2_IsTold) {
  const TinyCheckpoint tiny;
  const auto write = [&](bool says_window) {
    Write("starcoder2", tiny, [&](GgufWriter& w) {
      w.Float("starcoder2.attention.layer_norm_epsilon", 1e-5f);
      if (says_window) w.Uint("starcoder2.attention.sliding_window", 8);
    });
  };
  const auto windows = [&](std::optional<uint32_t> window) {
    warnings_.clear();
    return ReadGgufWeights(folder_ / "model.gguf", &warnings_, window).spec.kinds.at(0).window;
  };
  write(false);
  EXPECT_EQ(0u, windows(std::nullopt));
  EXPECT_THAT(warnings_, ElementsAre(AllOf(HasSubstr("starcoder2"), HasSubstr("--window 4096"))));
  EXPECT_EQ(64u, windows(64));
  EXPECT_THAT(warnings_, IsEmpty());
  write(true);
  EXPECT_EQ(8u, windows(std::nullopt));
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(GgufWindowTest, Gemma3OfAnOddSize_IsTold) {
  TinyCheckpoint tiny;
  tiny.qk_norm = true;
  const auto write = [&] {
    Write("gemma3", tiny, [](GgufWriter& w) { w.Uint("gemma3.attention.sliding_window", 16); });
  };
  write();
  EXPECT_THAT(Warnings(), ElementsAre(AllOf(HasSubstr("gemma3"), HasSubstr("every sixth layer"))));
  tiny.layers = 18;
  tiny.hidden = 640;
  write();
  EXPECT_THAT(Warnings(), IsEmpty());
}

}  // namespace
}  // namespace arn::convert
