// Types, constants, numbers and strings.
#include "schema_cases.h"

namespace arn {
namespace {

TEST(JsonSchemaTest, Types) {
  CheckCases({
      {"true",
       {"null", "true", "0", "\"\"", "[]", "{}", R"({"a":[{"b":null}]})"},
       {"", "nul", "tru", "[,]", "{,}"}},
      {"{}", {"1", "[1,[2,[3]]]"}, {"[1", "1]"}},
      {R"({"type":"null"})", {"null"}, {"false", "0", "\"\"", "nulll"}},
      {R"({"type":"boolean"})", {"true", "false"}, {"null", "0", "\"true\"", "TRUE"}},
      {R"({"type":"string"})", {"\"\"", "\"a\""}, {"a", "null", "\"a"}},
      {R"({"type":"array"})", {"[]", "[1,\"a\",[]]"}, {"{}", "[1,]"}},
      {R"({"type":"object"})", {"{}", R"({"a":{}})"}, {"[]", R"({"a"})", R"({"a":1,})"}},
      {R"({"type":["null","string"]})", {"null", "\"x\""}, {"1", "[]"}},
      {R"({"type":["integer","string"]})", {"1", "1.0", "\"x\""}, {"1.5", "null"}},
      {R"({"type":["integer","number"]})", {"1", "1.5", "1e5"}, {"null"}},
      {R"({"title":"t","description":"d","default":3,"examples":[1],"$comment":"c","unknown":[]})",
       {"1", "\"x\""},
       {}},
  });
}

TEST(JsonSchemaTest, Numbers) {
  CheckCases({
      {R"({"type":"number"})",
       {"0", "-0", "10", "-1.5", "1e5", "1E+5", "0.5e-3", "123456789012345678901234567890"},
       {"01", "+1", ".5", "1.", "1e", "-", "--1", "0x1", "NaN", "Infinity", "1,0"}},
      {R"({"type":"integer"})",
       {"0", "-0", "1", "-17", "1.0", "1.000", "99999999999999999999"},
       {"1.5", "1.01", "0.1", "1.", "01"}},
      {R"({"type":"number","minimum":1.5})",
       {"1.5", "1.50", "1.6", "2", "10", "100.25"},
       {"1.4", "1.49999", "1", "0", "-2", "-1.5"}},
      {R"({"type":"number","maximum":1.5})",
       {"1.5", "1.4999", "1", "0", "-2", "-100"},
       {"1.500001", "1.6", "2", "10"}},
      {R"({"type":"number","exclusiveMinimum":-2})",
       {"-1.999", "-1", "0", "5"},
       {"-2", "-2.0", "-2.0001", "-3", "-10"}},
      {R"({"type":"number","exclusiveMaximum":0})",
       {"-0.001", "-1", "-10"},
       {"0", "-0", "-0.0", "0.001", "1"}},
      // The tightest of several bounds; of two at one number the one that excludes it.
      {R"({"type":"integer","allOf":[{"exclusiveMinimum":5},{"minimum":5},{"minimum":3}]})",
       {"6", "7"},
       {"3", "4", "5"}},
      {R"({"type":"integer","allOf":[{"minimum":5},{"exclusiveMinimum":4},)"
       R"({"exclusiveMinimum":5}]})",
       {"6", "7"},
       {"4", "5"}},
      {R"({"type":"integer","allOf":[{"maximum":5},{"exclusiveMaximum":6},{"maximum":5}]})",
       {"4", "5"},
       {"6"}},
      {R"({"type":"integer","allOf":[{"exclusiveMaximum":5},{"maximum":5},)"
       R"({"exclusiveMaximum":7}]})",
       {"4"},
       {"5", "6"}},
      {R"({"type":"number","minimum":0})", {"0", "-0", "-0.00", "0.1", "1"}, {"-0.1", "-1"}},
      {R"({"type":"integer","minimum":-3,"maximum":12})",
       {"-3", "-1", "0", "9", "10", "12", "12.0"},
       {"-4", "13", "-3.5", "100", "12.5"}},
      {R"({"type":"integer","minimum":99,"exclusiveMaximum":1001})",
       {"99", "100", "999", "1000"},
       {"98", "9", "1001", "990.5", "10000"}},
      {R"({"multipleOf":0.01,"type":"number"})",
       {"0", "0.01", "12.34", "-5", "1.10", "1.100"},
       {"0.001", "1.234"}},
      {R"({"multipleOf":2.5,"type":"number"})",
       {"0", "2.5", "5", "-7.50", "100"},
       {"1", "2", "2.6", "0.5"}},
      {R"({"multipleOf":7,"type":"integer","minimum":10,"maximum":30})",
       {"14", "21", "28"},
       {"7", "10", "35", "20", "0"}},
      {R"({"type":"integer","multipleOf":0.5})", {"1", "2"}, {"0.5", "1.5"}},
      {R"({"type":"number","minimum":1e2})", {"100", "100.0", "1000"}, {"99", "99.99"}},
      {R"({"type":"number","minimum":0.1,"maximum":0.2})",
       {"0.1", "0.15", "0.2", "0.1999"},
       {"0", "0.09", "0.21", "1"}},
      {R"({"minimum":5})", {"5", "\"x\"", "null", "[]", "{}"}, {"4"}},
      {R"({"$schema":"http://json-schema.org/draft-04/schema#","minimum":3,)"
       R"("exclusiveMinimum":true})",
       {"3.1", "4"},
       {"3", "2"}},
      {R"({"$schema":"http://json-schema.org/draft-04/schema#","maximum":3,)"
       R"("exclusiveMaximum":false})",
       {"3", "2"},
       {"3.1"}},
      {R"({"type":"number","not":{"multipleOf":2}})", {"1", "1.5", "3.0"}, {"0", "2", "4.0"}},
      {R"({"type":"number","not":{"type":"integer"}})", {"1.5", "0.25"}, {"1", "1.0", "0"}},
      {R"({"type":"number","not":{"minimum":3,"maximum":5}})",
       {"2", "2.9", "5.1", "6"},
       {"3", "4", "5"}},
      {R"({"type":"integer","format":"int32"})",
       {"2147483647", "-2147483648"},
       {"2147483648", "-2147483649", "1.5"}},
      {R"({"type":"number","format":"double"})", {"1.5", "1e9"}, {"null"}},
      {R"({"format":"uint8"})", {"0", "255", "\"x\""}, {"-1", "256", "0.5"}},
  });
}

TEST(JsonSchemaTest, Constants) {
  CheckCases({
      {R"({"const":"a\"b"})", {R"("a\"b")", R"("\u0061\u0022b")"}, {R"("a")", R"("ab")"}},
      {R"({"const":null})", {"null"}, {"0", "false"}},
      {R"({"const":1})", {"1", "1.0", "1.00"}, {"1.01", "true", "10", "01", "-1"}},
      {R"({"const":0})", {"0", "-0", "0.0", "-0.0"}, {"0.01", "false"}},
      {R"({"const":1.5e1})", {"15", "15.0"}, {"1.5"}},
      {R"({"const":-0.25})", {"-0.25", "-0.250"}, {"0.25", "-0.2"}},
      {R"({"const":[1,["a"]]})",
       {R"([1,["a"]])", R"([1.0,["\u0061"]])"},
       {"[1]", R"([1,["a"],2])", R"([["a"],1])"}},
      {R"({"const":{"a":1,"b":[]}})",
       {R"({"a":1,"b":[]})", R"({"b":[],"a":1})"},
       {R"({"a":1})", R"({"a":1,"b":[],"c":1})", "{}"}},
      {R"({"const":{}})", {"{}"}, {R"({"a":1})", "[]"}},
      {R"({"enum":["red","green",null,3,[1],{"k":true}]})",
       {"\"red\"", "\"green\"", "null", "3", "3.0", "[1]", R"({"k":true})"},
       {"\"re\"", "\"redd\"", "[]", "{}", "true"}},
      {R"({"enum":["a","ab","abc","b"]})",
       {"\"a\"", "\"ab\"", "\"abc\"", "\"b\""},
       {"\"\"", "\"ac\"", "\"abcd\""}},
      {R"({"enum":[1,10,100,1.5]})", {"1", "10", "100", "1.5", "1.50"}, {"1000", "0", "1.6", "15"}},
      {R"({"enum":["a","bb",1,20],"minLength":2,"minimum":5})", {"\"bb\"", "20"}, {"\"a\"", "1"}},
      {R"({"enum":[true,false]})", {"true", "false"}, {"0", "1"}},
      {R"({"type":"string","not":{"enum":["a","b"]}})",
       {"\"\"", "\"c\"", "\"aa\"", "\"\\u0063\""},
       {"\"a\"", "\"b\"", "\"\\u0061\""}},
      {R"({"type":"integer","minimum":1,"maximum":3,"not":{"const":2}})",
       {"1", "3"},
       {"2", "2.0", "4"}},
      {R"({"type":"array","not":{"const":[1]}})",
       {"[]", "[2]", "[1,1]", "[null]"},
       {"[1]", "[1.0]"}},
      {R"({"type":"object","not":{"const":{"a":1}}})",
       {"{}", R"({"a":2})", R"({"b":1})", R"({"a":1,"b":1})"},
       {R"({"a":1})"}},
  });
}

TEST(JsonSchemaTest, Strings) {
  CheckCases({
      {R"({"type":"string","minLength":2,"maxLength":3})",
       {"\"ab\"", "\"abc\"", "\"\xC3\xA4\xF0\x9F\x98\x80\"", R"("\u00e4\n")", R"("\ud83d\ude00x")"},
       {"\"a\"", "\"abcd\"", R"("\ud83d\ude00")"}},
      {R"({"type":"string","maxLength":0})", {"\"\""}, {"\"a\""}},
      {R"({"type":"string","minLength":2.0})", {"\"ab\""}, {"\"a\""}},
      {R"({"type":"string","maxLength":65536})", {"\"\"", "\"abc\""}, {"1"}},
      {R"({"type":"string","pattern":"^[a-c]+$"})",
       {"\"abc\"", R"("\u0061b")"},
       {"\"\"", "\"abd\"", "\"ABC\""}},
      {R"({"type":"string","pattern":"b"})", {"\"b\"", "\"abc\""}, {"\"\"", "\"a\""}},
      {R"({"type":"string","pattern":"^\"$"})", {R"("\"")", R"("\u0022")"}, {"\"\"\"", R"("\\")"}},
      {R"({"type":"string","pattern":"^.$","minLength":1})",
       {"\"a\"", "\"\xC3\xA4\""},
       {"\"ab\"", "\"\"", R"("\n")"}},
      {R"({"type":"string","pattern":"^a","minLength":3,"maxLength":4})",
       {"\"abc\"", "\"abcd\""},
       {"\"ab\"", "\"abcde\"", "\"bcd\""}},
      {R"({"type":"string","allOf":[{"pattern":"a"},{"pattern":"b"}]})",
       {"\"ab\"", "\"b a\""},
       {"\"a\"", "\"b\""}},
      {R"({"type":"string","not":{"pattern":"a"}})", {"\"\"", "\"b\""}, {"\"a\"", "\"bab\""}},
      {R"({"type":"string","not":{"minLength":2}})", {"\"\"", "\"b\""}, {"\"ab\""}},
      {R"({"pattern":"^x$"})", {"\"x\"", "1", "[]"}, {"\"y\""}},
  });
}

