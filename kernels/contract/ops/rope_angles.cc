#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

struct RopeAnglesContract : OpDefaults<RopeAnglesParams> {
  static Status Check(const RopeAnglesParams& p, const StepCheck& check) {
    const Program& program = check.program();
    if (p.rope >= program.ropes.size()) return check.ValueError("rope", p.rope, 0);
    const RopeKind& rope = program.ropes[p.rope];
    if (rope.rotary_dim % 2 != 0 || rope.inv_freq.size() != rope.rotary_dim / 2) {
      return check.ValueError("rope frequencies", rope.inv_freq.size(), rope.rotary_dim / 2);
    }
    if (!rope.axes.empty() && rope.axes.size() != rope.rotary_dim / 2) {
      return check.ValueError("rope axes", rope.axes.size(), rope.rotary_dim / 2);
    }
    for (const uint8_t axis : rope.axes) {
      if (axis >= kRopeAxes) return check.ValueError("rope axis", axis, kRopeAxes - 1);
    }
    return check.HasWidth("output width", check.step().out, rope.rotary_dim);
  }

  static void Dump(const RopeAnglesParams& p, const Step&, StepText* text) {
    text->Print(" rope %u", p.rope);
  }
};

}  // namespace

constinit const OpContract kRopeAnglesOp =
    MakeOp<RopeAnglesContract>("rope_angles", kHasOut | kInEncoder | kInDecoder);

}  // namespace arn
