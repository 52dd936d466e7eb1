#include "runtime/model/layer_program.h"

#include "runtime/model/mixer_program.h"

namespace arn {
namespace {

// The steps of one layer.
class LayerSteps {
 public:
  LayerSteps(const LayerSpec& layer, const LayerKindSpec& kind, const LayerPlace& place,
             const LayerValues& values, StepList* steps)
      : layer_(layer), kind_(kind), place_(place), v(values), steps_(steps) {}

  // Adds a norm of x into `out`; returns x itself if there is no norm.
  ValueId PreNorm(ValueId out, WeightId weight, WeightId bias) {
    if (weight == kNoWeight || kind_.norms_follow_sum) return v.x;
    return AddNorm(out, weight, bias);
  }

  // Adds the norm of the residual stream in place, if it comes after the sum.
  void NormSum(WeightId weight, WeightId bias) {
    if (kind_.norms_follow_sum) AddNorm(v.x, weight, bias);
  }

  ValueId AddNorm(ValueId out, WeightId weight, WeightId bias) {
    NormParams norm;
    norm.kind = kind_.norm;
    norm.weight = weight;
    norm.bias = bias;
    norm.epsilon = kind_.norm_epsilon;
    Add(norm, v.x, out);
    return out;
  }

  // Adds x += matrix(in), through `branch` and a norm if there is one. clamped: its place, if the
  // layer has clamps.
  void AddBlock(ValueId in, WeightId matrix, ValueId branch, WeightId norm_weight,
                ClampPlace clamped = ClampPlace::kAttentionOut) {
    if (norm_weight == kNoWeight) return AddLinear(matrix, in, v.x);
    AddLinear(matrix, in, branch);
    Clamp(clamped, branch);
    NormParams norm;
    norm.weight = norm_weight;
    norm.epsilon = kind_.norm_epsilon;
    norm.accumulate = true;
    Add(norm, branch, v.x);
  }

  void AddLinear(WeightId weight, ValueId in, ValueId out) {
    LinearParams linear;
    linear.weight = weight;
    linear.accumulate = out == v.x;
    Add(linear, in, out);
  }

  // Clamps n columns of x from `first` on; 0: all.
  void Clamp(ClampPlace place, ValueId x, uint32_t first = 0, uint32_t n = 0) {
    if (layer_.clamps == kNoWeight) return;
    ClampParams clamp;
    clamp.ranges = layer_.clamps;
    clamp.range = static_cast<uint32_t>(place);
    clamp.first = first;
    clamp.n_columns = n == 0 ? steps_->WidthOf(x) : n;
    Add(clamp, x);
  }

  // Adds q, k and v of the heads.
  void AddQkv(ValueId in) {
    Clamp(ClampPlace::kQkvIn, in);
    AddLinear(layer_.qkv, in, v.qkv);
    const uint32_t q = kind_.n_heads * kind_.head_dim, kv = kind_.n_kv_heads * kind_.head_dim;
    Clamp(ClampPlace::kQ, v.qkv, 0, q);
    Clamp(ClampPlace::kK, v.qkv, q, kv);
    Clamp(ClampPlace::kV, v.qkv, q + kv, kv);
  }

  void AddGatedAct(ValueId in, ValueId out) {
    GatedActParams act;
    act.activation = kind_.activation;
    act.activation_limit = kind_.activation_limit;
    Add(act, in, out);
  }

  QkvRopeParams QkvParams(const ValueId* angles) const {
    QkvRopeParams qkv;
    qkv.kind = static_cast<uint16_t>(place_.kind);
    qkv.group_layer = static_cast<uint16_t>(layer_.group_layer);
    if (kind_.rope != kNoRope) qkv.angles = angles[kind_.rope];
    qkv.shares_kv = layer_.shares_kv;
    qkv.epsilon = kind_.norm_epsilon;
    qkv.q_norm = layer_.q_norm;
    qkv.k_norm = layer_.k_norm;
    qkv.v_norm = layer_.v_norm;
    return qkv;
  }

