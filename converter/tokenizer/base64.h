// Base64 as RFC 4648 has it, with its padding.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace arn::convert {

// False when the text is not base64.
bool DecodeBase64(std::string_view text, std::vector<uint8_t>* out);

}  // namespace arn::convert
