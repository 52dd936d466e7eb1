// The pages at / and /speech, which CMake puts together of the files of tools/serve/page.
#pragma once

#include <string_view>

namespace arn::serve {

// Talks to the model that makes text.
std::string_view ChatPage();
// Has speech written down.
std::string_view SpeechPage();

}  // namespace arn::serve