  // Attention of the decoder to its own tokens.
  void AddAttention(const ValueId* angles) {
    const QkvRopeParams qkv = QkvParams(angles);
    Add(qkv, v.qkv);
    AttentionParams attention;
    attention.kind = qkv.kind;
    attention.group_layer = qkv.group_layer;
    attention.shares_kv = layer_.shares_kv;
    attention.relative_position_bias = layer_.relative_position_bias;
    attention.sinks = layer_.sinks;
    Add(attention, v.qkv, v.attention);
  }

  // Multiplies the attention's output by the sigmoid of a projection of its input, or its heads by
  // the softplus.
  void AddAttentionGate(ValueId in) {
    AddLinear(layer_.attention_gate, in, v.attention_gate);
    GateParams gate;
    gate.gate = v.attention_gate;
    gate.activation = Activation::kSigmoid;
    if (kind_.has_head_gates) gate.head_dim = kind_.head_dim;
    Add(gate, v.attention);
  }

  // Attention of the encoder's rows to each other.
  void AddSelfAttention(const ValueId* angles) {
    const bool rotates = kind_.rope != kNoRope;
    if (rotates || layer_.q_norm != kNoWeight || layer_.v_norm != kNoWeight ||
        kind_.qkv_clip != 0.0f || kind_.query_temperature != 0.0f) {
      Add(QkvParams(angles), v.qkv);
    }
    SelfAttentionParams attention;
    attention.kind = static_cast<uint16_t>(place_.kind);
    attention.relative_position_bias = layer_.relative_position_bias;
    Add(attention, v.qkv, v.attention);
  }

  void AddCrossAttention() {
    const ValueId in = PreNorm(v.normed, layer_.cross_norm, layer_.cross_norm_bias);
    AddLinear(layer_.cross_q, in, v.cross_q);
    AttentionParams attention;
    attention.kind = static_cast<uint16_t>(place_.cross_kind);
    attention.group_layer = static_cast<uint16_t>(layer_.cross_layer);
    attention.shares_kv = true;
    Add(attention, v.cross_q, v.attention);
    AddBlock(v.attention, layer_.cross_out, v.normed, layer_.cross_post_norm);
  }

  // Adds a norm inside a block, in place.
  void AddSubNorm(ValueId x, WeightId weight) {
    if (weight == kNoWeight) return;
    NormParams norm;
    norm.weight = weight;
    norm.epsilon = kind_.norm_epsilon;
    Add(norm, x, x);
  }

  // Adds the activation of a first matrix's output. Without a gate it is in place. Returns its
  // output.
  ValueId AddActivation(ValueId gate_up, ValueId activated) {
    if (kind_.is_gated) {
      AddGatedAct(gate_up, activated);
      return activated;
    }
    ActParams act;
    act.activation = kind_.activation;
    act.parameters = layer_.act_parameters;
    Add(act, gate_up);
    return gate_up;
  }

  void AddFeedForward(ValueId in) {
    Clamp(ClampPlace::kGateUpIn, in);
    AddLinear(layer_.gate_up, in, v.gate_up);
    Clamp(ClampPlace::kGate, v.gate_up, 0, kind_.ffn_dim);
    Clamp(ClampPlace::kUp, v.gate_up, kind_.ffn_dim, kind_.ffn_dim);
    if (kHasStreams && kind_.has_gate_threshold) {
      ThresholdParams threshold;
      threshold.n_columns = kind_.ffn_dim;
      threshold.deviations = kind_.gate_threshold;
      Add(threshold, v.gate_up);
    }
    const ValueId activated = AddActivation(v.gate_up, v.activated);
    AddSubNorm(activated, layer_.ffn_sub_norm);
    Clamp(ClampPlace::kDownIn, activated);
    AddBlock(activated, layer_.down, v.ffn_normed, layer_.ffn_post_norm, ClampPlace::kDown);
  }

