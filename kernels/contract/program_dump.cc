#include "kernels/contract/program_dump.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "kernels/contract/ops/op_contract.h"
#include "platform/base/arith.h"

namespace arn {
namespace {

void DumpValue(const Program& program, size_t i, StepText* out) {
  const Value& value = program.values[i];
  out->Print("value %%%zu %s f32[%llu, %u] steps %u..%u", i, value.name,
             static_cast<unsigned long long>(MaxRowsOf(program, value)), value.width,
             value.first_step, value.last_step);
  if (value.view_of != kNoValue) out->Print(" view of %%%u", value.view_of);
  out->Print("\n");
}

void DumpKind(const AttentionKind& kind, size_t i, StepText* out) {
  if (kind.n_heads == 0) {
    out->Print("kind %zu state group %u\n", i, kind.group);
    return;
  }
  out->Print("kind %zu heads %u kv_heads %u head_dim %u window %u", i, kind.n_heads,
             kind.n_kv_heads, kind.head_dim, kind.window);
  if (kind.chunk != 0) out->Print(" chunk %u", kind.chunk);
  out->Print(" scale %.6g", static_cast<double>(kind.attention_scale));
  out->PrintFloat("softcap", kind.softcap, 0.0f);
  out->PrintFloat("temperature", kind.query_temperature, 0.0f);
  if (kind.query_temperature != 0.0f) {
    out->Print(" by %u", kind.query_temperature_step);
    if (kind.query_temperature_shift != 1) out->Print(" from %u", kind.query_temperature_shift);
  }
  if (kind.qk_norm_follows_rope) out->Print(" norms after rope");
  out->PrintFloat("clip", kind.qkv_clip, 0.0f);
  if (kind.rope == kNoRope) {
    out->Print(" no rope");
  } else {
    out->Print(" rope %u", kind.rope);
  }
  if (kind.group == kNoGroup) {
    out->Print(" no group\n");
  } else {
    out->Print(" group %u%s\n", kind.group, kind.is_cross_attention ? " of the encoder" : "");
  }
}

}  // namespace

void StepText::Print(const char* format, ...) {
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

void StepText::PrintWeight(const char* field, WeightId id) {
  if (id != kNoWeight) Print(" %s %s", field, name_(context_, id));
}

void StepText::PrintFloat(const char* field, float value, float otherwise) {
  if (value != otherwise) Print(" %s %.6g", field, static_cast<double>(value));
}

size_t DumpProgram(const Program& program, WeightNamer name, const void* context, Span<char> text) {
  StepText out(text, name, context);
  for (size_t i = 0; i < program.values.size(); ++i) DumpValue(program, i, &out);
  for (size_t i = 0; i < program.ropes.size(); ++i) {
    out.Print("rope %zu dim %u amplitude %.6g\n", i, program.ropes[i].rotary_dim,
              static_cast<double>(program.ropes[i].amplitude));
  }
  for (size_t i = 0; i < program.kinds.size(); ++i) DumpKind(program.kinds[i], i, &out);
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    const OpContract& op = ContractOf(step.op());
    out.Print("%4zu %-11s", i, op.name);
    if (step.in != kNoValue) out.Print(" in %%%u", step.in);
    if (step.out != kNoValue) {
      out.Print(" out %s%%%u", OperandsOf(step).accumulates ? "+" : "", step.out);
    }
    op.dump(step, &out);
    out.Print("\n");
  }
  return out.size();
}

}  // namespace arn
