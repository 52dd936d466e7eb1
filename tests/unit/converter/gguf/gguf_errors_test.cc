// GGUF files that cannot be converted are refused with the cause.
#include "tests/unit/converter/gguf/gguf_fixture.h"

namespace arn::convert {
namespace {

using test::GgufWriter;
using test::TinyCheckpoint;
using ::testing::AllOf;
using ::testing::HasSubstr;

class GgufErrorTest : public GgufTest {
 protected:
  // Returns the error for a small llama after `add` changed it.
  std::string With(const std::function<void(GgufWriter&)>& add) {
    const TinyCheckpoint tiny;
    GgufWriter writer;
    AddSizes("llama", tiny, &writer);
    AddTensors(test::MakeTinyTensors(tiny), false, 0, tiny.head_dim, &writer);
    add(writer);
    WriteGguf(writer);
    return GgufError();
  }
};

TEST_F(GgufErrorTest, WhatIsNotUnderstood_IsNamed) {
  EXPECT_THAT(With([](GgufWriter& w) { w.Uint("llama.attention.sliding_window", 512); }),
              AllOf(HasSubstr("model.gguf"), HasSubstr("llama.attention.sliding_window is 512")));
  EXPECT_THAT(With([](GgufWriter& w) { w.Float("llama.attention.clamp_kqv", 8); }),
              HasSubstr("llama.attention.clamp_kqv"));
  EXPECT_THAT(With([](GgufWriter& w) { w.Uint("llama.rope.dimension_count", 4); }),
              HasSubstr("llama.rope.dimension_count"));
  EXPECT_THAT(With([](GgufWriter& w) { w.String("llama.rope.scaling.type", "odd"); }),
              HasSubstr("llama.rope.scaling.type"));
  EXPECT_THAT(With([](GgufWriter& w) { w.Uint("split.count", 3); }), HasSubstr("one of 3 parts"));
  EXPECT_THAT(With([](GgufWriter& w) {
                w.Tensor("blk.0.odd.weight", test::kGgufF32, {1}, {0, 0, 0, 0});
              }),
              HasSubstr("blk.0.odd.weight"));
}

TEST_F(GgufErrorTest, TypesThatAreNotRead_AreNamed) {
  TinyCheckpoint tiny;
  tiny.hidden = 256;
  test::TinyTensors tensors = test::MakeTinyTensors(tiny);
  tensors.erase("model.embed_tokens.weight");
  GgufWriter writer;
  AddSizes("llama", tiny, &writer);
  AddTensors(tensors, false, 0, tiny.head_dim, &writer);
  constexpr uint32_t kQ8_K = 15;
  writer.Tensor("token_embd.weight", kQ8_K, {tiny.vocab, 256},
                std::vector<uint8_t>(tiny.vocab * 292));
  WriteGguf(writer);
  EXPECT_THAT(GgufError(), AllOf(HasSubstr("tensor token_embd.weight"), HasSubstr("found Q8_K"),
                                 HasSubstr("Q4_0")));
}

TEST_F(GgufErrorTest, OtherArchitectures_AreNamed) {
  GgufWriter writer;
  writer.String("general.architecture", "grok");
  writer.Tensor("token_embd.weight", test::kGgufF32, {1, 1}, {0, 0, 0, 0});
  WriteGguf(writer);
  EXPECT_THAT(GgufError(),
              AllOf(HasSubstr("grok is not supported"), HasSubstr("gemma3"), HasSubstr("llama")));
  WriteGguf(GgufWriter());
  EXPECT_THAT(GgufError(), HasSubstr("token_embd.weight"));
}

TEST_F(GgufErrorTest, MissingAndMisshapen_AreNamed) {
  TinyCheckpoint tiny;
  test::TinyTensors tensors = test::MakeTinyTensors(tiny);
  tensors.erase("model.layers.1.mlp.up_proj.weight");
  GgufWriter writer;
  AddSizes("llama", tiny, &writer);
  AddTensors(tensors, false, 0, tiny.head_dim, &writer);
  WriteGguf(writer);
  EXPECT_THAT(GgufError(), AllOf(HasSubstr("lacks 1 tensor"), HasSubstr("blk.1.ffn_up.weight")));
  GgufWriter other;
  tiny.ffn = 40;
  AddSizes("llama", tiny, &other);
  tiny.ffn = 48;
  AddTensors(test::MakeTinyTensors(tiny), false, 0, tiny.head_dim, &other);
  WriteGguf(other);
  EXPECT_THAT(GgufError(), AllOf(HasSubstr("blk.0.ffn_gate.weight"), HasSubstr("[40, 32]"),
                                 HasSubstr("[48, 32]")));
}

TEST_F(GgufErrorTest, OtherFiles_AreNoCheckpoints) {
  test::WriteFile(folder_ / "model.gguf", "not that");
  EXPECT_THAT(GgufError(), HasSubstr("not a GGUF file"));
  ConvertOptions options = GgufOptions(DType::kF32);
  options.config = folder_ / "config.json";
  EXPECT_THAT(ErrorOfRun(options), HasSubstr("a GGUF file has its own config"));
}

}  // namespace
}  // namespace arn::convert
