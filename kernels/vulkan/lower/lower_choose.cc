// Lowers the sampling of a token from the first row of logits (shaders/choose.comp). It precedes
// the steps that run the token.
#include "kernels/vulkan/device/device.h"
#include "kernels/vulkan/lower/choice_words.h"
#include "kernels/vulkan/lower/lower.h"
#include "kernels/vulkan/lower/run_words.h"

namespace arn::vulkan {

bool HasChoice(const Program& program) {
  if (program.max_logit_rows == 0) return false;
  for (const Step& step : program.steps) {
    if (step.op() == Op::kLogits) return true;
  }
  return false;
}

Status Lowering::LowerChoice(uint32_t n_dispatches) {
  const uint64_t row_bytes = uint64_t{program_.vocab} * sizeof(float);
  Dispatch d;
  d.shader = Shader::kChoose;
  d.modes = BitOf(Mode::kOne);
  d.constants[kWidthId] = traits_.choice_width;
  Bind(&d, 1, {Home::kLogits, 0, 0, row_bytes});
  Bind(&d, 2, {Home::kLogits, 0, program_.max_logit_rows * row_bytes, kKeptRows * row_bytes});
  Bind(&d, 3, {Home::kRun, 0, 0, (kRunRows + kRowWords) * sizeof(uint32_t)});
  const uint32_t grid_words = 3 * (n_dispatches + 1);  // including its own
  Bind(&d, 4, {Home::kGrids, 0, 0, grid_words * sizeof(uint32_t)});
  Bind(&d, 5, {Home::kChoice, 0, 0, sizeof(ChoiceWords)});
  ChoosePush push = {};
  push.vocab = program_.vocab;
  push.n_kept = kKeptRows;
  push.n_grid_words = grid_words;
  d.SetPush(push);
  return sink_->Add(d, diag_);
}

}  // namespace arn::vulkan
