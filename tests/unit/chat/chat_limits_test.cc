// Limits of a rendering, refusals at conversion, and damaged programs.
#include <gtest/gtest.h>

#include <fstream>

#include "converter/chat/compile.h"
#include "nlohmann/json.hpp"
#include "tests/unit/chat/chat_fixture.h"

namespace arn::test {
namespace {

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string ErrorOf(const std::string& source, const ChatCase& c = {}) {
  const Rendered result = RenderTemplate(source, c);
  EXPECT_EQ(Status::kTemplateError, result.status) << result.text;
  return result.error;
}

TEST(ChatLimits, Steps) {
  ChatCase c;
  c.max_steps = 100000;
  const std::string loops =
      "{% for a in range(1000) %}{% for b in range(1000) %}{% endfor %}{% endfor %}";
  EXPECT_EQ("line 1: the template took more than 100000 steps", ErrorOf(loops, c));
  // Work inside an operation counts as steps too.
  EXPECT_TRUE(Has(ErrorOf("{{ 'x' * 100000000 }}", c), "steps"));
  EXPECT_TRUE(Has(ErrorOf("{% set a = range(1000) | list %}{% set b = range(1000) | list %}"
                          "{% for i in range(1000) %}{% if a != b %}{% endif %}{% endfor %}",
                          c),
                  "steps"));
}

TEST(ChatLimits, Depth) {
  EXPECT_TRUE(Has(ErrorOf("{% macro f() %}{{ f() }}{% endmacro %}\n{{ f() }}"), "nested deeper"));
  const std::string nests =
      "{% set ns = namespace(x=[]) %}{% for i in range(5000) %}{% set ns.x = [ns.x] %}{% endfor %}";
  for (const char* use :
       {"{{ ns.x }}", "{{ ns.x | tojson }}", "{{ ns.x == [ns.x] }}", "{{ [ns.x, ns.x] | sort }}"}) {
    EXPECT_TRUE(Has(ErrorOf(nests + use), "nested deeper")) << use;
  }
  EXPECT_TRUE(Has(ErrorOf("{% set n = namespace() %}{% set n.n = n %}{{ n }}"), "nested deeper"));
}

// At whatever depth a feature stands, it works or is nested too deep.
TEST(ChatLimits, Depth_OfEachFeature) {
  for (const char* use :
       {"{{ [1] < [2] }}", "{{ [1] == [2] }}", "{{ 'a' | upper }}", "{{ 'a' is in 'ab' }}",
        "{% set x = 1 %}", "{% set (x, (y, z)) = (1, (2, 3)) %}", "{% with x = 1 %}{% endwith %}",
        "{% for x in [1] %}{{ x }}{% endfor %}", "{% filter upper %}a{% endfilter %}",
        "{% set x %}a{% endset %}", "{{ [[1]] }}", "{{ {'a': {'b': 1}} | tojson }}",
        "{{ [[1], [0]] | sort | first }}", "{{ 'a'.upper() }}", "{{ range(3) | list }}",
        "{% set x = lists | sort %}", "{% set x = lists | map('first') | list %}",
        "{% set ((x), (y)) = lists %}"}) {
    // Each `not` and each `if` is one level, a call of the macro several.
    for (size_t n_if = 0; n_if < 8; ++n_if) {
      std::string begin, end;
      for (size_t i = 0; i < n_if; ++i) {
        begin += "{% if true %}";
        end += "{% endif %}";
      }
      const auto program = convert::CompileChatTemplate(
          "{% set lists = [[1], [0]] %}{% macro f(n) %}{% if n > 0 %}{{ f(n - 1) }}{% else %}" +
          begin + use + end + "{% endif %}{% endmacro %}{{ f(messages | length) }}");
      size_t n_refused = 0;
      for (size_t n = 60; n < 400 && n_refused < 3; ++n) {
        ChatCase c;
        c.messages = "[";
        for (size_t i = 0; i < n; ++i) c.messages += i == 0 ? "1" : ",1";
        c.messages += "]";
        const Rendered result = RenderBytes(program, c);
        if (result.status == Status::kOk) {
          ASSERT_EQ(0u, n_refused) << use << " at " << n;
          continue;
        }
        ++n_refused;
        ASSERT_EQ(Status::kTemplateError, result.status) << result.error;
        ASSERT_TRUE(Has(result.error, "nested deeper")) << use << ": " << result.error;
      }
      EXPECT_EQ(3u, n_refused) << use;
    }
  }
}

TEST(ChatLimits, Memory_SaysHowMuchThereIs) {
  ChatCase c;
  c.arena_bytes = 65536;
  const Rendered result = RenderTemplate("\n{{ 'abcdefgh' * 100000 }}", c);
  EXPECT_EQ(Status::kOutOfMemory, result.status);
  EXPECT_TRUE(Has(result.error, "line 2")) << result.error;
  EXPECT_TRUE(Has(result.error, "65536 bytes")) << result.error;
  // Output text uses no arena memory.
  std::string long_loop = "{% for i in range(9999) %}0123456789{% endfor %}";
  c.arena_bytes = 4 << 20;
  EXPECT_EQ(99990u, RenderTemplate(long_loop, c).n_bytes);
}

// Every arena size below the required one gives the same error.
TEST(ChatLimits, Memory_EverySize) {
  ChatCase c;
  c.messages = R"([{"role": "user", "content": "a\nb"}, {"role": "tool", "content": [1, 2.5]}])";
  c.variables = R"({"bos_token": "<begin>", "eos_token": 5})";
  const auto program = convert::CompileChatTemplate(
      "{% for m in messages %}{{ m | tojson(indent=1) }}{{ m.role.upper() ~ m.content }}"
      "{% set x %}{{ loop.index }}{% endset %}{{ [x] * 3 }}{% endfor %}");
  const std::string whole = RenderBytes(program, c).text;
  ASSERT_FALSE(whole.empty());
  size_t n_failed = 0;
  for (c.arena_bytes = 0;; c.arena_bytes += 8) {
    const Rendered result = RenderBytes(program, c);
    if (result.status == Status::kOk) {
      EXPECT_EQ(whole, result.text);
      break;
    }
    ASSERT_EQ(Status::kOutOfMemory, result.status) << result.error;
    ++n_failed;
  }
  EXPECT_GT(n_failed, 50u);
}

// Programs of every feature (data/chat/features.json), which work without the limits.
struct Feature {
  std::string source;
  std::vector<uint8_t> program;
  std::string text;
};
std::vector<Feature> ReadFeatures(ChatCase* input) {
  const std::string folder = ARN_CHAT_GOLDENS;
  std::ifstream input_file(folder + "/features_input.json");
  std::ifstream features_file(folder + "/features.json");
  const auto given = nlohmann::ordered_json::parse(input_file);
  input->messages = given["messages"].dump();
  input->variables = given["variables"].dump();
  std::vector<Feature> features;
  for (const auto& feature : nlohmann::ordered_json::parse(features_file)) {
    Feature f;
    f.source = feature["template"];
    f.program = convert::CompileChatTemplate(f.source);
    const Rendered whole = RenderBytes(f.program, *input);
    f.text = whole.text;
    if (whole.status == Status::kOk) features.push_back(std::move(f));
  }
  EXPECT_GT(features.size(), 100u);
  return features;
}

// The limit grows until the rendering fits. Below, each value gives the limit's error, and nothing
// else; from there on the text is whole.
TEST(ChatLimits, Steps_EveryNumberForEveryFeature) {
  ChatCase c;
  c.arena_bytes = 1 << 20;
  for (const Feature& feature : ReadFeatures(&c)) {
    SCOPED_TRACE(feature.source);
    for (c.max_steps = 0;; c.max_steps += 1 + c.max_steps / 300) {
      const Rendered result = RenderBytes(feature.program, c);
      if (result.status == Status::kOk) {
        ASSERT_EQ(feature.text, result.text);
        break;
      }
      ASSERT_EQ(Status::kTemplateError, result.status) << result.error;
      ASSERT_TRUE(Has(result.error, "took more than")) << result.error;
    }
  }
}

TEST(ChatLimits, Memory_EverySizeForEveryFeature) {
  ChatCase c;
  const std::vector<Feature> features = ReadFeatures(&c);
  // The first sizes are those that the input does not fit.
  c.arena_bytes = 0;
  const auto program = convert::CompileChatTemplate("x");
  while (RenderBytes(program, c).status == Status::kOutOfMemory) c.arena_bytes += 16;
  const uint64_t least = c.arena_bytes;
  for (const Feature& feature : features) {
    SCOPED_TRACE(feature.source);
    for (c.arena_bytes = least;; c.arena_bytes += 16 + (c.arena_bytes - least) / 100) {
      const Rendered result = RenderBytes(feature.program, c);
      if (result.status == Status::kOk) {
        ASSERT_EQ(feature.text, result.text);
        break;
      }
      ASSERT_EQ(Status::kOutOfMemory, result.status) << result.error;
      ASSERT_TRUE(Has(result.error, "needs more memory than")) << result.error;
    }
  }
}

// Work over a long text counts for what it is: with too few steps for it each way to go through one
// ends.
TEST(ChatLimits, Steps_OfLongTexts) {
  ChatCase c;
  const std::string text(64 * 300, 'x');
  c.variables = R"({"text": ")" + text + R"(", "dict": {")" + text + R"(": 1}, "html": ")" +
                std::string(64 * 50, '<') + R"("})";
  for (const char* source : {"{{ text ~ text }}",
                             "{{ text + text }}",
                             "{{ text == text ~ '' }}",
                             "{{ text < text ~ 1 }}",
                             "{{ text in [text ~ ''] }}",
                             "{{ dict[text ~ ''] }}",
                             "{{ text | list | length }}",
                             "{% for x in text %}{% endfor %}",
                             "{{ text[1:] | length }}",
                             "{{ text | e }}",
                             "{{ text | tojson }}",
                             "{{ [text] }}",
                             "{{ text | upper }}",
                             "{{ text | title }}",
                             "{{ text | trim('xy') }}",
                             "{{ text.strip('xy') }}",
                             "{{ text | replace('xx', 'y') }}",
                             "{{ text.replace('xx', 'y') }}",
                             "{{ text.split('xx') | length }}",
                             "{{ text.split('y') }}",
                             "{{ text.split() }}",
                             "{{ text.find('xy') }}",
                             "{{ text.count('xy') }}",
                             "{{ text.partition('xy') | length }}",
                             "{{ text.splitlines() }}",
                             "{{ text | indent(2) }}",
                             "{{ text.join(['a', 'b']) }}",
                             "{{ ['a', 'b'] | join(text) }}",
                             "{{ html | e }}",
                             "{{ text.title() }}",
                             "{{ text | int }}",
                             "{{ text | length }}",
                             "{{ 'xy' in text }}",
                             "{{ text | reverse }}",
                             "{{ text is eq(text ~ '') }}",
                             "{{ (html | e) + text }}",
                             "{{ text + (html | e) }}",
                             "{{ [text, text ~ 1] | sort | length }}",
                             "{{ [text, text ~ ''] | unique | list | length }}",
                             "{% set x %}{{ text }}{% endset %}{{ x }}",
                             "{% filter upper %}{{ text }}{% endfilter %}",
                             "{{ text.startswith('xxy') }}",
                             "{{ text.zfill(20000) }}",
                             "{{ text.ljust(20000) }}",
                             "{{ text.center(20000) }}",
                             "{{ text | string }}",
                             "{{ text | safe }}",
                             "{{ {text: 1}[text ~ ''] }}",
                             "{{ dict | dictsort | length }}",
                             "{{ dict | tojson(sort_keys=true) }}",
                             "{{ text.removeprefix('x') }}",
                             "{{ text.endswith('x') }}",
                             "{{ text[5] }}",
                             "{{ text.rsplit('xx') | length }}",
                             "{{ text is eq(text ~ text) }}",
                             "{{ text * 2 }}"}) {
    SCOPED_TRACE(source);
    const auto program = convert::CompileChatTemplate(source);
    size_t n_failed = 0;
    for (c.max_steps = 0;; c.max_steps += 1 + c.max_steps / 40) {
      const Rendered result = RenderBytes(program, c);
      if (result.status == Status::kOk) break;
      ASSERT_EQ(Status::kTemplateError, result.status) << result.error;
      ASSERT_TRUE(Has(result.error, "took more than")) << result.error;
      ++n_failed;
    }
    EXPECT_GT(n_failed, 3u);
  }
}

