#include "converter/tokenizer/unicode_scripts.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "converter/tokenizer/unicode_scripts_table.h"

namespace arn::convert {
namespace {

std::string Members(const ScriptRange& range) {
  char text[40];
  std::snprintf(text, sizeof text, "\\x{%X}-\\x{%X}", range.first, range.last);
  return text;
}

}  // namespace

std::string UnicodeScriptsRegex() {
  std::vector<std::string> scripts;
  std::string all;
  for (const ScriptRange& range : kScriptRanges) {
    scripts.resize(std::max<size_t>(scripts.size(), range.script + 1));
    scripts[range.script] += Members(range);
    all += Members(range);
  }
  // (?1) matches characters without a script.
  std::string pattern = "(?(DEFINE)([^" + all + "]++))(?:";
  for (size_t i = 0; i < scripts.size(); ++i) {
    if (i > 0) pattern += '|';
    pattern += "[" + scripts[i] + "](?:[" + scripts[i] + "]++|(?1))*+";
  }
  return pattern + ")";
}

}  // namespace arn::convert
