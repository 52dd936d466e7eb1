// How valid values may be written.
#include <string>
#include <vector>

#include "schema_cases.h"

namespace arn {
namespace {

TEST(JsonSchemaTest, EverySpellingOfACharacter) {
  CheckCases({
      {R"({"const":"a/\"\\\n\u00e4\ud83d\ude00"})",
       {"\"a/\\\"\\\\\\n\xC3\xA4\xF0\x9F\x98\x80\"",
        R"("\u0061\/\u0022\u005c\u000a\u00e4\ud83d\ude00")",
        R"("\u0061\u002F\"\\\u000A\u00E4\uD83D\uDE00")"},
       {R"("a")", "\"a/\\\"\\\\\n\xC3\xA4\xF0\x9F\x98\x80\"", R"("A/\"\\\nä😀")"}},
      {R"({"type":"string","minLength":1,"maxLength":1})",
       {"\" \"", "\"\x7F\"", R"("\b")", R"("\f")", R"("\r")", R"("\t")", R"("\/")", R"("\u0000")",
        R"("\uFFFF")", R"("\uD800\uDC00")", "\"\xEF\xBF\xBF\"", "\"\xF4\x8F\xBF\xBF\""},
       {R"("\a")", R"("\u12")", R"("\uD800")", R"("\uDC00")", R"("\uD800x")", R"("\uD800\uD800")",
        "\"\t\"", "\"\xC3\"", "\"\xC0\x80\"", "\"\xED\xA0\x80\"", "\"\xF4\x90\x80\x80\"",
        "\"\xFF\"", R"("\U0041")", R"("\)"}},
      {R"({"type":"object","properties":{"a b":{"const":1}},"additionalProperties":false})",
       {R"({"a\u0020b":1})", R"({"\u0061 b":1})"},
       {R"({"a\u0021b":1})"}},
  });
}

// The spelling of Python's json.dumps, of every character that has several, by its kind of term.
TEST(JsonSchemaTest, OneSpelling_WhileTextIsGenerated) {
  SchemaMatcher::Options options;
  options.any_spelling = false;
  for (const char* const schema :
       {R"({"type":"string"})", R"({"pattern":"^[^z]*$","type":"string"})",
        R"({"not":{"const":"z"},"type":"string"})", R"({"type":"string","maxLength":99})",
        R"({"const":"a/\"\\\b\f\n\r\t\u0000\u001f\u00e4\ud83d\ude00\u007f"})"}) {
    SCOPED_TRACE(schema);
    SchemaMatcher matcher;
    ASSERT_EQ(matcher.Compile(schema, options), Status::kOk) << matcher.error();
    EXPECT_TRUE(
        matcher.Accepts("\"a/\\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u001f\xC3\xA4"
                        "\xF0\x9F\x98\x80\x7F\""));
    for (const char* const other :
         {R"("\u0061)", R"("a\/)", R"("a/\u0022)", R"("a/\"\\\u0008)", R"("a/\"\\\b\u000c)",
          R"("a/\"\\\b\f\n\r\t\u0000\u001F)", R"("\ud83d)", "\"\t"}) {
      EXPECT_FALSE(matcher.Accepts(std::string(other) + "\""));
      size_t offset = 0;
      matcher.Accepts(other, &offset);
      EXPECT_LT(offset, std::string(other).size()) << other;
    }
  }
}

// No zeros at the end of a fraction, which a model may go on writing for ever.
TEST(JsonSchemaTest, NumbersWithoutSpareZeros_WhileTextIsGenerated) {
  SchemaMatcher::Options options;
  options.any_spelling = false;
  const struct {
    const char* schema;
    std::vector<const char*> allowed, refused;
  } cases[] = {
      {R"({"type":"integer"})", {"0", "-7", "10", "100"}, {"0.", "1.", "1.0", "-0"}},
      {R"({"type":"integer","minimum":1,"maximum":20})",
       {"1", "10", "20"},
       {"1.", "20.0", "0", "-"}},
      {R"({"type":"number","minimum":0,"maximum":1})",
       {"0", "0.5", "0.05", "1", "0.101"},
       {"1.", "0.50", "0.0", "0.1010", "1.0", "-0"}},
      {R"({"type":"number","minimum":-1})", {"-0.5", "-1"}, {"-0", "-0.0"}},
      {R"({"type":"number","multipleOf":0.01})", {"0.07", "3", "19.9"}, {"19.90", "0.070"}},
      {R"({"const":0})", {"0"}, {"-0", "0.0"}},
      {R"({"enum":[1,2.50,-3e1]})", {"1", "2.5", "-30"}, {"1.0", "2.50", "-30.0"}},
      {R"({"$schema":"http://json-schema.org/draft-04/schema#","type":"integer"})",
       {"0", "-7"},
       {"1.0", "1.5"}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.schema);
    SchemaMatcher matcher;
    ASSERT_EQ(matcher.Compile(c.schema, options), Status::kOk) << matcher.error();
    for (const char* const text : c.allowed) EXPECT_TRUE(matcher.Accepts(text)) << text;
    for (const char* const text : c.refused) EXPECT_FALSE(matcher.Accepts(text)) << text;
  }
}