// The same for memory, where each character of several bytes may be the one that does not fit.
TEST(ChatLimits, Memory_OfEscapedTexts) {
  ChatCase c;
  c.arena_bytes = 0;
  const auto nothing = convert::CompileChatTemplate("x");
  while (RenderBytes(nothing, c).status == Status::kOutOfMemory) c.arena_bytes += 8;
  const uint64_t least = c.arena_bytes;
  const std::string xs(20, 'x');
  for (const char* use : {"{{ TEXT | e }}",
                          "{{ [TEXT] }}",
                          "{{ TEXT | tojson }}",
                          "{{ TEXT | tojson(true) }}",
                          "{{ (TEXT | e) ~ TEXT }}",
                          "{{ TEXT ~ (TEXT | e) }}",
                          "{{ (TEXT,) }}",
                          "{{ {TEXT: TEXT} }}",
                          "{{ [TEXT, TEXT] | join(', ') }}",
                          "{{ ', '.join([TEXT, TEXT]) }}",
                          "{{ TEXT.replace('&', '+') }}",
                          "{{ {TEXT: 1} | tojson }}",
                          "{{ TEXT | title }}",
                          "{{ [TEXT, TEXT] }}",
                          "{% filter e %}{{ TEXT }}{% endfilter %}",
                          "{% filter list %}{{ TEXT }}{% endfilter %}",
                          "{{ [TEXT] | safe }}",
                          "{{ [TEXT] | replace('x', 'y') }}",
                          "{{ TEXT.replace('', 'y') }}",
                          "{{ {TEXT: 1, 2: 3} }}",
                          "{{ [{TEXT: 1}, {5: TEXT}] | tojson }}"}) {
    for (size_t n = 0; n <= xs.size(); ++n) {
      std::string source = use;
      for (size_t at = source.find("TEXT"); at != std::string::npos; at = source.find("TEXT")) {
        source.replace(at, 4, "'" + xs.substr(n) + "<&>\"\\'\n\U0001f98a'");
      }
      SCOPED_TRACE(source);
      const auto program = convert::CompileChatTemplate(source);
      for (c.arena_bytes = least;; c.arena_bytes += 1 + (c.arena_bytes - least) / 200) {
        const Rendered result = RenderBytes(program, c);
        if (result.status == Status::kOk) break;
        ASSERT_EQ(Status::kOutOfMemory, result.status) << result.error;
      }
    }
  }
}

