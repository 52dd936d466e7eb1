#include "kernels/cpu/simd/kernels.h"

#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/simd/targets.h"
// Must follow targets.h.
#include <hwy/targets.h>

namespace arn::cpu {

void ChooseSimdKernels(SimdKernels* out) {
  ChooseTargets();
  out->norm = ChooseNorm();
  out->gated_act = ChooseGatedAct();
  out->act = ChooseAct();
  out->softcap = ChooseSoftcap();
  out->add_row = ChooseAddRow();
  out->quantize_row = ChooseQuantizeRow();
  out->quantize_groups = ChooseQuantizeGroups();
  out->qkv_rope = ChooseQkvRope();
  out->attention = ChooseAttention();
  out->merge_attention = ChooseMergeAttention();
  out->int8_dot = ChooseInt8Dot();
  out->conv = ChooseConv();
  out->scan = ChooseScan();
  out->scale_row = ChooseScaleRow();
  out->multiply = ChooseMultiply();
  out->linear_attention = ChooseLinearAttention();
  out->gate = ChooseGate();
  out->low_rank = kHasAdapters ? ChooseLowRank() : nullptr;
  if (kHasAdapters) out->low_rank_integer = ChooseLowRankInteger();
}

}  // namespace arn::cpu
