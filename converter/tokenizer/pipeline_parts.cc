#include "converter/tokenizer/pipeline_parts.h"

#include <stdexcept>
#include <utility>

#include "converter/tokenizer/regex_translate.h"

namespace arn::convert {
namespace {

size_t CharacterCount(const std::string& text) {
  size_t count = 0;
  for (const char c : text) count += (static_cast<uint8_t>(c) & 0xC0) != 0x80;
  return count;
}

}  // namespace

std::string Translated(const JsonNode& node, const std::string& pattern) {
  try {
    return TranslateRegex(pattern);
  } catch (const std::invalid_argument& reason) {
    node.Fail("cannot be used as a regular expression: " + std::string(reason.what()));
  }
}

Pattern ReadPattern(const JsonNode& node) {
  const JsonNode literal = node["String"];
  const JsonNode regex = node["Regex"];
  if (literal.IsNull() == regex.IsNull()) node.FailUnsupported();
  const bool is_regex = literal.IsNull();
  std::string text = (is_regex ? regex : literal).String();
  if (text.empty()) node.Fail("is empty");
  return {is_regex ? Translated(regex, text) : std::move(text), is_regex};
}

std::string ReadCharacter(const JsonNode& node) {
  std::string text = node.String();
  if (CharacterCount(text) != 1) node.Fail("is not one character");
  return text;
}

fbs::PrependScheme ReadPrependScheme(const JsonNode& metaspace) {
  const JsonNode scheme = metaspace["prepend_scheme"];
  if (scheme.IsNull()) {
    return metaspace["add_prefix_space"].Bool(true) ? fbs::PrependScheme::Always
                                                    : fbs::PrependScheme::Never;
  }
  const std::string name = scheme.String();
  if (name == "always") return fbs::PrependScheme::Always;
  if (name == "first") return fbs::PrependScheme::First;
  if (name == "never") return fbs::PrependScheme::Never;
  scheme.FailUnsupported();
}

}  // namespace arn::convert
