// Chat messages: as JSON for chat templates, and in a file beside a saved session.
#pragma once

#include <string>
#include <vector>

#include "tools/arenite/chat_format.h"

namespace arn::tool {

// Returns [{"role": "user", "content": "..."}, ...].
std::string ToJson(const std::vector<Message>& messages);

// Returns the path of the history file for the saved session `path`.
std::string HistoryPath(const std::string& path);
// Both throw Error. LoadHistory also if the file was not written by SaveHistory.
void SaveHistory(const std::string& path, const std::vector<Message>& messages);
std::vector<Message> LoadHistory(const std::string& path);

}  // namespace arn::tool
