"""Generates _constants.py, _abi.py and _functions.py of bindings/python/arenite: the C API as
constants, ctypes structures and signatures."""

import re

import headers

HEAD = '''\
"""The C API as ctypes sees it. Written by tools/c_api/generate.py from arenite.h: do not edit it.

A test compares it with what the C compiler makes of the same headers.
"""

from __future__ import annotations

from ctypes import (
    CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_float, c_int, c_int32, c_int64,
    c_size_t, c_uint8, c_uint32, c_uint64, c_void_p)

from ._constants import *  # noqa: F403
from ._struct import Struct
'''

CONSTANTS_HEAD = '''\
"""Enums and numbers of the C API. Written by tools/c_api/generate.py from arenite.h: do not edit
it."""

'''

FUNCTIONS_HEAD = '''\
"""The functions of the C API. Written by tools/c_api/generate.py from arenite.h: do not edit it."""

from __future__ import annotations

'''

_SCALARS = {
    "size_t": "c_size_t", "uint32_t": "c_uint32", "uint64_t": "c_uint64",
    "int32_t": "c_int32", "int64_t": "c_int64", "uint8_t": "c_uint8", "float": "c_float",
    "double": "c_double", "int": "c_int", "char": "c_char",
    "arn_status": "c_uint32",
}


class Types:
  """Maps C types to Python expressions."""

  def __init__(self, found):
    self.structs = {d.name for d in found if d.kind == "struct"}
    self.opaque = {d.name for d in found if d.kind == "opaque"}
    self.callbacks = {d.name for d in found if d.kind == "callback"}
    self.callbacks |= {v.type for d in found for v in d.variables if v.callback}

  def ctype(self, c_type, in_callback=False):
    name = c_type.replace("const ", "")
    if name in _SCALARS:
      return _SCALARS[name]
    if name in self.callbacks or name in self.structs:
      return name
    target = name[:-1]
    if not name.endswith("*"):
      raise ValueError(f"unsupported type: {c_type}")
    if target == "char":
      # Callback text is a pointer and a length; c_char_p would cut it at a NUL.
      return "c_void_p" if in_callback else "c_char_p"
    if target == "void" or target in self.opaque:
      return "c_void_p"
    return "POINTER(%s)" % ("c_void_p" if "*" in target else self.ctype(target))


def _wrapped(first, items, last, indent="    "):
  """Joins `first`, the items with commas, and `last` into lines of at most 100 columns."""
  lines, line = [], first
  for i, item in enumerate(items):
    piece = item + ("," if i + 1 < len(items) or len(items) == 1 else last)
    if len(line) + 1 + len(piece) > 100:
      lines.append(line)
      line = indent
    line += ("" if line.endswith(("(", "[", " ")) else " ") + piece
  if not items or len(items) == 1:
    line += last
  return "\n".join(lines + [line]) + "\n"


def _initial(declaration, struct, constants, callbacks):
  values = []
  for word, field in zip(declaration.initial, struct.variables[1:], strict=True):
    if field.type in callbacks:
      values.append(f"{field.type}(0)")  # NULL, of that type
    elif field.elements:
      values.append('b""' if field.type == "char" else "()")
    elif word == "NULL":
      values.append("None")
    elif word in constants:
      values.append(str(constants[word]))
    else:
      values.append(word.removesuffix("f"))
  return values


def make():
  found = headers.declarations()
  types, constants = Types(found), headers.constants(found)
  initial = {d.name: d for d in found if d.kind == "init"}
  text = HEAD
  for d in found:
    callbacks = [d] if d.kind == "callback" else [v.callback for v in d.variables if v.callback]
    for callback in callbacks:
      arguments = ["None" if callback.returns == "void" else types.ctype(callback.returns)]
      arguments += [types.ctype(v.type, in_callback=True) for v in callback.variables]
      text += "\n" + _wrapped(f"{callback.name} = CFUNCTYPE(", arguments, ")")
    if d.kind == "struct":
      text += f"\n\nclass {d.name}({'Struct' if d.name in initial else 'Structure'}):\n"
      fields = [f'("{v.name}", {types.ctype(v.type)}' + (f" * {v.elements})" if v.elements else ")")
                for v in d.variables]
      text += _wrapped("  _fields_ = [", fields, "]", "      ")
      if d.name in initial:
        values = _initial(initial[d.name], d, constants, types.callbacks)
        text += _wrapped("  _initial_ = (", values, ")", "      ")
  return text


def constants_file():
  found = headers.constants(headers.declarations())
  return CONSTANTS_HEAD + "".join(f"{name} = {value}\n" for name, value in found.items())


def functions():
  found = headers.declarations()
  types = Types(found)
  table = ""
  for d in found:
    if d.kind == "function":
      returns = "None" if d.returns == "void" else types.ctype(d.returns)
      arguments = [types.ctype(v.type) for v in d.variables]
      table += _wrapped(f'    "{d.name}": ({returns}, (', arguments, ")),", "        ")
  words = set(re.findall(r"(?<!\")\b\w+", table)) - {"None"}
  ours = sorted(words & (types.structs | types.callbacks))
  return (FUNCTIONS_HEAD
          + _wrapped("from ctypes import (", sorted(words - set(ours)), ")")
          + "from typing import Any\n\n"
          + _wrapped("from ._abi import (", ours, ")")
          + "\n# name: (result, arguments)\n"
          + "FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {\n" + table + "}\n")
