"""Generates bindings and documentation from the headers of the C API.

usage: generate.py                  rewrites the files of written()
       generate.py --check          fails, naming the file, if one of them is out of date
       generate.py --layout FILE.c  writes the program that prints the layouts
"""

import argparse
import pathlib
import sys

import headers
import java_structs
import layout
import python_abi
import python_options
import reference
import sampling


def written():
  """Maps paths in the source tree to their contents."""
  return {
      sampling.DOCS: sampling.docs(),
      "bindings/python/arenite/_constants.py": python_abi.constants_file(),
      "bindings/python/arenite/_abi.py": python_abi.make(),
      "bindings/python/arenite/_functions.py": python_abi.functions(),
      "bindings/python/arenite/enums.py": python_options.enums_file(),
      "bindings/python/arenite/options.py": python_options.options_file(),
      "bindings/python/arenite/results.py": python_options.results_file(),
      "docs/c-api.md": reference.make(),
      **java_structs.tables(),
      **java_structs.classes(),
  }


def main():
  parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
  parser.add_argument("--check", action="store_true")
  parser.add_argument("--layout", type=pathlib.Path)
  arguments = parser.parse_args()
  if arguments.layout:
    arguments.layout.write_text(layout.make(), encoding="utf-8")
    return 0
  # The other files are made from the headers, this one included.
  made, wrong = {sampling.HEADER: sampling.header()}, []
  if not arguments.check:
    (headers.ROOT / sampling.HEADER).write_text(made[sampling.HEADER], encoding="utf-8")
  made |= written()
  for path in (headers.ROOT / java_structs.JAVA).glob("*.java"):
    name = path.relative_to(headers.ROOT).as_posix()
    if path.read_text(encoding="utf-8").startswith(java_structs.HEAD) and name not in made:
      wrong.append(name)
      if not arguments.check:
        path.unlink()
  for name, text in made.items():
    path = headers.ROOT / name
    if path.is_file() and path.read_text(encoding="utf-8") == text:
      continue
    wrong.append(name)
    if not arguments.check:
      path.parent.mkdir(parents=True, exist_ok=True)
      path.write_text(text, encoding="utf-8")
  for name in wrong:
    print(f"{name}: " + ("does not match the headers: run tools/c_api/generate.py."
                         if arguments.check else "written." if name in made else "removed."))
  return 1 if arguments.check and wrong else 0


if __name__ == "__main__":
  sys.exit(main())