  // Adds the router and the experts, which read `in` or a norm of x. accumulate: adds to `out`.
  void AddRouted(ValueId in, ValueId out, bool accumulate) {
    ValueId from = in;
    if (layer_.router_norm != kNoWeight) {
      from = v.ffn_normed;
      AddRmsNorm(layer_.router_norm, v.x, from, /*accumulate=*/false);
    }
    AddLinear(layer_.router, from, v.route_logits);
    RouteParams route;
    route.n_experts = static_cast<uint16_t>(kind_.n_experts);
    route.n_chosen = static_cast<uint16_t>(kind_.n_experts_used);
    route.route_score = kind_.route_score;
    route.norm_topk_prob = kind_.norm_topk_prob;
    route.n_groups = static_cast<uint16_t>(kind_.router_groups);
    route.n_groups_chosen = static_cast<uint16_t>(kind_.router_groups_used);
    route.correction = layer_.router_correction;
    route.topk_epsilon = kind_.topk_epsilon;
    route.topk_least = kind_.topk_least;
    route.router_jitter = kind_.router_jitter;
    Add(route, v.route_logits, v.topk);
    if (layer_.experts_norm != kNoWeight) {
      AddRmsNorm(layer_.experts_norm, v.x, from, /*accumulate=*/false);
    }
    ExpertsParams experts;
    experts.weight = layer_.experts;
    experts.n_experts = route.n_experts;
    experts.n_chosen = route.n_chosen;
    experts.topk = v.topk;
    experts.gathered = v.gathered;
    experts.gate_up = v.expert_gate_up;
    experts.is_gated = kind_.is_gated;
    experts.activated = kind_.is_gated ? v.expert_activated : v.expert_gate_up;
    experts.expert_out = v.expert_out;
    experts.activation = kind_.activation;
    experts.activation_limit = kind_.activation_limit;
    experts.weighs_input = kind_.weighs_input;
    experts.accumulate = accumulate;
    Add(experts, from, out);
  }

  void AddSharedExpert(ValueId in, ValueId out) {
    AddLinear(layer_.shared_gate_up, in, v.shared_gate_up);
    const ValueId activated = AddActivation(v.shared_gate_up, v.shared_activated);
    if (layer_.shared_gate != kNoWeight) {
      AddLinear(layer_.shared_gate, in, v.shared_gate);
      ScaleRowParams scale;
      scale.scale = v.shared_gate;
      Add(scale, activated);
    }
    AddLinear(layer_.shared_down, activated, out);
  }

  // Without a norm behind them, experts and shared expert add to x. Else their sum is made in
  // v.normed.
  void AddExperts(ValueId in) {
    const bool has_shared = kind_.shared_ffn_dim != 0;
    if (layer_.ffn_post_norm == kNoWeight) {
      AddRouted(in, v.x, /*accumulate=*/true);
      if (has_shared) AddSharedExpert(in, v.x);
      return;
    }
    if (has_shared) AddSharedExpert(in, v.normed);
    if (layer_.experts_post_norm != kNoWeight) {
      AddSubNorm(v.normed, layer_.shared_post_norm);
      AddRouted(in, v.experts_sum, /*accumulate=*/false);
      AddRmsNorm(layer_.experts_post_norm, v.experts_sum, v.normed, /*accumulate=*/true);
    } else {
      AddRouted(in, v.normed, /*accumulate=*/has_shared);
    }
    AddRmsNorm(layer_.ffn_post_norm, v.normed, v.x, /*accumulate=*/true);
  }

  // Adds the layer's part of the per-layer embeddings, gated by x.
  void AddPerLayer() {
    AddLinear(layer_.per_layer_gate, v.x, v.per_layer_gated);
    ActParams act;
    act.activation = kind_.activation;
    Add(act, v.per_layer_gated);
    MultiplyParams multiply;
    multiply.by = v.per_layer;
    multiply.first = place_.index * v.per_layer_width;
    Add(multiply, v.per_layer_gated);
    if (!v.has_streams()) {
      AddBlock(v.per_layer_gated, layer_.per_layer_out, v.normed, layer_.per_layer_norm);
      return;
    }
    AddLinear(layer_.per_layer_out, v.per_layer_gated, v.normed);
    for (uint32_t i = 1; i < v.n_streams; ++i) {
      AddRmsNorm(layer_.per_layer_norm, v.normed, static_cast<ValueId>(v.streams + i),
                 /*accumulate=*/true);
    }
  }

