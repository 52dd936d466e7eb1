"""Checks binary compatibility with compiled programs: v0_1/ is the header they were compiled with.

Every old struct keeps its fields at their offsets, and new fields follow the old end (an old
program does not initialise its padding, which its struct_size covers). Every constant keeps its
value, every function its type. Compares the headers by compiling them for the target; runs nothing.
With --library the shared library must have the functions too; tests/package runs a program compiled
with the old header.

--record writes v0_1/arenite/arenite.h again (format it afterwards): only before version 0.1 is
released.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import unittest

FOLDER = os.path.dirname(os.path.abspath(__file__))
OLD_HEADER = os.path.join(FOLDER, "v0_1/arenite/arenite.h")
PARTS = (  # the others are not covered
    "status.h", "model.h", "sampling.h", "sampling_info.h", "session.h", "state.h", "beams.h",
    "stats.h", "device.h", "chat.h")
options = None


def strip_comments(text):
  return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)


def public_text():
  """Returns the declarations of the headers: no comments, no includes, no guards."""
  folder = os.path.join(options.source, "runtime/api/include/arenite")
  lines = []
  for part in PARTS:
    with open(os.path.join(folder, part), encoding="utf-8") as f:
      text = strip_comments(f.read())
    text = re.sub(r"#ifdef __cplusplus.*?#endif", "", text, flags=re.S)
    for line in text.split("\n"):
      if re.match(r"\s*#\s*(include\b|ifndef ARENITE_|define ARENITE_)", line):
        continue
      lines.append(line.rstrip())
  text = "\n".join(lines)
  # Each header ends with the #endif of its guard.
  depth, kept = 0, []
  for line in text.split("\n"):
    if re.match(r"\s*#\s*if", line):
      depth += 1
    elif re.match(r"\s*#\s*endif", line):
      if depth == 0:
        continue
      depth -= 1
    if line.strip() or (kept and kept[-1].strip()):
      kept.append(line)
  return "\n".join(kept).strip() + "\n"


class Declarations:
  """The declarations of a header: structs with their fields in order, constants, functions."""

  def __init__(self, text):
    text = strip_comments(text)
    self.structs = {}
    for body, name in re.findall(r"typedef struct \w+ \{(.*?)\}\s*(\w+);", text, flags=re.S):
      fields = []
      for declaration in body.split(";"):
        function = re.search(r"\(\*(\w+)\)\s*\(", declaration)
        if function:
          fields.append(function.group(1))
        elif declaration.strip():
          first, *others = re.sub(r"\[[^]]*\]", "", declaration).split(",")
          names = [re.findall(r"\w+", first)[-1]] + [re.findall(r"\w+", o)[-1] for o in others]
          fields += names
      self.structs[name] = fields
    self.constants = []
    for body in re.findall(r"\benum\s*\w*\s*\{(.*?)\}", text, flags=re.S):
      self.constants += re.findall(r"\b(ARN_\w+)", re.sub(r"=[^,}]*", "", body))
    self.constants += re.findall(r"#define (ARN_VERSION_MAJOR)", text)
    self.functions = {}
    for declaration, name in re.findall(r"(ARN_API[^;(]*?(arn_\w+)\s*\([^;]*\))\s*;", text):
      self.functions[name] = " ".join(declaration.split())


def run(*command):
  done = subprocess.run(command, capture_output=True, text=True)
  if done.returncode != 0:
    raise AssertionError(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr[-3000:]}")
  return done.stdout


def values(header, expressions, folder):
  """Evaluates constant expressions with the target's compiler, through its object file."""
  source = os.path.join(folder, "values.c")
  compiled = os.path.join(folder, "values.o")
  raw = os.path.join(folder, "values.bin")
  with open(source, "w", encoding="utf-8") as f:
    f.write(f"#include {header}\n#include <stddef.h>\n#include <stdint.h>\n"
            "__attribute__((section(\"arn_abi\"), used)) const uint64_t abi_values[] = {\n")
    f.writelines(f"  (uint64_t)({e}),\n" for e in expressions)
    f.write("};\n")
  run(options.cc, *options.flags.split(), "-std=c11", "-c", source, "-o", compiled,
      "-I", os.path.join(options.source, "runtime/api/include"))
  run(options.objcopy, "-O", "binary", "-j", "arn_abi", compiled, raw)
  with open(raw, "rb") as f:
    data = f.read()
  return [int.from_bytes(data[8 * i:8 * i + 8], "little") for i in range(len(expressions))]


class Layout:
  """sizeof each struct, and (offset, size) of each field, on the target."""

  def __init__(self, header, declarations, folder):
    self.sizes, self.fields = {}, {}
    expressions = []
    for name, fields in declarations.structs.items():
      expressions.append(f"sizeof({name})")
      for field in fields:
        expressions += [f"offsetof({name}, {field})", f"sizeof((({name}*)0)->{field})"]
    found = iter(values(header, expressions, folder))
    for name, fields in declarations.structs.items():
      self.sizes[name] = next(found)
      self.fields[name] = {field: (next(found), next(found)) for field in fields}


# Fields of 0.1 under their names of 0.2. They keep their places: an old program still runs, and is
# compiled again after a change of the name.
RENAMED = {
    "heat_limit_mc": "thermal_limit_mc", "heat_headroom": "thermal_headroom",
    "heat_duty_percent": "thermal_duty_percent", "heat_zone": "thermal_zone",
    "source_rows": "encoder_rows", "source_feature_width": "encoder_feature_width",
    "is_source": "is_encoder", "n_sealed_pages": "n_quantised_pages",
    "sealed_page_bytes": "quantised_page_bytes", "sealed_offset": "quantised_offset",
}


