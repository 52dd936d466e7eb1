// Default folder of the GPU's pipeline cache and kernel tuning results.
#pragma once

#include <string>

namespace arn::tool {

// Returns $XDG_CACHE_HOME/arenite, else ~/.cache/arenite; empty if neither is set.
std::string DefaultDeviceFolder();

// Creates the folder if it is missing. Returns false if `folder` is empty, or is the default and
// cannot be created. Throws Error if another folder cannot be created.
bool MakeDeviceFolder(const std::string& folder);

}  // namespace arn::tool
