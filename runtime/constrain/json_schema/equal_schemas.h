// Schemas that say the same in the same words, so that each is compiled once: the 200 properties of
// a record are mostly a few types.
#pragma once

#include "runtime/constrain/json_schema/document.h"

namespace arn::json_schema {

// (*out)[value]: the first value of the document that is equal to it; for schemas, apart from
// annotations (title, description, $defs).
Status FindEqualSchemas(const Document& document, Arena* arena, Span<uint32_t>* out);

}  // namespace arn::json_schema
