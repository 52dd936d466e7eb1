#include "runtime/constrain/json_schema/compile.h"

#include <algorithm>

#include "runtime/constrain/json_schema/arguments.h"
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

// Reads a schema and finds the nodes that have a value.
Status FindNodes(StringView text, const json_schema::Style& style, uint64_t max_steps,
                 Context* context) {
  Diag* const diag = context->diag;
  context->style = style;
  context->strings.Init(context->terms, style.form, style.contents);
  ARN_ASSIGN(Span<char> copy, context->arena->AllocateArray<char>(text.size));
  if (text.size != 0) std::memcpy(copy.data(), text.data, text.size);
  ARN_TRY(context->document.Read({copy.data(), copy.size()}, context->arena, diag));
  if (context->document.size() >= json_schema::kMaxDocumentValues) return Status::kOutOfMemory;
  context->budget = std::min(max_steps, kSteps + kStepsPerByte * text.size);
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
  return Solve(context);
}

Status Finish(const Context& context, Status status, Term* out) {
  if (status == Status::kOk && context.terms->failed()) status = Status::kOutOfMemory;
  if (status == Status::kOk) return status;
  *out = kNothing;
  if (status != Status::kOutOfMemory) return status;
  const TermFailure failure = context.terms->failure();
  if (failure != TermFailure::kNone && failure != TermFailure::kBlockFull) {
    return context.diag->Fail(Status::kUnsupported, "JSON schema: it %s", TermFailureText(failure));
  }
  return context.diag->Fail(status,
                            "JSON schema: it needs a larger block: %llu bytes of terms and %llu "
                            "bytes of tables are full",
                            static_cast<unsigned long long>(context.terms->used_bytes()),
                            static_cast<unsigned long long>(context.arena->used_bytes()));
}

void Start(Terms* terms, Arena* arena, Diag* diag, Context* context) {
  context->arena = arena;
  context->terms = terms;
  context->diag = diag;
  diag->Clear();
}

}  // namespace

Status CompileJsonSchema(StringView text, const JsonSchemaOptions& options, Terms* terms,
                         Arena* arena, Diag* diag, Term* out) {
  Context context;
  Start(terms, arena, diag, &context);
  Term space = kEmpty;
  if (options.any_whitespace) {
    space = terms->Repeat(terms->Bytes(ByteSet::Spaces()), 0, kUnbounded);
  }
  const TextForm form = options.any_spelling ? TextForm::kJsonString : TextForm::kCanonicalJson;
  json_schema::Style style = json_schema::JsonStyle(terms, form, space, space, space);
  style.any_order = options.any_order;
  const json_schema::TermTable* table = nullptr;
  Status status = FindNodes(text, style, options.max_steps, &context);
  if (status == Status::kOk) status = BuildValueTerms(&context, &table);
  if (status == Status::kOk) {
    *out = terms->Concat(space, terms->Concat(table->values[0], space));
  }
  return Finish(context, status, out);
}

Status CompileArguments(StringView text, const ArgumentStyle& style, Terms* terms, Arena* arena,
                        Diag* diag, Term* out) {
  Context context;
  Start(terms, arena, diag, &context);
  const json_schema::TermTable* table = nullptr;
  Status status = FindNodes(text, style.values, UINT64_MAX, &context);
  if (status == Status::kOk) status = BuildValueTerms(&context, &table);
  if (status == Status::kOk) status = BuildArguments(&context, style, *table, out);
  return Finish(context, status, out);
}

}  // namespace arn