// Looking for a name among many is work, too.
TEST(ChatLimits, Steps_OfManyNames) {
  std::string names, fields = "{% set n = namespace(";
  for (int i = 0; i < 800; ++i) {
    const std::string name = "a" + std::to_string(i);
    names += "{% set " + name + " = 1 %}";
    fields += (i == 0 ? "" : ", ") + name + "=1";
  }
  ChatCase c;
  for (const std::string& source :
       {names + "{% set z = 1 %}", names + "{% set a0 = 2 %}", names + "{{ a0 }}{{ z }}",
        names + "{% for i in [1] %}{{ loop.index }}{% endfor %}", fields + ") %}{{ n.a799 }}",
        fields + ") %}{{ n | attr('z') }}", fields + ") %}{% set n.z = 1 %}"}) {
    const auto program = convert::CompileChatTemplate(source);
    c.max_steps = 1000000;
    ASSERT_EQ(RenderBytes(program, c).status, Status::kOk) << RenderBytes(program, c).error;
    for (c.max_steps = 0;; c.max_steps += 1 + c.max_steps / 400) {
      const Rendered result = RenderBytes(program, c);
      if (result.status == Status::kOk) break;
      ASSERT_EQ(Status::kTemplateError, result.status) << result.error;
      ASSERT_TRUE(Has(result.error, "took more than")) << result.error;
    }
  }
}

