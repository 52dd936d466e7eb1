#include "tools/cli/renamed.h"

#include <string_view>

namespace arn::cli {
namespace {

struct Renamed {
  std::string_view before;
  std::string_view now;
};
// Version 0.2.
constexpr Renamed kRenamed[] = {
    {"--heat-limit", "--thermal-limit"}, {"--heat-headroom", "--thermal-headroom"},
    {"--heat-duty", "--thermal-duty"},   {"--heat-zone", "--thermal-zone"},
    {"--source", "--encoder-text"},      {"--source-ids", "--encoder-ids"},
};

}  // namespace

std::vector<std::string> WithCurrentNames(std::vector<std::string> words) {
  for (std::string& word : words) {
    const std::string flag = word.substr(0, word.find('='));
    for (const Renamed& renamed : kRenamed) {
      if (flag == renamed.before) word.replace(0, flag.size(), renamed.now);
    }
  }
  return words;
}

}  // namespace arn::cli