TEST(JsonSchemaTest, IntegersOfDraft4HaveNoFraction) {
  CheckCases({
      {R"({"$schema":"http://json-schema.org/draft-04/schema#","type":"integer","minimum":1})",
       {"1", "20"},
       {"1.0", "20.00", "1.5", "0"}},
      {R"({"$schema":"http://json-schema.org/draft-04/schema#","not":{"type":"integer"}})",
       {"1.0", "1.5", "\"x\""},
       {"1", "-20"}},
      {R"({"$schema":"http://json-schema.org/draft-04/schema#","type":"number","minimum":1})",
       {"1.0", "1", "1.5"},
       {"0.5"}},
  });
}

TEST(JsonSchemaTest, CompactWithoutWhitespace) {
  CheckCases({{R"({"type":"object","properties":{"a":{"type":"array"}}})",
               {R"({"a":[1,[],{}],"b":{"c":null}})"},
               {R"( {"a":[]})", R"({"a":[]} )", R"({ "a":[]})", R"({"a" :[]})", R"({"a": []})",
                R"({"a":[ ]})", R"({"a":[1, 2]})", R"({"a":[1 ,2]})", R"({"a":[]} )",
                R"({"a":1, "b":2})", "{ }"}}});
}

TEST(JsonSchemaTest, AnyWhitespace) {
  CheckCases({{R"({"type":"object","properties":{"a":{"type":"array"}}})",
               {R"({"a":[1,[],{}]})",
                " { \"a\" : [ 1 , [ ] , { } ] , \"b\" :\t{ \"c\"\r\n:null}\n}  ", "{\n}"},
               {"{\"a\xC2\xA0\":[]", "{\f}", "{} x", R"({"a":t rue})", R"({"a":[1 2]})"}},
              {R"({"type":"integer","minimum":10})", {" 10 ", "\n\t11"}, {"1 0", "9"}},
              {R"({"enum":["a b"]})", {" \"a b\" "}, {"\" a b\"", "\"a  b\""}}},
             {.any_order = true, .any_whitespace = true});
}

// Without conditions numbers take every form of JSON, with conditions exponents behind one digit
// that is not 0, constants none.
TEST(JsonSchemaTest, ExponentsOfNumbers) {
  CheckCases({
      {R"({"type":"number"})", {"1e5", "1.5E-3", "12e5", "0.1e5", "0e7"}, {"1e", "1e+"}},
      {R"({"type":"integer"})",
       {"100000", "1e5", "1E+2", "-2e00", "5e-0", "1.5e1", "1.500e0001", "1.0E10", "1.2345e6",
        "1.2340000000000000e99999999999999999999", "1e00000000000000000000"},
       {"1e-1", "1.5e0", "1.5e-1", "1.05e1", "1.2345e3", "12e5", "0.1e5", "0e7", "1e", "1e+",
        "1.23456e9", "1.0000000001e50"}},
      {R"({"type":"number","multipleOf":0.5})",
       {"100000", "1e5", "5e-1", "5E-01", "1.5e0", "1.25e1", "3e0", "-1.05e1"},
       {"5e-2", "1e-1", "1.25e0", "1.255e1", "7e-1"}},
      {R"({"type":"number","multipleOf":7})", {"7e0", "7e9", "1.4e1", "2.1e99"}, {"1e5", "1.4e0"}},
      {R"({"type":"integer","multipleOf":6,"minimum":100,"maximum":5000})",
       {"1.2e2", "3e3", "4.980e3", "4998"},
       {"6e1", "1e2", "1e3", "6e3", "1.25e2", "5004"}},
      {R"({"type":"number","not":{"type":"integer"}})",
       {"1.5e0", "1e-5", "5.0e-1"},
       {"1e0", "1e5", "1.5e1"}},
      // None with large divisors and in draft 4.
      {R"({"type":"integer","multipleOf":11})", {"110", "110.0"}, {"1.1e2"}},
      {R"({"$schema":"http://json-schema.org/draft-04/schema#","type":"integer"})",
       {"100"},
       {"1e2", "100.0"}},
      {R"({"const":100000})", {"100000", "100000.0"}, {"1e5"}},
      {R"({"type":"number","minimum":0})",
       {"100000", "1e5", "1E-05", "2.50e+003", "9.99e999999999999999999"},
       {"-1e5", "12e5", "0.1e5", "0e7", "1e", "1e+", "1.e5", "1e5.0"}},
      {R"({"type":"number","minimum":-90,"maximum":90})",
       {"9e1", "-9.0E+1", "8.9999e1", "1e-400", "-1e0"},
       {"9.00001e1", "-9.1e1", "1e2", "-1e300"}},
      {R"({"type":"number","not":{"const":250}})",
       {"2.5e1", "2.5e3", "2.51e2", "2e2", "-2.5e2"},
       {"2.5e2", "2.500E+02"}},
  });
}