TEST(ChatLimits, Output_TooSmall_SaysTheWholeSize) {
  ChatCase c;
  c.capacity = 3;
  const Rendered result = RenderTemplate("ab{{ 'cdé' }}", c);
  EXPECT_EQ(Status::kBufferTooSmall, result.status);
  EXPECT_EQ(6u, result.n_bytes);
  c.capacity = 6;
  EXPECT_EQ("abcdé", RenderTemplate("ab{{ 'cdé' }}", c).text);
  EXPECT_EQ(11u, RenderTemplate("abcdef{{ 'ghi' }}jk", c).n_bytes);
  c.capacity = 0;
  EXPECT_EQ(2u, RenderTemplate("a{{ 'b' }}", c).n_bytes);
}

TEST(ChatErrors, NameTheLine) {
  EXPECT_EQ("line 3: 'x' is undefined", ErrorOf("\n\n{{ x.y }}"));
  EXPECT_EQ("line 2: 'dict object' has no attribute 'y'", ErrorOf("\n{{ {}.y.z }}"));
  EXPECT_EQ("line 3: 'x' is undefined", ErrorOf("{{ [1,\n2,\nx.y] }}"));
  EXPECT_EQ("exactly this, as it is", ErrorOf("\n{{ raise_exception('exactly this, as it is') }}"));
}

