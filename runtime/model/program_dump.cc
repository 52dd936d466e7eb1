#include "runtime/model/program_dump.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "platform/base/arith.h"

namespace arn {
namespace {

// Counts all bytes, stores those that fit.
class Writer {
 public:
  explicit Writer(Span<char> out) : out_(out) {}

  void Print(const char* format, ...) __attribute__((format(printf, 2, 3))) {
    char line[512];
    va_list args;
    va_start(args, format);
    const int n = std::vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (n <= 0) return;
    const size_t length = Min(static_cast<size_t>(n), sizeof line - 1);
    if (size_ < out_.size()) {
      std::memcpy(out_.data() + size_, line, Min(length, out_.size() - size_));
    }
    size_ += length;
  }

  size_t size() const { return size_; }

 private:
  Span<char> out_;
  size_t size_ = 0;
};

const char* NormName(NormKind kind) { return kind == NormKind::kRms ? "rms" : "layer"; }

}  // namespace

size_t DumpProgram(const Program& program, WeightNamer name, const void* context, Span<char> text) {
  Writer out(text);
  for (size_t i = 0; i < program.values.size(); ++i) {
    const Value& value = program.values[i];
    out.Print("value %%%zu %s f32[%llu, %u] steps %u..%u", i, value.name,
              static_cast<unsigned long long>(MaxRowsOf(program, value)), value.width,
              value.first_step, value.last_step);
    if (value.view_of != kNoValue) out.Print(" view of %%%u", value.view_of);
    out.Print("\n");
  }
  for (size_t i = 0; i < program.ropes.size(); ++i) {
    out.Print("rope %zu dim %u amplitude %.6g\n", i, program.ropes[i].rotary_dim,
              static_cast<double>(program.ropes[i].amplitude));
  }
  for (size_t i = 0; i < program.kinds.size(); ++i) {
    const AttentionKind& kind = program.kinds[i];
    if (kind.n_heads == 0) {
      out.Print("kind %zu state group %u\n", i, kind.group);
      continue;
    }
    out.Print("kind %zu heads %u kv_heads %u head_dim %u window %u", i, kind.n_heads,
              kind.n_kv_heads, kind.head_dim, kind.window);
    if (kind.chunk != 0) out.Print(" chunk %u", kind.chunk);
    out.Print(" scale %.6g", static_cast<double>(kind.attention_scale));
    if (kind.softcap != 0.0f) out.Print(" softcap %.6g", static_cast<double>(kind.softcap));
    if (kind.query_temperature != 0.0f) {
      out.Print(" temperature %.6g by %u", static_cast<double>(kind.query_temperature),
                kind.query_temperature_step);
    }
    if (kind.rope == kNoRope) {
      out.Print(" no rope");
    } else {
      out.Print(" rope %u", kind.rope);
    }
    if (kind.group == kNoGroup) {
      out.Print(" no group\n");
    } else {
      out.Print(" group %u%s\n", kind.group, kind.is_cross_attention ? " of the encoder" : "");
    }
  }
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    out.Print("%4zu %-11s", i, OpName(step.op));
    if (step.in != kNoValue) out.Print(" in %%%u", step.in);
    if (step.out != kNoValue) out.Print(" out %s%%%u", step.accumulate ? "+" : "", step.out);
    if (step.angles != kNoValue) out.Print(" angles %%%u", step.angles);
    if (step.norm != kNoWeight) out.Print(" norm %s", name(context, step.norm));
    if (step.weight != kNoWeight) out.Print(" weight %s", name(context, step.weight));
    if (step.bias != kNoWeight) out.Print(" bias %s", name(context, step.bias));
    if (step.positions != kNoWeight) out.Print(" positions %s", name(context, step.positions));
    if (step.q_norm != kNoWeight) out.Print(" q_norm %s", name(context, step.q_norm));
    if (step.k_norm != kNoWeight) out.Print(" k_norm %s", name(context, step.k_norm));
    if (step.relative_position_bias != kNoWeight) {
      out.Print(" relative_position_bias %s", name(context, step.relative_position_bias));
    }
    if (step.sinks != kNoWeight) out.Print(" sinks %s", name(context, step.sinks));
    switch (step.op) {
      case Op::kQkvRope:
      case Op::kAttention:
        out.Print(" kind %u layer %u", step.kind, step.layer);
        if (step.shares_kv) out.Print(" shares kv %u", step.group_layer);
        break;
      case Op::kGatedAct:
      case Op::kAct: out.Print(" %s", ActivationName(step.activation)); break;
      case Op::kRopeAngles: out.Print(" rope %u", step.rope); break;
      case Op::kRoute:
        out.Print(" %u of %u %s%s", step.n_chosen, step.n_experts,
                  step.route_score == RouteScore::kSigmoid ? "sigmoid" : "softmax",
                  step.norm_topk_prob ? " norm_topk_prob" : "");
        break;
      case Op::kExperts:
        out.Print(" topk %%%u %u of %u %s%s", step.topk, step.n_chosen, step.n_experts,
                  ActivationName(step.activation), step.weighs_input ? " weighs input" : "");
        break;
      case Op::kNorm:
      case Op::kLogits: out.Print(" %s", NormName(step.norm_kind)); break;
      case Op::kConv:
        out.Print(" group %u layer %u%s", step.group, step.group_layer,
                  step.is_gated ? " gated" : "");
        break;
      case Op::kScan:
        out.Print(" skip %s steps %%%u mix %%%u group %u layer %u", name(context, step.skip),
                  step.time_steps, step.mix, step.group, step.group_layer);
        break;
      case Op::kSelfAttention:
      case Op::kStoreKv: out.Print(" kind %u layer %u", step.kind, step.layer); break;
      case Op::kIm2col: out.Print(" %u taps", step.n_taps); break;
      case Op::kFeatures:
      case Op::kAddPositions:
      case Op::kEmbed:
      case Op::kLinear: break;
    }
    if (step.factor != 1.0f) out.Print(" factor %.6g", static_cast<double>(step.factor));
    if (step.softcap != 0.0f) out.Print(" softcap %.6g", static_cast<double>(step.softcap));
    out.Print("\n");
  }
  return out.size();
}

}  // namespace arn