  // Adds x += in + norm(out (low in)), where `in` is the norm of x (Menghani et al., "LAuReL:
  // Learned Augmented Residual Layer", 2024, arXiv:2411.07501).
  void AddLaurel(ValueId in) {
    AddLinear(layer_.laurel_low, in, v.laurel_low);
    AddRmsNorm(layer_.attention_norm, v.x, v.x, /*accumulate=*/true);
    AddLinear(layer_.laurel_out, v.laurel_low, v.ffn_normed);
    AddRmsNorm(layer_.laurel_norm, v.ffn_normed, v.x, /*accumulate=*/true);
  }

  void AddSumFactor() {
    MultiplyParams multiply;
    multiply.factor = kind_.attention_sum_factor;
    Add(multiply, v.x);
  }

  // Predicts the streams, and takes the active one as x.
  void PredictStreams() {
    const auto active = static_cast<ValueId>(v.streams + v.active_stream);
    AddStreamRouter(active, layer_.stream_predict, v.stream_predict);
    MixStreams(StreamRule::kPredict, v.stream_predict, kNoWeight);
  }

  // Corrects the streams by what the layer made of x.
  void CorrectStreams() {
    AddStreamRouter(v.x, layer_.stream_correct, v.stream_correct);
    MixStreams(StreamRule::kCorrect, v.stream_correct, layer_.stream_scale);
  }

  // Queries and the key of latent attention, in absorbed form: a head's query is multiplied by the
  // head's key matrix, so that it meets the latent itself (Liu et al., 2024, arXiv:2405.04434).
  void AddLatentQkv(ValueId in) {
    ValueId query_in = in;
    if (kind_.latent_query_rank != 0) {
      AddLinear(layer_.query_low, in, v.query_low);
      AddLatentNorm(layer_.query_low_norm, v.query_low);
      query_in = v.query_low;
    }
    AddLinear(layer_.qkv, query_in, v.query);
    AddLinear(layer_.latent_rotated, in, v.latent_rotated);
    AddLinear(layer_.latent, in, v.latent);
    AddLatentNorm(layer_.latent_norm, v.latent);
    HeadLinearParams absorb;
    absorb.weight = layer_.latent_keys;
    absorb.n_heads = static_cast<uint16_t>(kind_.n_heads);
    absorb.first = absorb.n_copied = static_cast<uint16_t>(kind_.head_dim - kind_.latent_dim);
    absorb.gathered = v.head_key;
    absorb.projected = v.head_latent;
    absorb.tails[0] = v.latent_rotated;
    absorb.tails[1] = v.latent;
    Add(absorb, v.query, v.qkv);
  }

  // Makes the heads' outputs of what they saw of the latents.
  void AddLatentValues() {
    HeadLinearParams values;
    values.weight = layer_.latent_values;
    values.n_heads = static_cast<uint16_t>(kind_.n_heads);
    values.first = static_cast<uint16_t>(kind_.head_dim - kind_.latent_dim);
    values.gathered = v.head_latent;
    values.projected = v.head_value;
    Add(values, v.attention, v.head_outputs);
  }

  void AddLatentNorm(WeightId weight, ValueId value) {
    NormParams norm;
    norm.weight = weight;
    norm.epsilon = kind_.latent_norm_epsilon;
    Add(norm, value, value);
  }

  void AddOutputScale() {
    MultiplyParams multiply;
    multiply.scale = layer_.output_scale;
    Add(multiply, v.x);
  }

 private:
  void AddRmsNorm(WeightId weight, ValueId in, ValueId out, bool accumulate) {
    NormParams norm;
    norm.weight = weight;
    norm.epsilon = kind_.norm_epsilon;
    norm.accumulate = accumulate;
    Add(norm, in, out);
  }