TEST(ChatErrors, ArgumentsThatNothingTakes) {
  for (const char* call : {"'a' | safe",     "'a' | string", "1 | float",
                           "1 | int",        "'a' | length", "'a' | indent",
                           "'a' | replace",  "1 | round",    "'a' | title",
                           "'a' | trim",     "1 | abs",      "{} | attr",
                           "'a' | upper",    "'a' | lower",  "'a' | capitalize",
                           "1 | default",    "'a' | escape", "[1] | sort",
                           "{} | dictsort",  "{} | items",   "[1] | last",
                           "[1] | first",    "[1] | list",   "[1] | join",
                           "[1] | max",      "[1] | min",    "[1] | reverse",
                           "[1] | sum",      "[1] | unique", "[1] | batch",
                           "[1] | slice",    "1 | tojson",   "'a'.strip",
                           "'a'.upper",      "'a'.split",    "'a'.splitlines",
                           "'a'.startswith", "'a'.endswith", "'a'.count",
                           "'a'.find",       "'a'.join",     "'a'.removeprefix",
                           "'a'.partition",  "'a'.ljust",    "'a'.zfill",
                           "'a'.replace",    "{}.get",       "{}.keys",
                           "{}.copy",        "[].copy",      "[].index",
                           "[].count",       "[].items",     "1 is divisibleby",
                           "1 is eq",        "'a' is in",    "1 is sameas",
                           "'a'.isupper",    "'a'.isalpha",  "'a'.rsplit",
                           "strftime_now",   "range",        "raise_exception"}) {
    for (const char* arguments : {"(1, 2, 3, 4, 5, 6)", "(no_such_argument=1)"}) {
      const std::string source = "{{ " + std::string(call) + arguments + " }}";
      ChatCase c;
      try {
        const Rendered result = RenderTemplate(source, c);
        EXPECT_EQ(Status::kTemplateError, result.status) << source << ": " << result.text;
        EXPECT_NE(result.error, "") << source;
      } catch (const convert::TemplateError& error) {
        EXPECT_EQ(error.line(), 1u) << source;
      }
    }
  }
  EXPECT_TRUE(Has(ErrorOf("{{ {}.get(key=1, key=2) }}"), "given twice"));
  EXPECT_NE(ErrorOf("{{ 1 | abs()(2) }}"), "");
  EXPECT_NE(ErrorOf("{{ [1]['a':] }}"), "");
  EXPECT_TRUE(Has(ErrorOf("{{ 1 is eq(1, no=1) }}"), "no"));
  EXPECT_TRUE(Has(ErrorOf("{{ 15 | round(-1) }}"), "a negative precision of integers"));
  for (const char* op : {"-", "/", "//", "**", "%"}) {
    EXPECT_TRUE(Has(ErrorOf("{{ [] " + std::string(op) + " 1 }}"), op)) << op;
  }
  EXPECT_TRUE(Has(ErrorOf("{{ {}.get(1, key=2) }}"), "given twice"));
  EXPECT_TRUE(Has(ErrorOf("{{ range(1, 2, step=3) }}"), "range takes"));
  EXPECT_TRUE(Has(ErrorOf("{% for i in [1] %}{{ loop.cycle(a=1) }}{% endfor %}"), "named"));
  EXPECT_TRUE(Has(ErrorOf("{{ [1] | map('upper', attribute='a') | list }}"), "not both"));
  EXPECT_TRUE(Has(ErrorOf("{{ [1] | map | list }}"), "map needs"));
  EXPECT_TRUE(Has(ErrorOf("{{ [1] | map(attribute=1.5) | list }}"), "not a string"));
  EXPECT_TRUE(Has(ErrorOf("{{ 1 | tojson(separators=[1, 2]) }}"), "two strings"));
  EXPECT_TRUE(Has(ErrorOf("{{ 1 | tojson(separators=['a', 2]) }}"), "two strings"));
  EXPECT_TRUE(Has(ErrorOf("{{ 1 | tojson(separators=['a']) }}"), "two strings"));
  EXPECT_TRUE(Has(ErrorOf("{% macro f(a) %}{{ a.b }}{% endmacro %}{{ f() }}"), "not provided"));
  for (const char* container : {"none", "true", "1", "99999999999999999999", "1.5", "namespace()",
                                "range", "'a'.upper", "f", "loop"}) {
    EXPECT_TRUE(Has(ErrorOf("{% macro f() %}{% endmacro %}{% for i in [1] %}{{ 1 in " +
                            std::string(container) + " }}{% endfor %}"),
                    "cannot search"))
        << container;
  }
}