TEST(JsonSchemaTest, DatesAndTimes) {
  CheckCases({
      {R"({"type":"string","format":"date"})",
       {"\"2024-02-29\"", "\"2000-02-29\"", "\"2023-12-31\"", "\"0000-02-29\""},
       {"\"2023-02-29\"", "\"1900-02-29\"", "\"2024-13-01\"", "\"2024-04-31\"", "\"2024-1-01\"",
        "\"24-01-01\"", "\"2024-01-00\""}},
      {R"({"type":"string","format":"time"})",
       {"\"12:34:56Z\"", "\"00:00:00.125+05:30\"", "\"23:59:60Z\"", "\"23:59:60.5z\"",
        "\"01:29:60+01:30\"", "\"15:59:60-08:00\"", "\"00:29:60-23:30\"", "\"23:29:60+23:30\"",
        "\"00:59:60+01:00\"", "\"22:59:60+23:00\""},
       {"\"24:00:00Z\"", "\"12:60:00Z\"", "\"12:34:56\"", "\"22:59:60Z\"", "\"23:58:60Z\"",
        "\"01:29:60+01:31\"", "\"15:59:60-08:01\"", "\"12:34:56+24:00\"", "\"12:34:61Z\""}},
      {R"({"type":"string","format":"date-time"})",
       {"\"2024-02-29T12:00:00Z\"", "\"1998-12-31t23:59:60z\"",
        "\"1998-12-31T15:59:60.123-08:00\""},
       {"\"2024-02-30T12:00:00Z\"", "\"2024-02-29 12:00:00Z\"", "\"1998-12-31T23:58:60Z\"",
        "\"2024-02-29\""}},
      {R"({"type":"string","format":"duration"})",
       {"\"P1Y2M3DT4H5M6S\"", "\"P4W\"", "\"PT36H\"", "\"P1Y\"", "\"P2M\""},
       {"\"P\"", "\"PT\"", "\"P1YT\"", "\"P2W1D\"", "\"PT1D\"", "\"P1Y2D\"", "\"1Y\""}},
  });
}

