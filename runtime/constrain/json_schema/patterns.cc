#include "runtime/constrain/json_schema/formats.h"
#include "runtime/constrain/regex_parse.h"

namespace arn::json_schema {

Status PatternTerm(Context* context, StringView pattern, uint32_t where, Term* out) {
  RegexOptions options;
  options.search = true;
  options.form = context->strings.form();
  Diag reason;
  const Status status = ParseRegex(context->terms, pattern, options, out, &reason);
  if (status == Status::kOk) return status;
  context->diag->Clear();
  return context->Refuse(where, reason.text());
}

}  // namespace arn::json_schema
