#include "converter/tokenizer/json_node.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "converter/tokenizer/file_text.h"
#include "converter/tokenizer/shown_json.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

std::string ShownOrNothing(const nlohmann::json* value) {
  return value == nullptr ? "nothing" : Shown(*value);
}

// Parses a number as serde_json (used by Hugging Face tokenizers) does, with at most one more
// rounding than the nearest double. Scores must match to the last bit.
double SerdeNumber(const std::string& text) {
  size_t i = 0;
  const bool is_negative = text[i] == '-';
  if (is_negative) ++i;
  const auto is_digit = [&] { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
  uint64_t digits = 0;
  int exponent = 0;
  bool is_full = false;  // true if the significand is full
  const auto read_digits = [&](bool is_fraction) {
    for (; is_digit(); ++i) {
      const uint64_t digit = static_cast<uint64_t>(text[i] - '0');
      is_full |= digits > (UINT64_MAX - digit) / 10;
      if (!is_full) digits = digits * 10 + digit;
      if (is_full != is_fraction) exponent += is_fraction ? -1 : 1;
    }
  };
  read_digits(false);
  if (i < text.size() && text[i] == '.') {
    ++i;
    read_digits(true);
  }
  if (i < text.size()) {
    ++i;  // the parser has seen 'e' or 'E', and a digit behind it
    const bool is_down = text[i] == '-';
    if (is_down || text[i] == '+') ++i;
    int written = 0;
    for (; is_digit(); ++i) written = std::min(written * 10 + (text[i] - '0'), 100000);
    exponent += is_down ? -written : written;
  }
  double value = static_cast<double>(digits);
  constexpr int kLargest = 308;
  for (; exponent < -kLargest && value != 0; exponent += kLargest) value /= 1e308;
  // A larger exponent would be no finite number, which the parser refuses.
  if (value != 0) {
    const double power = std::strtod(("1e" + std::to_string(std::abs(exponent))).c_str(), nullptr);
    value = exponent >= 0 ? value * power : value / power;
  }
  return is_negative ? -value : value;
}

// Builds the document as the library does, except for numbers.
class DocumentReader : public nlohmann::detail::json_sax_dom_parser<nlohmann::json> {
 public:
  using json_sax_dom_parser::json_sax_dom_parser;
  bool number_float(double, const std::string& text) {
    return json_sax_dom_parser::number_float(SerdeNumber(text), text);
  }
};

}  // namespace

bool JsonNode::IsNull() const { return value_ == nullptr || value_->is_null(); }

void JsonNode::Fail(const std::string& message) const {
  throw TokenizerError(file_ + ": " + (path_.empty() ? "" : path_ + " ") + message);
}

void JsonNode::FailUnsupported() const { Fail(ShownOrNothing(value_) + " is not supported"); }

JsonNode JsonNode::operator[](const std::string& key) const {
  const std::string path = path_.empty() ? key : path_ + "." + key;
  if (IsNull()) return {nullptr, file_, path};
  if (!value_->is_object()) Fail("is " + ShownOrNothing(value_) + ", expected an object");
  const auto found = value_->find(key);
  return {found == value_->end() ? nullptr : &*found, file_, path};
}

std::vector<JsonNode> JsonNode::Items() const {
  if (value_ == nullptr || !value_->is_array()) {
    Fail("is " + ShownOrNothing(value_) + ", expected an array");
  }
  std::vector<JsonNode> items;
  items.reserve(value_->size());
  for (size_t i = 0; i < value_->size(); ++i) {
    items.push_back({&(*value_)[i], file_, path_ + "[" + std::to_string(i) + "]"});
  }
  return items;
}

std::string JsonNode::String() const {
  if (value_ == nullptr || !value_->is_string()) {
    Fail("is " + ShownOrNothing(value_) + ", expected a string");
  }
  return value_->get<std::string>();
}

bool JsonNode::Bool() const {
  if (value_ == nullptr || !value_->is_boolean()) {
    Fail("is " + ShownOrNothing(value_) + ", expected true or false");
  }
  return value_->get<bool>();
}

uint32_t JsonNode::Uint() const {
  if (value_ == nullptr || !value_->is_number_unsigned() || value_->get<uint64_t>() > UINT32_MAX) {
    Fail("is " + ShownOrNothing(value_) + ", expected a number from 0 to 4294967295");
  }
  return value_->get<uint32_t>();
}

nlohmann::json ParseTokenizerJson(const std::string& text, const std::string& name) {
  try {
    nlohmann::json document;
    DocumentReader reader(document);
    nlohmann::json::sax_parse(text, &reader);
    return document;
  } catch (const nlohmann::json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    const std::string reason = error.what();
    throw TokenizerError(name + ": not valid JSON: " + reason.substr(reason.find("] ") + 2));
  }
}

nlohmann::json ReadJsonFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw TokenizerError(path.string() + ": cannot be opened");
  std::string text;
  if (!AppendRest(&file, &text)) throw TokenizerError(path.string() + ": cannot be read");
  return ParseTokenizerJson(text, path.string());
}

}  // namespace arn::convert