// Python has integers of any size.
TEST(ChatErrors, IntegersBeyond64Bits) {
  for (const char* sum :
       {"9223372036854775807 + 1", "-9223372036854775807 - 2", "9223372036854775807 * 2", "2 ** 63",
        "3 ** 50", "2 ** 99", "10 ** 40", "(-9223372036854775807 - 1) // -1",
        "-(-9223372036854775807 - 1)", "(-9223372036854775807 - 1) | abs", "1e19 | int",
        "'9223372036854775808' | int", "'99999999999999999999' | int"}) {
    const std::string error = ErrorOf("{{ " + std::string(sum) + " }}");
    EXPECT_TRUE(Has(error, "64 bits")) << sum << ": " << error;
  }
  EXPECT_EQ(
      "0 -9223372036854775808",
      RenderTemplate("{{ (-9223372036854775807 - 1) % -1 }} {{ -9223372036854775807 - 1 }}", {})
          .text);
  EXPECT_TRUE(Has(ErrorOf("{{ (-8.0) ** 0.5 }}"), "complex"));
  EXPECT_EQ(
      "[9223372036854775806]",
      RenderTemplate("{{ range(9223372036854775806, 9223372036854775807, 5) | list }}", {}).text);
}

struct Refused {
  const char* source;
  uint32_t line;
  const char* part;
};

