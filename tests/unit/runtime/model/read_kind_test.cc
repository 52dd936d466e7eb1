// Layer types as the bundle stores them: every field arrives, and each wrong one is refused by
// name.
#include "runtime/model/read_kind.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <utility>

#include "flatbuffers/flatbuffers.h"

namespace arn {
namespace {

RopeKind Rope(uint32_t rotary_dim) {
  RopeKind rope;
  rope.rotary_dim = rotary_dim;
  return rope;
}

// Writes the fields and reads them back.
Status ReadBack(const LayerKind& kind, LayerKindSpec* out, Diag* diag) {
  flatbuffers::FlatBufferBuilder builder;
  fbs::LayerKindBuilder b(builder);
#define ARN_ADD(type, name, initial, low, high) \
  b.add_##name(static_cast<decltype(std::declval<fbs::LayerKind>().name())>(kind.name));
  ARN_LAYER_KIND_FIELDS(ARN_ADD)
#undef ARN_ADD
  builder.Finish(b.Finish());
  const RopeKind ropes[] = {Rope(8), Rope(16)};
  return ReadKind(*flatbuffers::GetRoot<fbs::LayerKind>(builder.GetBufferPointer()), ropes, out,
                  diag);
}

// No field but those of the others below has its default.
LayerKind AttentionWithExperts() {
  LayerKind kind;
  kind.n_heads = 6;
  kind.n_kv_heads = 3;
  kind.head_dim = 16;
  kind.window = 9;
  kind.chunk = 32;
  kind.attention_scale = 0.25f;
  kind.rope = 1;
  kind.ffn_dim = 40;
  kind.norm = NormKind::kLayer;
  kind.norm_epsilon = 1e-5f;
  kind.activation = Activation::kClampedSwiglu;
  kind.has_qk_norm = true;
  kind.softcap = 30.0f;
  kind.qk_norm_spans_heads = true;
  kind.n_experts = 8;
  kind.n_experts_used = 2;
  kind.norm_topk_prob = true;
  kind.activation_limit = 7.0f;
  kind.query_temperature = 0.1f;
  kind.query_temperature_step = 8192;
  kind.query_temperature_shift = 0;
  kind.qkv_clip = 6.0f;
  kind.route_score = RouteScore::kSigmoid;
  kind.weighs_input = true;
  kind.shared_ffn_dim = 20;
  kind.router_groups = 4;
  kind.router_groups_used = 3;
  kind.topk_epsilon = 1e-6f;
  kind.topk_least = 1e-12f;
  kind.router_jitter = 0.01f;
  return kind;
}

LayerKind Dense() {
  LayerKind kind;
  kind.n_heads = kind.n_kv_heads = 2;
  kind.head_dim = 16;
  kind.attention_scale = 1.0f;
  kind.rope = 0;
  kind.ffn_dim = 40;
  kind.laurel_rank = 5;
  kind.attention_sum_factor = 0.75f;
  kind.has_gate_threshold = true;
  kind.gate_threshold = -0.5f;
  return kind;
}

LayerKind Latent() {
  LayerKind kind;
  kind.n_heads = 6;
  kind.n_kv_heads = 1;
  kind.head_dim = 28;
  kind.attention_scale = 0.2f;
  kind.rope = 0;
  kind.ffn_dim = 40;
  kind.norm_epsilon = 1e-5f;
  kind.latent_dim = 20;
  kind.latent_key_dim = 12;
  kind.latent_value_dim = 14;
  kind.latent_query_rank = 9;
  kind.latent_norm_epsilon = 1e-6f;
  return kind;
}

LayerKind Scan() {
  LayerKind kind;
  kind.norm_epsilon = 1e-5f;
  kind.is_gated = false;
  kind.mixer = Mixer::kScan;
  kind.mixer_width = 44;
  kind.conv_taps = 4;
  kind.scan_states = 16;
  kind.scan_rank = 3;
  return kind;
}

// Attention beside it has what AttentionWithExperts() has.
LayerKind LinearAttention() {
  LayerKind kind;
  kind.n_heads = 6;
  kind.n_kv_heads = 3;
  kind.head_dim = 16;
  kind.rope = kNoRope;
  kind.norm_epsilon = 1e-5f;
  kind.mixer = Mixer::kLinearAttention;
  kind.conv_taps = 4;
  kind.linear_heads = 6;
  kind.linear_key_heads = 2;
  kind.linear_key_dim = 8;
  kind.linear_value_dim = 5;
  kind.has_delta_rule = true;
  kind.time_step_low = 0.25f;
  kind.time_step_high = 0.5f;
  kind.mixer_norm_group = 15;
  kind.mixer_norm_epsilon = 1e-4f;
  kind.doubles_betas = true;
  kind.norms_before_gate = true;
  kind.has_attention_gate = kind.has_head_gates = true;
  kind.is_hybrid = true;
  return kind;
}

TEST(ReadKind, EveryField_Arrives) {
  for (const LayerKind& kind :
       {AttentionWithExperts(), Dense(), Latent(), Scan(), LinearAttention()}) {
    LayerKindSpec spec;
    Diag diag;
    ASSERT_EQ(Status::kOk, ReadBack(kind, &spec, &diag)) << diag.text();
    EXPECT_TRUE(kind == static_cast<const LayerKind&>(spec));
  }
  LayerKind parallel = AttentionWithExperts();
  parallel.is_parallel = true;
  parallel.qk_norm_spans_heads = false;
  parallel.qk_norm_follows_rope = true;
  LayerKindSpec spec;
  Diag diag;
  ASSERT_EQ(Status::kOk, ReadBack(parallel, &spec, &diag)) << diag.text();
  EXPECT_TRUE(spec.is_parallel);
}

TEST(ReadKind, WrongFields_AreRefusedByName) {
  struct Case {
    const char* expected;
    std::function<void(LayerKind&)> change;
    LayerKind kind = AttentionWithExperts();
  };
  const Case cases[] = {
      {"kinds.n_heads is 0, expected 1..4096", [](LayerKind& k) { k.n_heads = 0; }},
      {"kinds.n_kv_heads is 7, expected 1..6", [](LayerKind& k) { k.n_kv_heads = 7; }},
      {"6 heads are not a multiple of 4 kv heads", [](LayerKind& k) { k.n_kv_heads = 4; }},
      {"kinds.head_dim is 1, expected 2..", [](LayerKind& k) { k.head_dim = 1; }},
      {"kinds.window is 4294967295", [](LayerKind& k) { k.window = UINT32_MAX; }},
      {"kinds.attention_scale is not a finite", [](LayerKind& k) { k.attention_scale = NAN; }},
      {"kinds.rope is 2 of 2", [](LayerKind& k) { k.rope = 2; }},
      {"rotary_dim 16 exceeds head_dim 8", [](LayerKind& k) { k.head_dim = 8; }},
      {"kinds.norm 9 is not known", [](LayerKind& k) { k.norm = static_cast<NormKind>(9); }},
      {"kinds.norm_epsilon is 2, expected 0..1", [](LayerKind& k) { k.norm_epsilon = 2.0f; }},
      {"kinds.norm_epsilon is nan", [](LayerKind& k) { k.norm_epsilon = NAN; }},
      {"kinds.activation 99 is", [](LayerKind& k) { k.activation = static_cast<Activation>(99); }},
      {"kinds.softcap is -1, expected 0 or", [](LayerKind& k) { k.softcap = -1.0f; }},
      {"kinds.softcap is inf", [](LayerKind& k) { k.softcap = HUGE_VALF; }},
      {"experts with xielu",
       [](LayerKind& k) {
         k.is_gated = false;
         k.activation = Activation::kXielu;
       }},
      {"clamped SwiGLU needs a gate", [](LayerKind& k) { k.is_gated = false; }},
      {"xielu with a gate", [](LayerKind& k) { k.activation = Activation::kXielu; }},
      {"norms over all heads after rope", [](LayerKind& k) { k.qk_norm_follows_rope = true; }},
      {"kinds.qkv_clip is -1, expected 0 or", [](LayerKind& k) { k.qkv_clip = -1.0f; }},
      {"kinds.query_temperature_shift is 2", [](LayerKind& k) { k.query_temperature_shift = 2; }},
      {"kinds.n_experts_used is 9, expected 1..8", [](LayerKind& k) { k.n_experts_used = 9; }},
      {"kinds.query_temperature_step is 0, expected 1..",
       [](LayerKind& k) { k.query_temperature_step = 0; }},
      {"kinds.route_score 5 is", [](LayerKind& k) { k.route_score = static_cast<RouteScore>(5); }},
      {"kinds.shared_ffn_dim is 20, expected 0..0",
       [](LayerKind& k) { k.n_experts = k.n_experts_used = 0; }},
      {"kinds.router_groups is 9, expected 0..8", [](LayerKind& k) { k.router_groups = 9; }},
      {"kinds.router_groups_used is 5, expected 1..4",
       [](LayerKind& k) { k.router_groups_used = 5; }},
      {"2 of 8 experts in 3 of 3 router groups", [](LayerKind& k) { k.router_groups = 3; }},
      {"2 of 8 experts in 3 of 8 router groups", [](LayerKind& k) { k.router_groups = 8; }},
      {"5 of 8 experts in 2 of 4 router groups",
       [](LayerKind& k) {
         k.n_experts_used = 5;
         k.router_groups_used = 2;
       }},
      {"kinds.topk_epsilon is -1", [](LayerKind& k) { k.topk_epsilon = -1.0f; }},
      {"kinds.laurel_rank is 9, expected 0..0", [](LayerKind& k) { k.laurel_rank = 9; }, Scan()},
      {"kinds.attention_sum_factor is not a finite",
       [](LayerKind& k) { k.attention_sum_factor = HUGE_VALF; }, Dense()},
      {"kinds.gate_threshold is not a finite", [](LayerKind& k) { k.gate_threshold = NAN; },
       Dense()},
      {"a threshold of experts", [](LayerKind& k) { k.has_gate_threshold = true; }},
      {"a threshold without a gate", [](LayerKind& k) { k.is_gated = false; }, Dense()},
      {"a threshold without a gate", [](LayerKind& k) { k.ffn_dim = 0; }, Dense()},
      {"a latent of 19 and 8 rotated elements in 1 heads of 28",
       [](LayerKind& k) { k.latent_dim = 19; }, Latent()},
      {"kinds.latent_key_dim is 0, expected 1..", [](LayerKind& k) { k.latent_key_dim = 0; },
       Latent()},
      {"kinds.latent_value_dim is 5, expected 0..0", [](LayerKind& k) { k.latent_value_dim = 5; }},
      {"with ffn_dim 0", [](LayerKind& k) { k.ffn_dim = 0; }},
      {"kinds.mixer 9 is not known", [](LayerKind& k) { k.mixer = static_cast<Mixer>(9); }},
      {"kinds.mixer_width is 4, expected 0..0", [](LayerKind& k) { k.mixer_width = 4; }},
      {"kinds.n_heads is 2, expected 0..0", [](LayerKind& k) { k.n_heads = 2; }, Scan()},
      {"kinds.mixer_width is 0, expected 1..", [](LayerKind& k) { k.mixer_width = 0; }, Scan()},
      {"kinds.scan_states is 257, expected 1..256", [](LayerKind& k) { k.scan_states = 257; },
       Scan()},
      {"kinds.conv_taps is 1",
       [](LayerKind& k) {
         k.mixer = Mixer::kConv;
         k.scan_states = k.scan_rank = 0;
         k.conv_taps = 1;
       },
       Scan()},
      {"kinds.is_hybrid is 1, expected 0..0", [](LayerKind& k) { k.is_hybrid = true; }},
      {"kinds.has_delta_rule is 1, expected 0..0", [](LayerKind& k) { k.has_delta_rule = true; }},
      {"kinds.doubles_betas is 1, expected 0..0", [](LayerKind& k) { k.doubles_betas = true; }},
      {"kinds.has_head_gates is 1, expected 0..0", [](LayerKind& k) { k.has_head_gates = true; }},
      {"kinds.has_attention_gate is 1, expected 0..0",
       [](LayerKind& k) { k.has_attention_gate = true; }, Scan()},
      {"kinds.mixer_width is 4, expected 0..0", [](LayerKind& k) { k.mixer_width = 4; },
       LinearAttention()},
      {"kinds.linear_heads is 0, expected 1..", [](LayerKind& k) { k.linear_heads = 0; },
       LinearAttention()},
      {"6 heads of linear attention are not a multiple of 4",
       [](LayerKind& k) { k.linear_key_heads = 4; }, LinearAttention()},
      {"groups of 7 do not divide a width of 30", [](LayerKind& k) { k.mixer_norm_group = 7; },
       LinearAttention()},
      {"time steps of at least 0.75 and at most 0.5", [](LayerKind& k) { k.time_step_low = 0.75f; },
       LinearAttention()},
      {"kinds.time_step_high is inf", [](LayerKind& k) { k.time_step_high = HUGE_VALF; },
       LinearAttention()},
      {"4294967296 states",
       [](LayerKind& k) {
         k.linear_heads = 4096;
         k.linear_key_dim = k.linear_value_dim = 1024;
       },
       LinearAttention()},
  };
  for (const Case& c : cases) {
    LayerKind kind = c.kind;
    c.change(kind);
    LayerKindSpec spec;
    Diag diag;
    EXPECT_NE(Status::kOk, ReadBack(kind, &spec, &diag)) << c.expected;
    EXPECT_NE(std::string::npos, std::string(diag.text()).find(c.expected))
        << "expected \"" << c.expected << "\", found \"" << diag.text() << '"';
  }
}

}  // namespace
}  // namespace arn
