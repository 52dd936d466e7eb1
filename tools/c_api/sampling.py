"""Reads runtime/sampling/options.def and generates from it: the header of arn_sampling and the
table of docs/cli.md.
"""

import dataclasses
import re
import textwrap

import headers

TABLE = headers.ROOT / "runtime/sampling/options.def"
HEADER = "runtime/api/include/arenite/sampling.h"
DOCS = "docs/cli.md"
_ROW = re.compile(r"^ARN_(SCALAR|LIST)\((.*?)\)\n(?=\n|#|ARN_|//)", re.MULTILINE | re.DOTALL)


@dataclasses.dataclass
class Option:
  id: int
  type: str
  name: str
  off: str  # as in C; a list: ""
  flags: set[str]
  help: str

  @property
  def is_list(self):
    return not self.off


def _arguments(text):
  """Splits a macro's arguments at the commas outside parentheses and strings."""
  parts, depth, is_quoted, part = [], 0, False, ""
  for c in " ".join(text.split()):
    is_quoted ^= c == '"'
    depth += 0 if is_quoted else {"(": 1, ")": -1}.get(c, 0)
    if c == "," and depth == 0 and not is_quoted:
      parts.append(part.strip())
      part = ""
    else:
      part += c
  return parts + [part.strip()]


def read():
  """Returns the rows, in order."""
  options = []
  for kind, text in _ROW.findall(TABLE.read_text(encoding="utf-8")):
    words = _arguments(text)
    if kind == "LIST":
      words[3:3] = ["", ""]
    number, kind_of_value, name, off, _, flags, text = words
    options.append(Option(int(number), kind_of_value, name, off,
                          set(flags.replace(" ", "").split("|")),
                          "".join(re.findall(r'"([^"]*)"', text))))
  return options


def _comment(text):
  lines = textwrap.wrap(text, 93)
  return "  /* " + "\n   * ".join(lines) + " */\n"


def header():
  text = """\
/* Part of arenite.h: sampling options. Written by tools/c_api/generate.py from
 * runtime/sampling/options.def: do not edit it. */
#ifndef ARENITE_SAMPLING_H_
#define ARENITE_SAMPLING_H_

#include <stddef.h>
#include <stdint.h>

/* How the next token is chosen. ARN_SAMPLING_INIT is greedy, with every option off; new fields come
 * last. Lists are read during the call only. docs/sampling.md has the formulas and the order in
 * which the options apply. */
typedef struct arn_sampling {
  size_t struct_size;
"""
  values = ["sizeof(arn_sampling)"]
  for option in read():
    text += _comment(option.help)
    if option.is_list:
      text += f"  const {option.type}* {option.name};\n  uint32_t n_{option.name};\n"
      values += ["NULL", "0"]
    else:
      text += f"  {option.type} {option.name};\n"
      values.append(option.off)
  text += "} arn_sampling;\n/* clang-format off */\n#define ARN_SAMPLING_INIT \\\n  { "
  text += " \\\n    ".join(textwrap.wrap(", ".join(values), 90)) + " }\n/* clang-format on */\n"
  return text + "\n#endif /* ARENITE_SAMPLING_H_ */\n"


def flag(name):
  return "--" + name.replace("_", "-")


def docs():
  """Returns docs/cli.md with the table of flags between its two marks."""
  text = (headers.ROOT / DOCS).read_text(encoding="utf-8")
  rows = "".join(f"| `{flag(o.name)}` | {o.help} |\n" for o in read())
  begin, end = "<!-- sampling flags -->\n", "<!-- end of sampling flags -->\n"
  if begin not in text:
    raise SystemExit(f"{DOCS}: the mark {begin.strip()} is missing")
  first, rest = text.split(begin, 1)
  return first + begin + "| flag | |\n|---|---|\n" + rows + end + rest.split(end, 1)[1]