  void AddStreamRouter(ValueId in, WeightId matrix, ValueId coefs) {
    AddRmsNorm(layer_.stream_router_norm, in, v.normed, /*accumulate=*/false);
    AddLinear(layer_.stream_router, v.normed, v.stream_modes);
    ActParams act;
    act.activation = Activation::kTanh;
    Add(act, v.stream_modes);
    AddLinear(matrix, v.stream_modes, coefs);
  }

  void MixStreams(StreamRule rule, ValueId coefs, WeightId scale) {
    MixStreamsParams mix;
    mix.rule = rule;
    mix.streams = v.streams;
    mix.n_streams = static_cast<uint16_t>(v.n_streams);
    mix.active = static_cast<uint16_t>(v.active_stream);
    mix.coefs = coefs;
    mix.scale = scale;
    Add(mix, v.x);
  }

  template <typename Params>
  void Add(const Params& params, ValueId in, ValueId out = kNoValue) {
    steps_->Add(Step(params, in, out, place_.index));
  }

  const LayerSpec& layer_;
  const LayerKindSpec& kind_;
  const LayerPlace& place_;
  const LayerValues& v;
  StepList* steps_;
};

// True if two layers have the same steps of streams.h.
bool HaveSameResiduals(const LayerKind& a, const LayerKind& b) {
  return (a.laurel_rank == 0) == (b.laurel_rank == 0) &&
         a.has_gate_threshold == b.has_gate_threshold &&
         (a.attention_sum_factor == 1.0f) == (b.attention_sum_factor == 1.0f);
}

bool HaveSameSteps(Span<const LayerKindSpec> kinds, const LayerSpec& a, const LayerSpec& b) {
  const auto both = [](uint32_t x, uint32_t y, uint32_t none) {
    return (x == none) == (y == none);
  };
  const LayerKindSpec &ka = kinds[a.kind], &kb = kinds[b.kind];
  return ka.is_parallel == kb.is_parallel && ka.norms_follow_sum == kb.norms_follow_sum &&
         a.shares_norm(ka) == b.shares_norm(kb) && ka.is_gated == kb.is_gated &&
         ka.mixer == kb.mixer && ka.is_latent() == kb.is_latent() &&
         both(ka.latent_query_rank, kb.latent_query_rank, 0) && ka.is_hybrid == kb.is_hybrid &&
         ka.has_attention_gate == kb.has_attention_gate && both(ka.ffn_dim, kb.ffn_dim, 0) &&
         (!kHasStreams || HaveSameResiduals(ka, kb)) && both(ka.n_experts, kb.n_experts, 0) &&
         both(ka.shared_ffn_dim, kb.shared_ffn_dim, 0) &&
         both(a.attention_norm, b.attention_norm, kNoWeight) &&
         both(a.attention_post_norm, b.attention_post_norm, kNoWeight) &&
         both(a.ffn_norm, b.ffn_norm, kNoWeight) &&
         both(a.ffn_post_norm, b.ffn_post_norm, kNoWeight) &&
         both(a.attention_sub_norm, b.attention_sub_norm, kNoWeight) &&
         both(a.ffn_sub_norm, b.ffn_sub_norm, kNoWeight) &&
         both(a.shared_gate, b.shared_gate, kNoWeight) &&
         both(a.router_norm, b.router_norm, kNoWeight) &&
         both(a.experts_norm, b.experts_norm, kNoWeight) &&
         both(a.experts_post_norm, b.experts_post_norm, kNoWeight) &&
         both(a.scan_low_norm, b.scan_low_norm, kNoWeight) &&
         both(a.output_scale, b.output_scale, kNoWeight) && both(a.cross_q, b.cross_q, kNoWeight) &&
         both(a.cross_post_norm, b.cross_post_norm, kNoWeight);
}

}  // namespace

void AddLayer(const LayerSpec& layer, const LayerKindSpec& kind, const LayerPlace& place,
              const LayerValues& v, const ValueId* angles, StepList* steps) {
  LayerSteps add(layer, kind, place, v, steps);
  const bool has_mixer = kind.mixer != Mixer::kNone;
  if (v.has_streams()) add.PredictStreams();
  const ValueId attention_in =
      has_mixer ? add.PreNorm(v.normed, layer.attention_norm, layer.attention_norm_bias) : v.x;
  ValueId ffn_in = kNoValue;
  if (layer.shares_norm(kind)) {
    ffn_in = attention_in;
  } else if (kind.is_parallel) {
    ffn_in = add.PreNorm(v.ffn_normed, layer.ffn_norm, layer.ffn_norm_bias);
  }
  if (kHasStreams && kind.laurel_rank != 0) add.AddLaurel(attention_in);
  ValueId out = v.attention;
  if (kind.has_state()) {
    out = AddMixer(layer, kind, place.index, attention_in, v.mixer, steps);
    if (kind.is_hybrid) add.AddLinear(layer.mixer_out, out, v.x);
  }
  if (kind.has_attention()) {
    out = kind.is_latent() ? v.head_outputs : v.attention;
    if (kind.is_latent()) {
      add.AddLatentQkv(attention_in);
    } else {
      add.AddQkv(attention_in);
    }
    if (place.is_encoder) {
      add.AddSelfAttention(angles);
    } else {
      add.AddAttention(angles);
    }
    if (kind.is_latent()) add.AddLatentValues();
    if (kind.has_attention_gate) add.AddAttentionGate(attention_in);
  }
  if (has_mixer) {
    add.AddSubNorm(out, layer.attention_sub_norm);
    add.Clamp(ClampPlace::kAttentionOutIn, out);
    add.AddBlock(out, layer.attention_out, v.normed, layer.attention_post_norm);
    add.NormSum(layer.attention_norm, layer.attention_norm_bias);
    if (kHasStreams && kind.attention_sum_factor != 1.0f) add.AddSumFactor();
  }
  if (layer.cross_q != kNoWeight) add.AddCrossAttention();
  if (kind.ffn_dim != 0 && !kind.is_parallel) {
    ffn_in = add.PreNorm(v.ffn_normed, layer.ffn_norm, layer.ffn_norm_bias);
  }
  if (kind.n_experts != 0) {
    add.AddExperts(ffn_in);
  } else if (kind.ffn_dim != 0) {
    add.AddFeedForward(ffn_in);
  }
  if (kind.ffn_dim != 0) add.NormSum(layer.ffn_norm, layer.ffn_norm_bias);
  if (v.has_streams()) add.CorrectStreams();
  if (layer.per_layer_gate != kNoWeight) add.AddPerLayer();
  if (layer.output_scale != kNoWeight) add.AddOutputScale();
}

void AddRopeAngles(Span<const LayerKindSpec> kinds, Span<const RopeKind> ropes, bool is_encoder,
                   ValueId* angles, StepList* steps) {
  for (uint32_t i = 0; i < ropes.size(); ++i) {
    angles[i] = kNoValue;
    bool is_used = false;
    for (const LayerKindSpec& kind : kinds) is_used = is_used || kind.rope == i;
    if (!is_used) continue;
    angles[i] = steps->NewValue(is_encoder ? "encoder_angles" : "angles", ropes[i].rotary_dim);
    if (is_encoder) steps->MarkEncoder(angles[i], 1);
    RopeAnglesParams params;
    params.rope = static_cast<uint16_t>(i);
    steps->Add(Step(params, kNoValue, angles[i]));
  }
}

bool HaveSameSteps(Span<const LayerKindSpec> kinds, Span<const LayerSpec> layers) {
  for (const LayerSpec& layer : layers) {
    if (!HaveSameSteps(kinds, layer, layers[0])) return false;
  }
  return true;
}

void FreezeLayerValues(const LayerValues& v, StepList* steps) {
  for (const ValueId id :
       {v.qkv, v.attention, v.attention_gate, v.ffn_normed, v.gate_up, v.activated}) {
    if (id != kNoValue) steps->FreezeLifetimes(id);
  }
}

}  // namespace arn
