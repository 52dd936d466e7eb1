#include "runtime/constrain/json_schema/compile.h"

#include "runtime/constrain/json_schema/context.h"
#include "runtime/constrain/json_schema/equal_schemas.h"
#include "runtime/constrain/json_schema/shapes.h"
#include "runtime/constrain/json_schema/solve.h"
#include "runtime/constrain/json_schema/value_terms.h"

namespace arn {
namespace {

using json_schema::Context;

// Steps of a schema, and more for each of its bytes: well below 100 ms a kilobyte.
constexpr uint64_t kSteps = 200'000;
constexpr uint64_t kStepsPerByte = 1'000;

Status CompileInto(StringView text, const json_schema::Style& style, Context* context, Term* out) {
  Diag* const diag = context->diag;
  ARN_ASSIGN(Span<char> copy, context->arena->AllocateArray<char>(text.size));
  if (text.size != 0) std::memcpy(copy.data(), text.data, text.size);
  ARN_TRY(context->document.Read({copy.data(), copy.size()}, context->arena, diag));
  if (context->document.size() >= json_schema::kMaxDocumentValues) return Status::kOutOfMemory;
  context->budget = kSteps + kStepsPerByte * text.size;
  ARN_TRY(context->references.Init(&context->document, context->arena, diag));
  // The same $ref in two resources may name two schemas.
  if (context->references.n_resources() == 1) {
    ARN_TRY(FindEqualSchemas(context->document, context->arena, &context->equal));
  }
  json_schema::List<json_schema::Atom> root;
  json_schema::Atom atom = 0;
  ARN_TRY(context->SchemaAtom(json_schema::Document::kRoot, &atom));
  ARN_TRY(root.Append(context->arena, atom));
  json_schema::NodeId first = 0;
  ARN_TRY(context->FindNode(&root, &first));
  json_schema::ShapeBuilder shapes(context);
  for (json_schema::NodeId i = 0; i < context->nodes.size(); ++i) {
    ARN_TRY(shapes.Run(i));
  }
  ARN_TRY(Solve(context));
  Term value = kNothing;
  ARN_TRY(BuildValueTerms(context, style, &value));
  Terms* const terms = context->terms;
  *out = terms->Concat(style.space, terms->Concat(value, style.space));
  return terms->failed() ? Status::kOutOfMemory : Status::kOk;
}

}  // namespace

Status CompileJsonSchema(StringView text, bool any_order, bool any_whitespace, Terms* terms,
                         Arena* arena, Diag* diag, Term* out) {
  *out = kNothing;
  Context context;
  context.arena = arena;
  context.terms = terms;
  context.diag = diag;
  context.strings.Init(terms);
  json_schema::Style style;
  style.any_order = any_order;
  if (any_whitespace) {
    ByteSet spaces;
    for (const char c : {' ', '\t', '\n', '\r'}) spaces.Add(static_cast<uint8_t>(c));
    style.space = terms->Repeat(terms->Bytes(spaces), 0, kUnbounded);
  }
  diag->Clear();
  const Status status = CompileInto(text, style, &context, out);
  if (status != Status::kOutOfMemory) return status;
  *out = kNothing;
  return diag->Fail(status,
                    "JSON schema: it needs a larger block: %llu bytes of terms and %llu "
                    "bytes of tables are full",
                    static_cast<unsigned long long>(terms->used_bytes()),
                    static_cast<unsigned long long>(arena->used_bytes()));
}

}  // namespace arn
