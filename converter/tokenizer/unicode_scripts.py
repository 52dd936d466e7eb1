"""Writes unicode_scripts_table.h: the script of every character in Hugging Face tokenizers
(0.23.1), which uses an older Unicode and merges Hiragana, Katakana and Han. Probes the library.

  python3 unicode_scripts.py       from this folder; needs the package tokenizers; half a minute
"""

import collections
import pathlib
import unicodedata

from tokenizers.pre_tokenizers import UnicodeScripts

OUT = pathlib.Path(__file__).with_name("unicode_scripts_table.h")
HEAD = """\
// The scripts of characters. Written by unicode_scripts.py: do not edit it.
#pragma once

#include <cstdint>

namespace arn::convert {

struct ScriptRange {
  uint32_t first;
  uint32_t last;
  uint32_t script;  // a number; that of the most characters is 0
};
// clang-format off
inline constexpr ScriptRange kScriptRanges[] = {
"""
TAIL = """
};
// clang-format on

}  // namespace arn::convert
"""
ASK = UnicodeScripts().pre_tokenize_str


def joined(a, b):
  return len(ASK(a + b)) == 1


def main():
  first, scripts, unassigned = [], {}, ""
  for code in range(0x110000):
    c = chr(code)
    if 0xD800 <= code < 0xE000:
      continue
    if unicodedata.category(c) in ("Cn", "Co"):
      unassigned += c
    elif not (joined("a", c) and joined("\u044f", c)):  # no script if it joins both
      known = (i for i, f in enumerate(first) if joined(f, c))
      scripts[code] = next(known, len(first))
      if scripts[code] == len(first):
        first.append(c)
  for i in range(0, len(unassigned), 200):
    assert joined("a", unassigned[i:i + 200]) and joined("\u044f", unassigned[i:i + 200])
  # Largest first: the pattern tries them in this order.
  order = [s for s, _ in collections.Counter(scripts.values()).most_common()]
  ranges = []
  for code, script in sorted(scripts.items()):
    if ranges and ranges[-1][1] == code - 1 and ranges[-1][2] == order.index(script):
      ranges[-1][1] = code
    else:
      ranges.append([code, code, order.index(script)])
  lines, line = [], ""
  for low, high, script in ranges:
    item = f"{{0x{low:X}, 0x{high:X}, {script}}},"
    if len(line) + len(item) > 98:
      lines.append(line.rstrip())
      line = ""
    line += item + " "
  OUT.write_text(HEAD + "\n".join(lines + [line.rstrip()]) + TAIL, encoding="utf-8")
  print(f"{len(ranges)} ranges, {len(order)} scripts")


if __name__ == "__main__":
  main()
