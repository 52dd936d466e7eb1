#include "converter/hf/json_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <vector>

#include "converter/base/error.h"
#include "converter/tokenizer/file_text.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

// Strips the parser's prefix "[json.exception...] parse error at line 1, column 2: ".
std::string Reason(const std::string& what) {
  return what.substr(what.find(": ", what.find("column ")) + 2);
}

// Replaces Infinity, -Infinity and NaN outside strings, which Python writes and JSON does not have,
// by what transformers 5 writes instead.
std::string WithoutBareFloats(const std::string& text) {
  std::string out;
  bool in_string = false;
  for (size_t i = 0; i < text.size();) {
    if (in_string && text[i] == '\\' && i + 1 < text.size()) {
      out.append(text, i, 2);
      i += 2;
      continue;
    }
    if (text[i] == '"') in_string = !in_string;
    size_t length = 0;
    for (const char* word : {"-Infinity", "Infinity", "NaN"}) {
      if (!in_string && length == 0 && text.compare(i, std::strlen(word), word) == 0) {
        length = std::strlen(word);
      }
    }
    if (length == 0) {
      out.push_back(text[i++]);
      continue;
    }
    out += "{\"__float__\": \"" + text.substr(i, length) + "\"}";
    i += length;
  }
  return out;
}

}  // namespace

std::string ReadTextFile(const std::filesystem::path& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) Fail("%s: cannot open: %s", path.c_str(), std::strerror(errno));
  std::string text;
  if (!AppendRest(&file, &text)) Fail("%s: cannot read: %s", path.c_str(), std::strerror(errno));
  return text;
}

NamedText ReadNamedText(const std::filesystem::path& path) {
  return {path.string(), ReadTextFile(path)};
}

nlohmann::json ParseJson(const std::string& text, const std::string& label) {
  std::vector<std::set<std::string>> open_objects;
  const auto watch_keys = [&](int, nlohmann::json::parse_event_t event, nlohmann::json& value) {
    switch (event) {
      case nlohmann::json::parse_event_t::object_start: open_objects.emplace_back(); break;
      case nlohmann::json::parse_event_t::object_end: open_objects.pop_back(); break;
      case nlohmann::json::parse_event_t::key:
        if (!open_objects.back().insert(value.get_ref<const std::string&>()).second) {
          Fail("%s: the key %s appears twice in one object", label.c_str(), Shown(value).c_str());
        }
        break;
      case nlohmann::json::parse_event_t::array_start:
      case nlohmann::json::parse_event_t::array_end:
      case nlohmann::json::parse_event_t::value: break;
    }
    return true;
  };
  try {
    return nlohmann::json::parse(text, watch_keys);
  } catch (const nlohmann::json::parse_error& error) {
    const std::string strict = WithoutBareFloats(text);
    open_objects.clear();
    if (strict != text && nlohmann::json::accept(strict)) {
      return nlohmann::json::parse(strict, watch_keys);
    }
    // `byte` is 1-based: the character at which parsing failed.
    const size_t position = std::min(error.byte - 1, text.size());
    size_t line = 1, column = 1;
    for (size_t i = 0; i < position; ++i) {
      column = text[i] == '\n' ? 1 : column + 1;
      line += text[i] == '\n';
    }
    Fail("%s:%zu:%zu: not valid JSON: %s", label.c_str(), line, column,
         Reason(error.what()).c_str());
  } catch (const nlohmann::json::out_of_range& error) {
    const std::string what = error.what();
    Fail("%s: not valid JSON: %s", label.c_str(), what.substr(what.find("] ") + 2).c_str());
  }
}

nlohmann::json LoadJson(const std::filesystem::path& path) {
  return ParseJson(ReadTextFile(path), path.string());
}

}  // namespace arn::convert
