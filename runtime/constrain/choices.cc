#include "runtime/constrain/choices.h"

#include "platform/base/result.h"

namespace arn {

Status ParseChoices(Terms* terms, StringView choices, Term* out, Diag* diag) {
  const uint32_t mark = terms->PushedMark();
  uint32_t n = 0;
  for (size_t start = 0, end = 0; start <= choices.size; start = end + 1, ++n) {
    for (end = start; end < choices.size && choices.data[end] != '\0';) ++end;
    if (start == end) {
      terms->ReleaseTo(mark);
      return diag->Fail(Status::kBadArgument, "choices: number %u is empty", n + 1);
    }
    terms->Push(terms->Literal({choices.data + start, end - start}));
  }
  if (!terms->failed()) *out = terms->Either({terms->PushedSince(mark), n});
  terms->ReleaseTo(mark);
  if (!terms->failed()) return Status::kOk;
  return diag->Fail(TermFailureStatus(terms->failure()), "choices: the list %s",
                    terms->FailureText());
}

}  // namespace arn
