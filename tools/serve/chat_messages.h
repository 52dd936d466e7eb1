// The messages and tools of a chat request, checked and as chat templates take them.
#pragma once

#include <string>
#include <vector>

#include "tools/serve/image_reader.h"
#include "tools/serve/json_fields.h"

namespace arn::serve {

// Returns the messages with texts for lists of text parts, "system" for the role "developer", calls
// with their arguments as JSON values, and the name of its call in each tool message. Content with
// images stays a list, with {"type": "image"} in the place of each; adds the images to `images`,
// null if the model takes none. Throws ApiError with the path of what is wrong.
Json ReadMessages(const Json& messages, std::vector<ImageSource>* images);

// Checks a list of function tools. Throws ApiError.
void CheckTools(const Json& tools);
// Returns the name in a tool choice that is an object. Throws ApiError unless `tools` has it.
std::string ReadNamedTool(const Json& choice, const Json& tools);

}  // namespace arn::serve
