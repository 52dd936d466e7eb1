// The files in data/cache, which make_cache_goldens.py explains.
#pragma once

#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace arn::test {

// The cases of data/cache/PART.json.
nlohmann::json LoadCacheGoldens(const std::string& part);

// The floats of a base64 string; empty, and the test fails, when it is none.
std::vector<float> DecodeFloats(const std::string& base64);

}  // namespace arn::test
