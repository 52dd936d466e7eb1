// Text for people: wrapped lines, the nearest name to a misspelt one, lists.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace arn::cli {

// Breaks a text into lines of at most `columns` characters. Line breaks in the text stay. A longer
// word has a line of its own.
std::vector<std::string> Wrap(std::string_view text, size_t columns);

// Returns the name that takes the fewest edits (insertions, deletions, replacements, swaps of
// neighbours) from `word`, letter case aside; "" if none is near: at most a third of the letters
// may differ. A name that begins with `word`, or the other way round, is near too.
std::string Nearest(std::string_view word, const std::vector<std::string>& names);

// Returns "a, b or c".
std::string OneOf(const std::vector<std::string>& words);

// Splits at a character.
std::vector<std::string> SplitAt(std::string_view text, char separator);

}  // namespace arn::cli
