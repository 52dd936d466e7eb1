#!/usr/bin/env python3
"""Writes the codebooks of GGUF's IQ1, IQ2 and IQ3 types to converter/gguf/codebook_points.h, from
gguf-py's tables.

  make_gguf_codebooks.py [--check]

Needs gguf and numpy. A point is a number whose digits are the positions of its levels, the first
level's digit the lowest. The points of each codebook ascend, so it is a set: bit n % 4 of
hexadecimal digit n / 4 says whether point n belongs to it. --check compares with the existing file.
"""

import argparse
import pathlib

from gguf import quants

PATH = pathlib.Path(__file__).parents[3] / "converter/gguf/codebook_points.h"
BOOKS = {"kIq1Points": quants.IQ1_S, "kIq2XxsPoints": quants.IQ2_XXS,
         "kIq2XsPoints": quants.IQ2_XS, "kIq2SPoints": quants.IQ2_S,
         "kIq3XxsPoints": quants.IQ3_XXS, "kIq3SPoints": quants.IQ3_S}
HEAD = """\
// Points of the codebooks of GGUF's IQ1, IQ2 and IQ3 types, as sets (codebooks.h). From ggml
// (https://github.com/ggml-org/ggml, MIT: toolchains/licences/ggml.txt). Written by
// tests/unit/converter/make_gguf_codebooks.py.
#pragma once

namespace arn::convert {
"""
END = """
}  // namespace arn::convert
"""


def marks(kind):
  kind.init_grid()
  levels = list(kind.grid_map)
  numbers = [sum(levels.index(level) * len(levels) ** i for i, level in enumerate(point))
             for point in kind.grid.reshape(kind.grid_shape).tolist()]
  if numbers != sorted(set(numbers)):
    raise SystemExit(f"{kind.__name__}: the points do not ascend")
  bits = sum(1 << number for number in numbers)
  digits = -(-len(levels) ** kind.grid_shape[1] // 4)
  return f"{bits:0{digits}x}"[::-1]


def main():
  parser = argparse.ArgumentParser(description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--check", action="store_true")
  arguments = parser.parse_args()
  text = HEAD
  for name, kind in BOOKS.items():
    digits = marks(kind)
    lines = [f'    "{digits[i:i + 94]}"' for i in range(0, len(digits), 94)]
    text += f"\ninline constexpr char {name}[] =\n" + "\n".join(lines) + ";\n"
  text += END
  if arguments.check:
    if PATH.read_text() != text:
      raise SystemExit(f"{PATH}: differs")
    return
  PATH.write_text(text)


if __name__ == "__main__":
  main()