TEST(ChatCompile, RefusesByNameAndLine) {
  const Refused cases[] = {
      {"\n{% include 'x' %}", 2, "{% include %} is not supported"},
      {"{% import 'x' as y %}", 1, "{% import %}"},
      {"{% extends 'x' %}", 1, "{% extends %}"},
      {"{% block a %}{% endblock %}", 1, "{% block %}"},
      {"{% call f() %}{% endcall %}", 1, "{% call %}"},
      {"{% autoescape true %}{% endautoescape %}", 1, "{% autoescape %}"},
      {"{% for x in y recursive %}{% endfor %}", 1, "recursive"},
      {"{% for x in 1, recursive %}{% endfor %}", 1, "recursive"},
      {"{{ loop(x) }}", 1, "recursive loops"},
      {"a\n{{ x | pprint }}", 2, "the filter 'pprint' is not supported"},
      {"{{ x is filter }}", 1, "the test 'filter' is not supported"},
      {"{{ x.format(1) }}", 1, "the method 'format'"},
      {"{{ 'a %s' % x }}", 1, "formatting with '%'"},
      {"{{ f(*x) }}", 1, "arguments with '*'"},
      {"{{ f(**x) }}", 1, "arguments with '**'"},
      {"{% macro f() %}{{ varargs }}{% endmacro %}", 1, "'varargs' of a macro"},
      {"{{ lipsum() }}", 1, "the function 'lipsum'"},
      {"{{ 0x1f }}", 1, "hexadecimal"},
      {"{% break %}", 1, "'break' outside a loop"},
      {"{% for x in y %}{% macro f() %}{% continue %}{% endmacro %}{% endfor %}", 1, "outside"},
      {"\n\n{% if x %}", 3, "the template ends; {% if %} needs 'elif' or 'else' or 'endif'"},
      {"{% frob %}", 1, "unknown tag 'frob'"},
      {"{% if x %}{% endfor %}{% endif %}", 1, "the innermost open one is 'if'"},
      {"{{ 'abc }}", 1, "unterminated string"},
      {"{{ (1 }}", 1, "unexpected '}', expected ')'"},
      {"{{ 1 2 }}", 1, "expected '}}'"},
      {"{{ }}", 1, "expected an expression"},
      {"{{ a ? b }}", 1, "unexpected character '?'"},
      {"{{ a \x0e }}", 1, "unexpected character"},
      {"{{ a \x1b }}", 1, "unexpected character"},
      {"{# no end", 1, "unterminated comment"},
      {"{% raw %}x", 1, "without {% endraw %}"},
      {"{% set 1 = 2 %}", 1, "cannot assign to '1'"},
      {"{% set true = 2 %}", 1, "cannot assign to 'true'"},
      {"{{ '\\ud800' }}", 1, "not a character"},
      {"{{ '\\N{DASH}' }}", 1, "named characters"},
      {"\xFF", 1, "not UTF-8"},
      {"{% macro f(a=1, b) %}{% endmacro %}", 1, "has no default"},
      {"{{ x[1:2, 3] }}", 1, "a slice inside a tuple"},
      {"{{ x[3, 1:2] }}", 1, "a slice inside a tuple"},
      {"{{ x.'a' }}", 1, "expected a name or a number after '.'"},
      {"{{ f(a=1, 2) }}", 1, "a positional argument follows a named one"},
      {"{{ x is eq is }}", 1, "tests cannot follow one another"},
      {"{{ 007 }}", 1, "0"},
      {"{{ '\\x4' }}", 1, "without its hexadecimal digits"},
      {"{{ '\\u12G4' }}", 1, "without its hexadecimal digits"},
      {"{{ '\\U00110000' }}", 1, "not a character"},
      {"{{ } }}", 1, "unexpected '}'"},
      {"{% 5 %}", 1, "expected the name of a tag, found '5'"},
      {"{% 'a' %}", 1, "expected the name of a tag, found a string"},
      {"{% %}", 1, "expected the name of a tag, found %}"},
      {"{% for x %}{% endfor %}", 1, "expected 'in', found %}"},
      {"{% for in y %}{% endfor %}", 1, "expected a name to assign to, found 'in'"},
      {"{% set = 1 %}", 1, "cannot assign to '='"},
      {"{% for () in y %}{% endfor %}", 1, "expected a name to assign to"},
      {"{% macro 5() %}{% endmacro %}", 1, "expected a name, found '5'"},
      {"{% macro f %}{% endmacro %}", 1, "expected '(', found %}"},
      {"{{ x | 1.5 }}", 1, "expected a name, found '1.5'"},
      {"{{ x | }}", 1, "expected a name, found }}"},
      {"{% from 'x' import y %}", 1, "{% from %}"},
      {"{% if x", 1, "the template ends inside a tag"},
      {"{{ x", 1, "the template ends inside a tag"},
      {"{{ 1", 1, "the template ends inside a tag"},
      {"{{ 1_", 1, "the template ends inside a tag"},
      {"{{ 1.", 1, "the template ends inside a tag"},
      {"{{ 1.5", 1, "the template ends inside a tag"},
      {"{{ 1.5e", 1, "the template ends inside a tag"},
      {"{{ 1e+", 1, "the template ends inside a tag"},
      {"{{ 0", 1, "the template ends inside a tag"},
      {"{{", 1, "the template ends inside a tag"},
      {"{{-", 1, "the template ends inside a tag"},
      {"{%", 1, "the template ends inside a tag"},
      {"{% raw", 1, "the template ends inside a tag"},
      {"{% raw x %}{% endraw %}", 1, "unknown tag 'raw'"},
      {"{% raw %}{%", 1, "without {% endraw %}"},
      {"{% raw %}{% ", 1, "without {% endraw %}"},
      {"{% raw %}{% endraw", 1, "without {% endraw %}"},
      {"{% raw %}{% endraw -", 1, "without {% endraw %}"},
      {"{#", 1, "unterminated comment"},
      {"{{ 1e }}", 1, "expected '}}'"},
      {"{{ 1.5ex }}", 1, "expected '}}'"},
      {"{{ 1__0 }}", 1, "expected '}}'"},
      {"{{ 0b1 }}", 1, "hexadecimal"},
      {"{{ *1 }}", 1, "unexpected '*'"},
      {"{{ 1 + }}", 1, "expected an expression"},
      {"{% if not %}", 1, "expected an expression"},
      {"{{ 1 not 2 }}", 1, "expected '}}'"},
      {"{{ x not }}", 1, "expected '}}'"},
      {"{{ '\\xg0' }}", 1, "without its hexadecimal digits"},
      {"{{ '\\x@0' }}", 1, "without its hexadecimal digits"},
      {"{{ '\\x/0' }}", 1, "without its hexadecimal digits"},
      {"{{ '\\x:0' }}", 1, "without its hexadecimal digits"},
      {"{{ '\\x`0' }}", 1, "without its hexadecimal digits"},
      {"{{ '\\xG0' }}", 1, "without its hexadecimal digits"},
      {"\x80", 1, "not UTF-8"},
      {"\xC1\xBF", 1, "not UTF-8"},
      {"\xC3", 1, "not UTF-8"},
      {"\xC3(", 1, "not UTF-8"},
      {"\xE0\x80\x80", 1, "not UTF-8"},
      {"\xED\xA0\x80", 1, "not UTF-8"},
      {"\xF0\x80\x80\x80", 1, "not UTF-8"},
      {"\xF4\x90\x80\x80", 1, "not UTF-8"},
      {"\xF5\x80\x80\x80", 1, "not UTF-8"},
  };
  for (const Refused& c : cases) {
    SCOPED_TRACE(c.source);
    try {
      convert::CompileChatTemplate(c.source);
      ADD_FAILURE() << "compiles";
    } catch (const convert::TemplateError& error) {
      EXPECT_EQ(c.line, error.line());
      EXPECT_TRUE(Has(error.what(), c.part)) << error.what();
    }
  }
}