def breaks(old, old_layout, new, new_layout):
  """Returns the incompatible changes for an old program, as sentences."""
  wrong = []
  for name, fields in old.structs.items():
    if name not in new.structs:
      wrong.append(f"{name} is gone")
      continue
    for field in fields:
      was = old_layout.fields[name][field]
      found = new_layout.fields[name]
      now = found.get(field, found.get(RENAMED.get(field)))
      if now is None:
        wrong.append(f"{name}.{field} is gone")
      elif now != was:
        wrong.append(f"{name}.{field}: offset and size were {was}, are {now}")
    size = old_layout.sizes[name]
    known = {*fields, *(RENAMED.get(field) for field in fields)}
    for field in new.structs[name]:
      offset = new_layout.fields[name][field][0]
      if field not in known and offset < size:
        wrong.append(f"{name}.{field} lies at {offset}, inside the {size} bytes of old programs: "
                     "put a reserved field before it")
    if new.structs[name][0] != "struct_size" and new_layout.sizes[name] != size:
      wrong.append(f"{name} has {new_layout.sizes[name]} bytes, had {size}, and no struct_size")
  for name, declaration in old.functions.items():
    if new.functions.get(name) != declaration:
      wrong.append(f"'{declaration}' is now '{new.functions.get(name)}'")
  return wrong


class AbiTest(unittest.TestCase):
  def setUp(self):
    holder = tempfile.TemporaryDirectory()
    self.addCleanup(holder.cleanup)
    self.folder = holder.name
    with open(OLD_HEADER, encoding="utf-8") as f:
      self.old = Declarations(f.read())

  def layout_of(self, text):
    path = os.path.join(self.folder, "header.h")
    with open(path, "w", encoding="utf-8") as f:
      f.write("#include <stddef.h>\n#include <stdint.h>\n" + text)
    declarations = Declarations(text)
    return declarations, Layout(f'"{path}"', declarations, self.folder)

  def test_old_programs_find_everything_where_it_was(self):
    new = Declarations(public_text())
    self.assertGreater(len(self.old.structs), 15)
    self.assertGreater(len(self.old.functions), 50)
    self.assertEqual(breaks(self.old, Layout(f'"{OLD_HEADER}"', self.old, self.folder),
                            new, Layout("<arenite/arenite.h>", new, self.folder)), [])

  def test_constants_have_their_values(self):
    old = values(f'"{OLD_HEADER}"', self.old.constants, self.folder)
    new = values("<arenite/arenite.h>", self.old.constants, self.folder)
    self.assertGreater(len(old), 50)
    self.assertEqual(dict(zip(self.old.constants, new)), dict(zip(self.old.constants, old)))

  def test_breaks_are_seen(self):
    begin = "typedef struct arn_s { size_t struct_size; uint32_t a; "
    old = self.layout_of("#define ARN_API\n" + begin + "} arn_s;\nARN_API int arn_f(int x);\n")
    for text, expected in (
        (begin + "} arn_s;\nARN_API int arn_f(int x);", None),
        (begin + "uint32_t reserved; uint64_t b; } arn_s;\nARN_API int arn_f(int x);",
         "reserved lies at" if old[1].sizes["arn_s"] == 16 else None),
        (begin + "uint64_t b; } arn_s;\nARN_API int arn_f(int x);", None),
        ("typedef struct arn_s { size_t struct_size; uint64_t b; uint32_t a; } arn_s;\n"
         "ARN_API int arn_f(int x);", "arn_s.a: offset"),
        (begin + "} arn_s;\nARN_API int arn_f(long x);", "'ARN_API int arn_f(int x)' is now"),
        ("typedef struct arn_s { size_t struct_size; } arn_s;\nARN_API int arn_f(int x);",
         "arn_s.a is gone")):
      with self.subTest(text):
        found = " ".join(breaks(*old, *self.layout_of("#define ARN_API\n" + text + "\n")))
        if expected is None:
          self.assertEqual(found, "")
        else:
          self.assertIn(expected, found)

  def test_library_has_every_function(self):
    if not options.library:
      self.skipTest("no shared library is built")
    listed = run(options.nm, "-D", "--defined-only", options.library).split("\n")
    exported = {line.split()[-1] for line in listed if line.strip()}
    self.assertEqual(sorted(set(self.old.functions) - exported), [])


def record():
  os.makedirs(os.path.dirname(OLD_HEADER), exist_ok=True)
  with open(OLD_HEADER, "w", encoding="utf-8") as f:
    f.write("/* The C API as programs of version 0.1 know it: a record by abi_test.py. */\n"
            "#ifndef ARENITE_ARENITE_H_\n#define ARENITE_ARENITE_H_\n\n#include <stddef.h>\n"
            "#include <stdint.h>\n\n" + public_text() + "\n#endif\n")


if __name__ == "__main__":
  parser = argparse.ArgumentParser()
  parser.add_argument("--source", required=True)
  parser.add_argument("--cc", default="cc")
  parser.add_argument("--flags", default="")
  parser.add_argument("--objcopy", default="objcopy")
  parser.add_argument("--nm", default="nm")
  parser.add_argument("--library", default="")
  parser.add_argument("--record", action="store_true")
  options, rest = parser.parse_known_args()
  if options.record:
    record()
  else:
    unittest.main(argv=[sys.argv[0]] + rest)
