// The body of /v1/responses as that of /v1/chat/completions: one reader checks both.
#pragma once

#include <string>

#include "tools/serve/json_fields.h"
#include "tools/serve/work.h"

namespace arn::serve {

// Returns the chat request that asks for the same reply. Fields that both have are passed on as
// they are. Throws ApiError.
Json ChatOfResponse(const Json& body);
// Returns the name in a response request of a chat request's field, for errors: "messages[0].role"
// -> "input".
std::string ResponseField(const std::string& chat_field);
// Returns what a response repeats of its request, with defaults for what is absent.
Json ResponseFields(const Json& body, const Settings& settings);

}  // namespace arn::serve
