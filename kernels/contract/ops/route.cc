#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

struct RouteContract : OpDefaults<RouteParams> {
  static Status Check(const RouteParams& p, const StepCheck& check) {
    if (p.n_chosen == 0 || p.n_chosen > p.n_experts) {
      return check.ValueError("experts of a token", p.n_chosen, p.n_experts);
    }
    ARN_TRY(check.HasWidth("input width", check.step().in, p.n_experts));
    return check.HasWidth("output width", check.step().out, 2u * p.n_chosen);
  }

  static void Dump(const RouteParams& p, const Step&, StepText* text) {
    text->Print(" %u of %u %s%s", p.n_chosen, p.n_experts,
                p.route_score == RouteScore::kSigmoid ? "sigmoid" : "softmax",
                p.norm_topk_prob ? " norm_topk_prob" : "");
  }
};

}  // namespace

constinit const OpContract kRouteOp =
    MakeOp<RouteContract>("route", kHasIn | kHasOut | kInEncoder | kInDecoder);

}  // namespace arn
