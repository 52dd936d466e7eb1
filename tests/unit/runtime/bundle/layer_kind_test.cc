// What follows from the fields of a layer's kind, and fields of a bundle that are absent.
#include <gtest/gtest.h>

#include "runtime/bundle/layer_fields.h"
#include "runtime/bundle/optional_fields.h"

namespace arn {
namespace {

TEST(LayerKind, WidthsAndState_OfEachMixer) {
  LayerKind kind;
  kind.mixer_width = 12;
  kind.conv_taps = 4;
  EXPECT_TRUE(kind.has_attention());
  EXPECT_FALSE(kind.has_state());
  EXPECT_EQ(0u, kind.conv_floats());
  kind.mixer = Mixer::kConv;  // [b | c | x]
  EXPECT_FALSE(kind.has_attention());
  EXPECT_EQ(36u, kind.mixer_in_width());
  EXPECT_EQ(12u, kind.mixer_out_width());
  EXPECT_EQ(36u, kind.conv_floats());
  EXPECT_EQ(36u, kind.state_floats());
  kind.mixer = Mixer::kScan;  // [z | x]
  kind.scan_states = 5;
  EXPECT_EQ(24u, kind.mixer_in_width());
  EXPECT_EQ(36u + 60u, kind.state_floats());
  kind.is_hybrid = true;
  EXPECT_TRUE(kind.has_attention());
  kind = LayerKind();
  kind.mixer = Mixer::kLinearAttention;
  kind.conv_taps = 4;
  kind.linear_heads = 6;
  kind.linear_value_dim = 8;
  kind.linear_key_heads = 3;
  kind.linear_key_dim = 16;
  kind.has_delta_rule = true;
  EXPECT_EQ(48u, kind.mixer_out_width());
  EXPECT_EQ(48u + 96u, kind.conv_width());
  EXPECT_EQ(48u + 12u + 144u, kind.mixer_in_width());
  kind.has_delta_rule = false;
  EXPECT_EQ(48u + 6u + 144u, kind.mixer_in_width());
  EXPECT_EQ(3u * 144 + 6 * 16 * 8, kind.state_floats());
  kind.mixer = Mixer::kNone;
  EXPECT_FALSE(kind.has_state());
  EXPECT_FALSE(kind.has_attention());
}

TEST(LayerKind, StepsOfTheDecoder) {
  LayerKind kind;
  EXPECT_FALSE(kind.has_low_rank_residual_or_threshold());
  kind.laurel_rank = 4;
  EXPECT_TRUE(kind.has_low_rank_residual_or_threshold());
  kind = LayerKind();
  kind.attention_sum_factor = 0.5f;
  EXPECT_TRUE(kind.has_low_rank_residual_or_threshold());
  kind = LayerKind();
  kind.has_gate_threshold = true;
  EXPECT_TRUE(kind.has_low_rank_residual_or_threshold());
}

TEST(OptionalFields, AbsentOnes_AreEmpty) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(builder.CreateString("abc"));
  const auto* text = flatbuffers::GetRoot<flatbuffers::String>(builder.GetBufferPointer());
  EXPECT_EQ(3u, CountOf(text));
  EXPECT_EQ(3u, ViewOf(text).size);
  const flatbuffers::String* none = nullptr;
  EXPECT_EQ(0u, CountOf(none));
  EXPECT_EQ(0u, ViewOf(none).size);
}

}  // namespace
}  // namespace arn
