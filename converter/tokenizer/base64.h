// Base64 of RFC 4648, with padding.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace arn::convert {

// Returns false if the text is not base64.
bool DecodeBase64(std::string_view text, std::vector<uint8_t>* out);
std::string EncodeBase64(const std::vector<uint8_t>& bytes);

}  // namespace arn::convert
