// The memory that arenite serve prints before it listens.
#pragma once

#include <cstdint>
#include <string>

#include "tools/serve/http_server.h"
#include "tools/serve/serve_models.h"

namespace arn::tool {

// `text`: null without a model that makes text. other_bytes: of the other models, and of images.
std::string MemoryText(const TextModel* text, const serve::HttpOptions& http, bool has_speech,
                       uint64_t other_bytes);

}  // namespace arn::tool
