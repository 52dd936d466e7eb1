// Reads the output of the tool's JSON writer with another library.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "nlohmann/json.hpp"
#include "tools/arenite/io.h"
#include "tools/arenite/json.h"

namespace arn::tool {
namespace {

std::string RoundTrip(std::string_view text) {
  JsonWriter writer;
  writer.BeginArray().String(text).EndArray();
  return nlohmann::json::parse(writer.Finish())[0].get<std::string>();
}

TEST(JsonWriter_String, EveryByteBelow128_ComesBack) {
  std::string text;
  for (int c = 0; c < 128; ++c) text += static_cast<char>(c);
  EXPECT_EQ(text, RoundTrip(text));
}

TEST(JsonWriter_String, ValidUtf8_ComesBack) {
  for (const char* text : {"\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
                           "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF", "a\xC3\xA9z"}) {
    EXPECT_EQ(text, RoundTrip(text));
  }
}

TEST(JsonWriter_String, InvalidUtf8_BecomesReplacementCharacters) {
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ("a" + r + "b", RoundTrip("a\xFF"
                                     "b"));
  EXPECT_EQ(r, RoundTrip("\xC3"));                          // truncated
  EXPECT_EQ(r + r, RoundTrip("\xC0\xAF"));                  // overlong
  EXPECT_EQ(r + r + r, RoundTrip("\xED\xA0\x80"));          // a surrogate
  EXPECT_EQ(r + r + r + r, RoundTrip("\xF4\x90\x80\x80"));  // above U+10FFFF
  EXPECT_EQ(r + r + "x", RoundTrip("\xF0\x9F"
                                   "x"));
}

TEST(JsonWriter_Structure, NestedValues_AreWhatWasWritten) {
  JsonWriter writer;
  writer.BeginObject();
  writer.Key("list").BeginArray().Int(-1).Uint(UINT64_MAX).Bool(true).EndArray();
  writer.Key("empty").BeginObject().EndObject();
  writer.Key("ids").Ids({3, 1, 2});
  writer.Key("number").Number(0.25).Key("nan").Number(NAN);
  writer.EndObject();
  const nlohmann::json wanted = {{"list", {-1, UINT64_MAX, true}},
                                 {"empty", nlohmann::json::object()},
                                 {"ids", {3, 1, 2}},
                                 {"number", 0.25},
                                 {"nan", nullptr}};
  EXPECT_EQ(wanted, nlohmann::json::parse(writer.Finish()));
}

TEST(HumanBytes_Sizes, AreReadable) {
  EXPECT_EQ("0 B", HumanBytes(0));
  EXPECT_EQ("999 B", HumanBytes(999));
  EXPECT_EQ("1.00 kB", HumanBytes(1000));
  EXPECT_EQ("10.0 MB", HumanBytes(9999999));
  EXPECT_EQ("123 GB", HumanBytes(123456789012));
}

}  // namespace
}  // namespace arn::tool
