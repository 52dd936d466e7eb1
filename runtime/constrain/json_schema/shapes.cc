#include "runtime/constrain/json_schema/shapes.h"

#include "runtime/constrain/json_schema/scalars.h"

namespace arn::json_schema {

Status ShapeBuilder::Add(void* self, uint32_t types, Span<const Fact> facts) {
  return static_cast<ShapeBuilder*>(self)->Add(types, facts);
}

Status ShapeBuilder::Add(uint32_t types, Span<const Fact> facts) {
  types_ |= types;
  if ((types & kNumberBit) != 0) ARN_TRY(AddNumbers(&context_, facts, &numbers_));
  if ((types & kStringBit) != 0) ARN_TRY(AddStrings(&context_, facts, false, &strings_));
  if (context_.terms->failed()) return Status::kOutOfMemory;
  if ((types & kArrayBit) != 0) ARN_TRY(AddArrays(&context_, facts, node_));
  if ((types & kObjectBit) != 0) ARN_TRY(AddObjects(&context_, facts, node_));
  return Status::kOk;
}

Status ShapeBuilder::Run(NodeId node) {
  node_ = node;
  types_ = 0;
  numbers_ = {};
  strings_ = {};
  ARN_TRY(expander_.Run(context_.nodes[node].atoms, Add, this));
  Terms* const terms = context_.terms;
  Term number = kNothing, content = kNothing;
  ARN_TRY(NumberTerm(&context_, &numbers_, &number));
  ARN_TRY(StringTerm(&context_, &strings_, &content));
  const Style& style = context_.style;
  const Term scalars[] = {
      (types_ & kNullBit) != 0 ? style.null_value : kNothing,
      (types_ & kFalseBit) != 0 ? style.false_value : kNothing,
      (types_ & kTrueBit) != 0 ? style.true_value : kNothing,
      number,
      terms->Concat(style.quote, terms->Concat(content, style.quote)),
  };
  context_.nodes[node].scalars = terms->Either(scalars);
  return terms->failed() ? Status::kOutOfMemory : Status::kOk;
}

namespace {

struct NameSink {
  Context* context;
  Scalars strings;
  uint32_t types;
};

Status AddNames(void* self, uint32_t types, Span<const Fact> facts) {
  NameSink* const sink = static_cast<NameSink*>(self);
  sink->types |= types;
  if ((types & kStringBit) == 0) return Status::kOk;
  return AddStrings(sink->context, facts, true, &sink->strings);
}

}  // namespace

Status NameTerm(Context* context, Span<const Atom> atoms, List<StringView>* names, uint32_t* types,
                Term* out) {
  NameSink sink = {context, {}, 0};
  ARN_TRY(Expander(context).Run(atoms, AddNames, &sink));
  *out = sink.strings.others;
  if (types != nullptr) *types = sink.types;
  SortTexts(&sink.strings.texts);
  for (const StringView text : sink.strings.texts) {
    ARN_TRY(names->Append(context->arena, text));
    *out = context->terms->Either(*out, context->strings.Text(text));
  }
  return context->terms->failed() ? Status::kOutOfMemory : Status::kOk;
}

}  // namespace arn::json_schema
