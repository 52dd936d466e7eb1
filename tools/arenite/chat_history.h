// The messages of a talk: as JSON for chat templates, and in a file beside a saved session.
#pragma once

#include <string>
#include <vector>

#include "tools/arenite/chat_format.h"

namespace arn::tool {

// [{"role": "user", "content": "..."}, ...]
std::string ToJson(const std::vector<Message>& messages);

// The file that goes with the saved session `path`.
std::string HistoryPath(const std::string& path);
// Both throw Error. Load: also when the file is not one that Save wrote.
void SaveHistory(const std::string& path, const std::vector<Message>& messages);
std::vector<Message> LoadHistory(const std::string& path);

}  // namespace arn::tool
