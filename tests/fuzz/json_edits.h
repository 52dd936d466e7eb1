// Edits of a JSON document that keep it JSON, chosen by the bytes of a fuzzer.
#pragma once

#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/fuzz/choices.h"

namespace arn::test {

// What an edit puts in: `values`, parts of the document itself, and members named by `keys`.
struct JsonMaterial {
  nlohmann::json values = nlohmann::json::array();
  std::vector<std::string> keys;
};

// Replaces, removes or adds one node.
void EditJson(const JsonMaterial& material, nlohmann::json* root, Choices* choices);

}  // namespace arn::test
