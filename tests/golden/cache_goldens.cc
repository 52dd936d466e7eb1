#include "tests/golden/cache_goldens.h"

#include <cstring>

#include "nlohmann/json.hpp"
#include "tests/harness/bundles.h"

namespace arn::test {
namespace {

constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

nlohmann::json LoadCacheGoldens(const std::string& part) {
  return nlohmann::json::parse(ReadText(SourcePath("tests/golden/data/cache/" + part + ".json")));
}

std::vector<float> DecodeFloats(const std::string& base64) {
  std::string bytes;
  uint32_t bits = 0, n_bits = 0;
  for (const char c : base64) {
    if (c == '=') break;
    const char* digit = std::strchr(kDigits, c);
    if (c == '\0' || digit == nullptr) {
      ADD_FAILURE() << "not base64";
      return {};
    }
    bits = bits << 6 | static_cast<uint32_t>(digit - kDigits);
    n_bits += 6;
    if (n_bits < 8) continue;
    n_bits -= 8;
    bytes.push_back(static_cast<char>(bits >> n_bits & 0xff));
  }
  EXPECT_EQ(0u, bytes.size() % sizeof(float));
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

}  // namespace arn::test
