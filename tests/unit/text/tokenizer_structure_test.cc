// Tokenizers combined from many parts (data/make_structure_cases.py): a converted one gives the
// reference's ids and texts, any other is refused with the reason.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/unit/text/tokenizer_fixture.h"

namespace arn::test {
namespace {

using nlohmann::json;

// The structures at the start of the file, all of which convert.
constexpr size_t kKnown = 20;
// The least number of random structures that convert. The others have an unsupported order of
// ByteLevel, Metaspace and decoders.
constexpr size_t kLeastConverted = 95;

json ReadJson(const std::string& name) {
  std::ifstream file(std::string(ARN_TEXT_TEST_DATA) + "/" + name, std::ios::binary);
  return json::parse(std::string(std::istreambuf_iterator<char>(file), {}));
}

// Returns the whole tokenizer.json of a structure; make_structure_cases.py does the same.
json Apply(const json& structure) {
  json state = ReadJson(structure["base"].get<std::string>() + "/tokenizer.json");
  state["normalizer"] = structure["normalizer"];
  state["pre_tokenizer"] = structure["pre_tokenizer"];
  state["post_processor"] = nullptr;
  const json& vocab = state["model"]["vocab"];
  json ids = vocab;
  if (vocab.is_array()) {
    ids = json::object();
    for (size_t i = 0; i < vocab.size(); ++i) ids[vocab[i][0].get<std::string>()] = i;
  }
  size_t next = ids.size();
  state["added_tokens"] = json::array();
  for (json token : structure["added_tokens"]) {
    const std::string content = token["content"];
    const bool is_known = ids.contains(content);
    token["id"] = is_known ? ids[content].get<size_t>() : next++;
    state["added_tokens"].push_back(token);
  }
  return state;
}

void ExpectSame(const LoadedTokenizer& t, const json& wanted) {
  Tokenizer::EncodeOptions plain;
  plain.is_plain = true;
  for (size_t i = 0; i < wanted["texts"].size(); ++i) {
    const std::string text = wanted["texts"][i];
    const auto encoded = t.Encode(text);
    EXPECT_EQ(encoded.status, Status::kOk) << encoded.error;
    EXPECT_EQ(json(encoded.ids), wanted["ids"][i]) << wanted["texts"][i];
    EXPECT_EQ(json(t.Encode(text, plain).ids), wanted["plain_ids"][i]) << wanted["texts"][i];
  }
  for (const json& entry : wanted["decode"]) {
    const std::vector<int32_t> ids = entry[0];
    EXPECT_EQ(t.Decode(ids, false), entry[1].get<std::string>()) << entry[0];
    EXPECT_EQ(t.Decode(ids, true), entry[2].get<std::string>()) << entry[0];
  }
}

TEST(TokenizerStructure, PutTogetherInManyWays_SameIdsAndTexts) {
  const json cases = ReadJson("structure_cases.json");
  size_t n_converted = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    json shown = cases[i];
    for (const char* bulk : {"texts", "ids", "plain_ids", "decode"}) shown.erase(bulk);
    SCOPED_TRACE(std::to_string(i) + ": " + shown.dump());
    convert::TokenizerTables tables;
    std::string error;
    if (!convert::ConvertTokenizerJson(Apply(cases[i]).dump(), &tables, &error)) {
      EXPECT_NE(error.find("not supported"), std::string::npos) << error;
      EXPECT_GE(i, kKnown) << error;
      continue;
    }
    const auto t = LoadedTokenizer::FromImage(MakeImage(tables));
    EXPECT_TRUE(t.ok()) << t.error();
    if (!t.ok()) continue;
    ExpectSame(t, cases[i]);
    ++n_converted;
  }
  std::printf("%zu of %zu structures convert\n", n_converted, cases.size());
  EXPECT_GE(n_converted, kKnown + kLeastConverted);
}

}  // namespace
}  // namespace arn::test
