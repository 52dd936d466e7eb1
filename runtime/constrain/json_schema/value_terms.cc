#include "runtime/constrain/json_schema/value_terms.h"

#include <algorithm>

namespace arn::json_schema {
namespace {

bool IsNeverEmpty(const Terms& terms, const CustomArgs& args) {
  (void)terms;
  (void)args;
  return false;
}
ByteSet HasNoFirst(Terms* terms, const CustomArgs& args) {
  (void)terms;
  (void)args;
  return {};
}
Term DerivesNothing(Terms* terms, const CustomArgs& args, uint8_t byte, ByteSet* same) {
  (void)terms;
  (void)args;
  (void)byte;
  (void)same;
  return kNothing;
}
constexpr CustomOps kKeep = {IsNeverEmpty, nullptr, HasNoFirst, DerivesNothing, nullptr};
// Terms of a custom term.
constexpr size_t kMaxKept = 60'000;

}  // namespace

Term KeepTerm(Terms* terms, Span<const Term> rules) {
  Term term = kNothing;
  for (size_t first = 0; first < rules.size(); first += kMaxKept) {
    const size_t n = std::min(kMaxKept, rules.size() - first);
    Term kept = terms->Custom(&kKeep, rules.subspan(first, n), {});
    if (term != kNothing) {
      const Term both[] = {kept, term};
      kept = terms->Custom(&kKeep, both, {});
    }
    term = kept;
  }
  return term;
}

Status BuildValueTerms(Context* context, const Style& style, Term* out) {
  Terms* const terms = context->terms;
  NodeTable& nodes = context->nodes;
  List<Term> rules;
  for (NodeId i = 0; i < nodes.size(); ++i) {
    if (!nodes[i].has_value) continue;
    nodes[i].rule = terms->NewRule("value");
    ARN_TRY(rules.Append(context->arena, nodes[i].rule));
  }
  ARN_ASSIGN(Span<TermTable> table, context->arena->AllocateArray<TermTable>(1));
  ARN_ASSIGN(Span<NodeTable> kept, context->arena->AllocateArray<NodeTable>(1));
  kept[0] = nodes;
  table[0] = {style, kept.data(), KeepTerm(terms, rules.span())};
  for (NodeId i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    if (!node.has_value) continue;
    List<Term> alternatives;
    ARN_TRY(alternatives.Append(context->arena, node.scalars));
    for (const ArrayShape* const shape : node.arrays) {
      if (!CanFinish(*shape, 0, 0)) continue;
      const Term rest =
          shape->unique_content == kNothing
              ? ArrayTerm(terms, context->arena, shape, table.data())
              : UniqueTextsTerm(terms, context->arena, context->strings, shape, table.data());
      if (rest == kNothing) return Status::kOutOfMemory;
      ARN_TRY(alternatives.Append(
          context->arena, terms->Concat(terms->Byte('['), terms->Concat(style.space, rest))));
    }
    for (const ObjectShape* const shape : node.objects) {
      if (shape->required_from.empty()) continue;
      const Term rest = ObjectTerm(terms, context->arena, context->strings, shape, table.data());
      if (rest == kNothing) return Status::kOutOfMemory;
      ARN_TRY(alternatives.Append(
          context->arena, terms->Concat(terms->Byte('{'), terms->Concat(style.space, rest))));
    }
    terms->Define(node.rule, terms->Either(alternatives.span()));
    if (terms->failed()) return Status::kOutOfMemory;
  }
  *out = nodes[0].rule;
  return Status::kOk;
}

}  // namespace arn::json_schema