// Against the remainders of integers.
TEST(JsonSchemaTest, ExponentsOfMultiples) {
  const struct {
    const char* text;
    int64_t billionths;
    bool has_exponents = true;  // the digits of the divisor are at most 10
  } divisors[] = {{"1", 1'000'000'000},         {"2", 2'000'000'000}, {"3", 3'000'000'000},
                  {"7", 7'000'000'000},         {"8", 8'000'000'000}, {"10", 10'000'000'000},
                  {"0.5", 500'000'000},         {"0.01", 10'000'000}, {"0.003", 3'000'000},
                  {"0.8", 800'000'000},         {"0.000001", 1'000},  {"0.25", 250'000'000, false},
                  {"16", 16'000'000'000, false}};
  for (const auto& divisor : divisors) {
    for (const bool is_denied : {false, true}) {
      for (const char* const bound : {"", R"(,"minimum":-15)", R"(,"exclusiveMaximum":2400)"}) {
        const std::string multiple = std::string(R"("multipleOf":)") + divisor.text;
        const std::string schema = std::string(R"({"type":"number")") + bound +
                                   (is_denied ? R"(,"not":{)" + multiple + "}" : "," + multiple) +
                                   "}";
        SCOPED_TRACE(schema);
        SchemaMatcher matcher;
        ASSERT_EQ(matcher.Compile(schema, {}), Status::kOk) << matcher.error();
        for (const char* const mantissa :
             {"1",    "2",   "3",    "5",     "6",        "8",         "9",     "1.0",
              "2.50", "1.5", "1.25", "1.024", "6.4",      "6.400",     "1.00",  "9.99",
              "1.05", "2.4", "1.4",  "2.1",   "1.000000", "3.0000000", "1.0024"}) {
          const std::string digits = mantissa;
          int64_t value = 0, scale = 1'000'000'000;  // to billionths
          for (const char c : digits) {
            if (c != '.') value = value * 10 + (c - '0');
          }
          for (size_t i = 2; i < digits.size(); ++i) scale /= 10;
          value *= scale;
          for (int exponent = -9; exponent <= 8; ++exponent) {
            int64_t number = value;
            bool is_exact = true;
            for (int i = 0; i < exponent; ++i) number *= 10;
            for (int i = 0; i > exponent; --i) {
              is_exact = is_exact && number % 10 == 0;
              number /= 10;
            }
            const bool is_multiple = is_exact && number % divisor.billionths == 0;
            for (const int64_t sign : {1, -1}) {
              const std::string keyword = bound;
              const bool is_within = keyword.empty() || (keyword.find("min") != std::string::npos
                                                             ? sign * number >= -15'000'000'000
                                                             : sign * number < 2'400'000'000'000);
              for (const char* const zeros : {"", "0"}) {
                const std::string text = (sign < 0 ? "-" : "") + digits + "e" +
                                         (exponent < 0 ? "-" : "") + zeros +
                                         std::to_string(std::abs(exponent));
                EXPECT_EQ(divisor.has_exponents && is_within && is_multiple != is_denied,
                          matcher.Accepts(text))
                    << text;
              }
            }
          }
        }
      }
    }
  }
}

// Against the comparison of integers, millionths.
TEST(JsonSchemaTest, ExponentsAreCompared) {
  const struct {
    const char* text;
    int64_t millionths;
  } bounds[] = {{"0", 0},
                {"1", 1'000'000},
                {"-1", -1'000'000},
                {"10", 10'000'000},
                {"9.99", 9'990'000},
                {"-0.05", -50'000},
                {"0.001", 1'000},
                {"0.0012", 1'200},
                {"123", 123'000'000},
                {"-99999", -99'999'000'000}};
  for (const auto& bound : bounds) {
    for (const char* const keyword :
         {"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "const"}) {
      const bool is_not = std::string(keyword) == "const";
      std::string schema = std::string("{\"") + keyword + "\":" + bound.text + "}";
      schema = is_not ? R"({"type":"number","not":)" + schema + "}"
                      : R"({"type":"number",)" + schema.substr(1);
      SCOPED_TRACE(schema);
      SchemaMatcher matcher;
      ASSERT_EQ(matcher.Compile(schema, {}), Status::kOk) << matcher.error();
      for (const int64_t mantissa : {100, 101, 120, 121, 122, 123, 124, 500, 998, 999}) {
        int64_t value = mantissa;
        for (int exponent = -4; exponent <= 5; ++exponent, value *= 10) {
          for (const int64_t sign : {1, -1}) {
            const int64_t number = sign * value;  // mantissa / 100 * 10^exponent, in millionths
            const bool is_valid = std::string(keyword) == "minimum" ? number >= bound.millionths
                                  : std::string(keyword) == "exclusiveMinimum"
                                      ? number > bound.millionths
                                  : std::string(keyword) == "maximum" ? number <= bound.millionths
                                  : is_not                            ? number != bound.millionths
                                                                      : number < bound.millionths;
            const std::string digits = std::to_string(mantissa);
            const std::string text = (sign < 0 ? "-" : "") + digits.substr(0, 1) + "." +
                                     digits.substr(1) + "e" + std::to_string(exponent);
            EXPECT_EQ(is_valid, matcher.Accepts(text)) << text;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace arn
