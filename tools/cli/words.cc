#include "tools/cli/words.h"

#include <algorithm>
#include <cctype>

namespace arn::cli {
namespace {

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// Optimal string alignment distance.
size_t Edits(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, replaced});
      const bool is_swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_swap) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

bool Begins(const std::string& start, const std::string& text) {
  return start.size() >= 3 && text.compare(0, start.size(), start) == 0;
}

}  // namespace

std::vector<std::string> Wrap(std::string_view text, size_t columns) {
  std::vector<std::string> lines;
  for (const std::string& paragraph : SplitAt(text, '\n')) {
    std::string line;
    // An indented line, such as an example, keeps its indentation.
    const size_t indent = std::min(paragraph.find_first_not_of(' '), paragraph.size());
    line.assign(indent, ' ');
    bool is_empty = true;
    for (const std::string& word : SplitAt(std::string_view(paragraph).substr(indent), ' ')) {
      if (!is_empty && line.size() + 1 + word.size() > columns) {
        lines.push_back(line);
        line.assign(indent, ' ');
        is_empty = true;
      }
      if (!is_empty) line += ' ';
      line += word;
      is_empty = false;
    }
    lines.push_back(line);
  }
  return lines;
}

std::string Nearest(std::string_view word, const std::vector<std::string>& names) {
  const std::string wanted = Lower(word);
  std::string nearest;
  // In half edits: a beginning is nearer than two edits, and not as near as one.
  size_t least = 2 * std::max<size_t>(wanted.size() / 3, 1) + 1;
  for (const std::string& name : names) {
    const std::string lower = Lower(name);
    size_t distance = 2 * Edits(wanted, lower);
    if (distance > 3 && (Begins(wanted, lower) || Begins(lower, wanted))) distance = 3;
    if (distance >= least) continue;
    least = distance;
    nearest = name;
  }
  return wanted.size() > 1 ? nearest : "";
}

std::string OneOf(const std::vector<std::string>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

std::vector<std::string> SplitAt(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (;;) {
    const size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

}  // namespace arn::cli
