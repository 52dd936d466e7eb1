// Makes small documents of tokenizer.json files, for tests that read one thousands of times.
#pragma once

#include "nlohmann/json.hpp"

namespace arn::test {

// Leaves out most tokens and merges of a valid tokenizer.json, and renumbers the others: the
// added tokens, the first merges with their parts, and a sample of the rest stay.
nlohmann::json SmallTokenizer(nlohmann::json document);

}  // namespace arn::test