TEST(JsonSchemaTest, NamesOfTheInternet) {
  CheckCases({
      {R"({"type":"string","format":"email"})",
       {"\"a@b\"", "\"joe.b+x@example.com\"", R"("\"joe b\"@example.com")", "\"x@[127.0.0.1]\"",
        "\"x@[IPv6:::1]\""},
       {"\"a\"", "\".a@b\"", "\"a.@b\"", "\"a..b@c\"", "\"a@b=c\"", "\"x@[127.0.0.300]\""}},
      {R"({"type":"string","format":"hostname"})",
       {"\"a\"", "\"www.example.com\"", "\"a-b.c1\"", "\"123\""},
       {"\"\"", "\"-a\"", "\"a-\"", "\"a..b\"", "\"a.\"", "\"a_b\"",
        "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\""}},
      {R"({"type":"string","format":"ipv4"})",
       {"\"0.0.0.0\"", "\"192.168.1.255\""},
       {"\"256.0.0.0\"", "\"1.2.3\"", "\"01.2.3.4\"", "\"1.2.3.4.5\""}},
      {R"({"type":"string","format":"ipv6"})",
       {"\"::\"", "\"::1\"", "\"1::\"", "\"1:2:3:4:5:6:7:8\"", "\"::ffff:192.168.0.1\"", "\"1::8\"",
        "\"1:2::7:8\"", "\"1:2:3:4:5:6::8\""},
       {"\"\"", "\":\"", "\"1:2:3\"", "\"12345::\"", "\"1::2::3\"", "\"1:2:3:4:5:6:7:8:9\"",
        "\"::1.2.3.256\""}},
      {R"({"type":"string","format":"uri"})",
       {"\"http://example.com/a?b#c\"", "\"urn:x:y\"", "\"mailto:a@b\"", "\"http://[::1]:80/\"",
        "\"a:\""},
       {"\"\"", "\"//x\"", "\"/a\"", "\"a b:c\"", "\"http://a/%zz\"", "\"1a:b\""}},
      {R"({"type":"string","format":"uri-reference"})",
       {"\"\"", "\"/a\"", "\"a/b:c\"", "\"#x\"", "\"http://a\"", "\"//h\""},
       {"\"\\\\\\\\a\"", "\"a b\"", "\"%\""}},
      {R"({"type":"string","format":"uuid"})",
       {"\"2eb8aa08-aa98-11ea-b4aa-73b441d16380\"", "\"2EB8AA08-AA98-11EA-B4AA-73B441D16380\""},
       {"\"2eb8aa08aa9811eab4aa73b441d16380\"", "\"2eb8aa08-aa98-11ea-b4aa-73b441d1638\"",
        "\"geb8aa08-aa98-11ea-b4aa-73b441d16380\""}},
      {R"({"type":"string","format":"json-pointer"})",
       {"\"\"", "\"/a~0b/c~1\"", "\"/\""},
       {"\"a\"", "\"/a~\"", "\"/~2\""}},
      {R"({"format":"date"})", {"\"2024-01-01\"", "1", "null"}, {"\"x\""}},
      {R"({"type":"string","format":"password"})", {"\"x\""}, {"1"}},
      {R"({"type":"string","format":"date","pattern":"^2024"})",
       {"\"2024-01-01\""},
       {"\"2023-01-01\"", "\"2024\""}},
      {R"({"type":"string","not":{"format":"ipv4"}})", {"\"x\"", "\"1.2.3\""}, {"\"1.2.3.4\""}},
  });
}

// Bytes that no number has are not those of one, whatever was looked at before.
TEST(JsonSchemaTest, Numbers_OfTheirBytesOnly) {
  SchemaMatcher matcher;
  ASSERT_EQ(Status::kOk, matcher.Compile(R"({"type":"integer","minimum":5})", {}))
      << matcher.error();
  for (const std::string begin : {"", "7", "12"}) {
    matcher.Reset();
    for (const char c : begin) EXPECT_TRUE(matcher.Step(static_cast<uint8_t>(c)));
    EXPECT_TRUE(matcher.CanFollow('9'));
    for (int byte = 0; byte < 256; ++byte) {
      if (std::string_view("0123456789.eE-").find(static_cast<char>(byte)) != std::string::npos) {
        continue;
      }
      EXPECT_FALSE(matcher.CanFollow(static_cast<uint8_t>(byte))) << begin << ": " << byte;
    }
  }
}

}  // namespace
}  // namespace arn
