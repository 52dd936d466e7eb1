// A list of texts as a term.
#pragma once

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/constrain/terms.h"

namespace arn {

// The term of the texts in `choices`, which NUL bytes separate. Refuses an empty one, by its
// number.
Status ParseChoices(Terms* terms, StringView choices, Term* out, Diag* diag);

}  // namespace arn