TEST(ChatCompile, LineEndsAndBraces_AreText) {
  const std::pair<const char*, const char*> texts[] = {{"", ""},
                                                       {"\r", ""},
                                                       {"a\r\nb\r", "a\nb"},
                                                       {"a\rb\r\n\r\n", "a\nb\n"},
                                                       {"a{", "a{"},
                                                       {"{a}}", "{a}}"},
                                                       {"{}{ {", "{}{ {"},
                                                       {"a{b{%if true%}c{%endif%}", "a{bc"},
                                                       {"{%if true%}\n\r\nx{%endif%}\r", "\nx"}};
  for (const auto& [source, text] : texts) EXPECT_EQ(RenderTemplate(source, {}).text, text);
}

TEST(ChatCompile, DeepNesting_IsRefused) {
  for (const char* bracket : {"(", "[", "-", "not ", "{'a':", "x if "}) {
    std::string source = "{{ ";
    for (int i = 0; i < 3000; ++i) source += bracket;
    EXPECT_THROW(convert::CompileChatTemplate(source + "1 }}"), convert::TemplateError) << bracket;
  }
  std::string sum = "{{ 1";
  for (int i = 0; i < 300; ++i) sum += " + 1";
  EXPECT_THROW(convert::CompileChatTemplate(sum + " }}"), convert::TemplateError);
}

TEST(ChatProgram, ALongOne_IsRefused) {
  const Rendered result = RenderBytes(std::vector<uint8_t>((16 << 20) + 1), {});
  EXPECT_EQ(Status::kBadBundle, result.status);
  EXPECT_EQ("chat template: its size is invalid", result.error);
}

// A damaged program is refused or ends in some way, checked by a sanitizer.
TEST(ChatProgram, Damage_DoesNoHarm) {
  const std::vector<uint8_t> good = convert::CompileChatTemplate(
      "{% macro f(a, b=[1]) %}{{ a[1:] }}{{ b }}{% endmacro %}{% for m in messages if m %}"
      "{% set ns = namespace(x=1.5) %}{% if ns.x > 1 and not m is none %}{{ f(m, b={'k': -1}) }}"
      "{% elif loop.first %}{% break %}{% else %}{{ 'a' ~ m | upper }}{% endif %}"
      "{% with q = m if m else 2 %}{{ q }}{% endwith %}{% filter trim %} {{ m }} {% endfilter %}"
      "{% set ns.x | lower %}A{% endset %}{% endfor %}");
  ChatCase c;
  c.messages = R"(["one", [1, 2], {"k": "v"}, 3])";
  c.max_steps = 20000;
  c.arena_bytes = 1 << 16;
  c.capacity = 1 << 12;
  ASSERT_EQ(Status::kTemplateError, RenderBytes(good, c).status);  // a dict has no slices
  size_t n_refused = 0;
  for (size_t i = 0; i < good.size(); ++i) {
    for (const uint8_t value : {0x00, 0x01, 0x7F, 0xFF}) {
      std::vector<uint8_t> bad = good;
      if (bad[i] == value) continue;
      bad[i] = value;
      n_refused += RenderBytes(bad, c).status == Status::kBadBundle ? 1 : 0;
    }
    RenderBytes(std::vector<uint8_t>(good.begin(), good.begin() + static_cast<ptrdiff_t>(i)), c);
  }
  EXPECT_GT(n_refused, good.size());
}

}  // namespace
}  // namespace arn::test
