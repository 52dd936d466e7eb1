#include "runtime/constrain/json_schema/value_terms.h"

#include <algorithm>

#include "runtime/constrain/json_schema/arguments.h"

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

Status AppendSyntax(const ObjectSyntax& syntax, Arena* arena, List<Term>* out) {
  for (const Term term : {syntax.open, syntax.name_begin, syntax.name_end, syntax.value_end,
                          syntax.comma, syntax.close}) {
    ARN_TRY(out->Append(arena, term));
  }
  return Status::kOk;
}

Status BuildValueTerms(Context* context, const TermTable** out) {
  Terms* const terms = context->terms;
  Arena* const arena = context->arena;
  const Style& style = context->style;
  NodeTable& nodes = context->nodes;
  List<Term> kept;
  for (const Term term : {style.space, style.comma, style.quote}) {
    ARN_TRY(kept.Append(arena, term));
  }
  ARN_TRY(AppendSyntax(style.object, arena, &kept));
  ARN_ASSIGN(Span<Term> rules, arena->AllocateArray<Term>(nodes.size()));
  for (NodeId i = 0; i < nodes.size(); ++i) {
    rules[i] = nodes[i].has_value ? terms->NewRule("value") : kNothing;
    ARN_TRY(kept.Append(arena, rules[i]));
  }
  ARN_ASSIGN(Span<TermTable> table, arena->AllocateArray<TermTable>(1));
  table[0] = {style, rules, KeepTerm(terms, kept.span())};
  *out = table.data();
  for (NodeId i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    if (!node.has_value) continue;
    List<Term> alternatives;
    ARN_TRY(alternatives.Append(arena, node.scalars));
    for (const ArrayShape* const shape : node.arrays) {
      if (!CanFinish(*shape, 0, 0)) continue;
      if (shape->unique_content != kNothing && style.form == TextForm::kUtf8) {
        return context->diag->Fail(Status::kUnsupported,
                                   "JSON schema: uniqueItems is not supported in the calls of this "
                                   "model");
      }
      const Term rest = shape->unique_content == kNothing
                            ? ArrayTerm(terms, arena, shape, *out)
                            : UniqueTextsTerm(terms, arena, context->strings, shape, *out);
      if (rest == kNothing) return Status::kOutOfMemory;
      ARN_TRY(alternatives.Append(
          arena, terms->Concat(terms->Byte('['), terms->Concat(style.space, rest))));
    }
    for (ObjectShape* const shape : node.objects) {
      if (shape->required_from.empty()) continue;
      if (style.object.has_words) ARN_TRY(FitNames(context, shape));
      const Term rest = ObjectTerm(terms, arena, context->strings, shape, *out);
      if (rest == kNothing) return Status::kOutOfMemory;
      ARN_TRY(alternatives.Append(arena, terms->Concat(style.object.open, rest)));
    }
    terms->Define(rules[i], terms->Either(alternatives.span()));
    if (terms->failed()) return Status::kOutOfMemory;
  }
  return Status::kOk;
}

}  // namespace arn::json_schema
