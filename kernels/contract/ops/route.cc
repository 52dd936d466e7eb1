#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

struct RouteContract : OpDefaults<RouteParams> {
  static void Operands(const RouteParams& p, StepOperands* out) { out->AddWeight(p.correction); }

  static Status Check(const RouteParams& p, const StepCheck& check) {
    if (p.n_chosen == 0 || p.n_chosen > p.n_experts) {
      return check.ValueError("experts of a token", p.n_chosen, p.n_experts);
    }
    if (p.n_groups != 0) ARN_TRY(CheckGroups(p, check));
    if (p.correction != kNoWeight) {
      ARN_TRY(check.Vector("router correction", p.correction, p.n_experts));
    }
    ARN_TRY(check.HasWidth("input width", check.step().in, p.n_experts));
    return check.HasWidth("output width", check.step().out, 2u * p.n_chosen);
  }

  // There are enough experts in the chosen groups, and enough scores in each.
  static Status CheckGroups(const RouteParams& p, const StepCheck& check) {
    if (p.n_experts % p.n_groups != 0 || p.n_groups > kMaxRouterGroups) {
      return check.ValueError("router groups", p.n_groups, kMaxRouterGroups);
    }
    const uint32_t experts = p.n_experts / p.n_groups;
    if (p.n_groups_chosen == 0 || p.n_groups_chosen > p.n_groups) {
      return check.ValueError("router groups of a token", p.n_groups_chosen, p.n_groups);
    }
    if (experts < 2) return check.ValueError("experts of a router group", experts, 2);
    const uint32_t most = experts * p.n_groups_chosen;
    return p.n_chosen <= most ? Status::kOk
                              : check.ValueError("experts of a token", p.n_chosen, most);
  }

  static const char* NameOf(RouteScore score) {
    switch (score) {
      case RouteScore::kSoftmax: return "softmax";
      case RouteScore::kSigmoid: return "sigmoid";
      case RouteScore::kSparseMixer: return "sparse_mixer";
    }
    return "";
  }

  static void Dump(const RouteParams& p, const Step&, StepText* text) {
    text->Print(" %u of %u %s%s", p.n_chosen, p.n_experts, NameOf(p.route_score),
                p.norm_topk_prob ? " norm_topk_prob" : "");
    if (p.n_groups != 0) {
      text->Print(" groups %u of %u", p.n_groups_chosen, p.n_groups);
    }
    text->PrintWeight("correction", p.correction);
    text->PrintFloat("epsilon", p.topk_epsilon, 0.0f);
    text->PrintFloat("least", p.topk_least, 0.0f);
    text->PrintFloat("jitter", p.router_jitter, 0.0f);
  }
};

}  // namespace

constinit const OpContract kRouteOp =
    MakeOp<RouteContract>("route", kHasIn | kHasOut | kInEncoder | kInDecoder);

}  // namespace arn
