// Loads data/cache/*.json, described in make_cache_goldens.py.
#pragma once

#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace arn::test {

// Returns the cases of data/cache/PART.json.
nlohmann::json LoadCacheGoldens(const std::string& part);

// Decodes base64 floats. On bad input returns an empty vector and fails the test.
std::vector<float> DecodeFloats(const std::string& base64);

}  // namespace arn::test
