// --kv-file: where the KV cache goes that memory has no room for.
#pragma once

#include <arenite/arenite.h>

#include <string>

#include "tools/arenite/model.h"

namespace CLI {
class App;
}

namespace arn::tool {

// Adds --kv-file, whose value goes to *file.
void AddKvFileOption(CLI::App* app, std::string* file);

// Returns the name for arn_session_options.kv_file, "" for none. `given`: the option's value. For
// "auto" a new name in $TMPDIR, else /var/tmp, if the session needs more memory than is free, and
// for "auto:SIZE" if it needs more than that; says so on stderr unless `is_quiet`. Throws Error.
std::string ChooseKvFile(const std::string& given, const Model& model,
                         const arn_session_options& options, bool is_quiet);

}  // namespace arn::tool
