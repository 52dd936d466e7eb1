// Checks that the library accepts a written bundle.
#pragma once

#include <filesystem>

namespace arn::convert {

// Opens `bundle`, whose final name is `output`, and plans a session with it. Throws ConvertError
// with `output` and the library's own sentence if it is refused.
void ReadBack(const std::filesystem::path& bundle, const std::filesystem::path& output);

// Opens the adapter `bundle`, whose final name is `output`, for `base`. Throws as above.
void ReadBackAdapter(const std::filesystem::path& bundle, const std::filesystem::path& base,
                     const std::filesystem::path& output);

}  // namespace arn::convert
