#include <cmath>

#include "kernels/reference/ops.h"
#include "platform/base/arith.h"

namespace arn::reference {
namespace {

double Softplus(double x) { return std::fmax(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }

// Returns 1 / sqrt(|x|^2 + epsilon).
double InverseLength(const float* x, uint32_t n) {
  double squares = static_cast<double>(kLengthEpsilon);
  for (uint32_t i = 0; i < n; ++i) squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return 1.0 / std::sqrt(squares);
}

// One head at one token.
struct Token {
  const float *q, *k, *v;
  double decay = 0.0, dt = 0.0, beta = 0.0;  // beta: the delta rule only
  double q_factor = 1.0, k_factor = 1.0, skip = 0.0;
};

Token TokenOf(const LinearAttentionArgs& a, uint32_t head, uint32_t row) {
  Token t;
  const uint32_t keys = a.n_heads / a.heads_per_key * a.key_dim;
  const float* in = a.in + row * a.in_stride;
  t.q = in + uint64_t{head} / a.heads_per_key * a.key_dim;
  t.k = t.q + keys;
  t.v = in + 2 * uint64_t{keys} + uint64_t{head} * a.value_dim;
  const float* gates = a.gates + row * a.gates_stride;
  const auto step = static_cast<double>(gates[head]);
  t.dt = std::fmax(Softplus(step + static_cast<double>(a.heads[a.n_heads + head])),
                   static_cast<double>(a.time_step_low));
  if (a.time_step_high != 0.0f) t.dt = std::fmin(t.dt, static_cast<double>(a.time_step_high));
  t.decay = std::exp(t.dt * static_cast<double>(a.heads[head]));
  if (a.has_skip) t.skip = static_cast<double>(a.heads[2 * uint64_t{a.n_heads} + head]);
  if (!a.has_delta_rule) return t;
  t.beta = static_cast<double>(a.beta_factor) /
           (1.0 + std::exp(-static_cast<double>(gates[a.n_heads + head])));
  t.q_factor = InverseLength(t.q, a.key_dim) / std::sqrt(static_cast<double>(a.key_dim));
  t.k_factor = InverseLength(t.k, a.key_dim);
  return t;
}

// Updates column `v` of the states, `stride` elements apart, and returns its output.
double UpdateColumn(const LinearAttentionArgs& a, const Token& t, uint32_t v, float* states,
                    uint32_t stride) {
  double added = t.dt * static_cast<double>(t.v[v]);
  if (a.has_delta_rule) {
    double recalled = 0.0;
    for (uint32_t i = 0; i < a.key_dim; ++i) {
      recalled += t.decay * static_cast<double>(states[uint64_t{i} * stride]) * t.k_factor *
                  static_cast<double>(t.k[i]);
    }
    added = t.beta * (static_cast<double>(t.v[v]) - recalled);
  }
  double y = t.skip * static_cast<double>(t.v[v]);
  for (uint32_t i = 0; i < a.key_dim; ++i) {
    const double s = t.decay * static_cast<double>(states[uint64_t{i} * stride]) +
                     t.k_factor * static_cast<double>(t.k[i]) * added;
    states[uint64_t{i} * stride] = static_cast<float>(s);
    y += s * t.q_factor * static_cast<double>(t.q[i]);
  }
  return y;
}

}  // namespace

// Delta rule: Yang, Kautz and Hatamizadeh, "Gated Delta Networks: Improving Mamba2 with Delta
// Rule", 2024. Else: Dao and Gu, "Transformers are SSMs", 2024 (Mamba-2), with B as k and C as q.
void LinearAttention(const LinearAttentionArgs& a) {
  const uint64_t head_states = uint64_t{a.key_dim} * a.value_dim;
  for (uint64_t i = 0; i < a.n_heads * head_states; ++i) {
    a.state.to[i] = a.state.from == nullptr ? 0.0f : a.state.from[i];
  }
  for (uint32_t row = 0; row < a.n_rows; ++row) {
    for (uint32_t head = 0; head < a.n_heads; ++head) {
      const Token t = TokenOf(a, head, row);
      float* out = a.out + (uint64_t{row} * a.n_heads + head) * a.value_dim;
      for (uint32_t v = 0; v < a.value_dim; ++v) {
        const uint32_t first = v / kStateColumns * kStateColumns;
        float* panel = a.state.to + head * head_states + uint64_t{first} * a.key_dim;
        out[v] = static_cast<float>(
            UpdateColumn(a, t, v, panel + v - first, Min(kStateColumns, a.value_dim - first)));
      }
    }
  }
}

}  // namespace arn::reference
