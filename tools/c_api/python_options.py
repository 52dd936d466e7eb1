"""Generates options.py of bindings/python/arenite: the C API's enums, and its structs as
dataclasses."""

import textwrap

import headers
import views

HEAD = '''\
"""Options and results. Written by tools/c_api/generate.py from arenite.h: do not edit it.

What each field means is said in arenite.h. Zeros of options are the library's defaults.
"""

from __future__ import annotations

import dataclasses
import enum
from typing import Optional

from . import _abi
'''
_TYPES = {
    "bool": "bool", "u32": "int", "i32": "int", "u64": "int", "i64": "int", "float": "float",
    "double": "float", "text": "str", "chars": "str", "ids": "tuple[int, ...]",
    "floats": "tuple[float, ...]",
    "cpus": "frozenset[int]",
}


def _default(field, kind):
  if field.enum:
    return next(f"{e.name}.{name}" for e in views.enums(headers.declarations())
                if e.name == field.enum for name in e.values if e.prefix + name == field.initial)
  if kind.startswith("tuple"):
    return "()"
  if kind.startswith("Optional"):
    return "None"
  if kind == "bool":
    return str(field.initial != "0")
  return field.initial.removesuffix("f") if kind == "float" else f"{field.initial}"


def make():
  found = headers.declarations()
  enums = views.enums(found)
  text = HEAD
  for e in enums:
    text += f'\n\nclass {e.name}(enum.IntEnum):\n  """{e.prefix}..."""\n\n'
    text += "".join(f"  {name} = _abi.{e.prefix}{name}\n" for name in e.values)
  text += "\n\n" + "".join(f"{number[4:]} = _abi.{number}\n" for number in views.NUMBERS)
  known = {e.name for e in enums}
  constants = headers.constants(found)
  for name, fields in views.structs():
    cls, what, is_given = views.STRUCTS[name]
    text += "\n\n@dataclasses.dataclass(frozen=True)\n"
    text += f'class {cls}:\n  """{what} {name}."""\n\n'
    for field in fields:
      field.enum = field.enum if field.enum in known else ""
      kind = field.enum or _TYPES[field.kind]
      if is_given and kind == "str":
        kind = "Optional[str]"
      text += f"  {field.name}: {kind}"
      if is_given:
        if field.initial.isdigit() and field.enum:
          field.initial = next(n for n, v in constants.items() if v == int(field.initial) and
                               n.startswith(next(e.prefix for e in enums if e.name == field.enum)))
        text += f" = {_default(field, kind)}"
      text += "\n"
  text += textwrap.dedent('''

      @dataclasses.dataclass(frozen=True)
      class Beam:
        """A sequence that a beam search found: its new tokens and its score."""

        ids: list[int]
        score: float
      ''')
  names = [e.name for e in enums] + [views.STRUCTS[name][0] for name, _ in views.structs()]
  names += ["Beam"] + [number[4:] for number in views.NUMBERS]
  lines = textwrap.wrap(", ".join(f'"{name}"' for name in sorted(names)), 96)
  return text + "\n\n__all__ = [\n" + "".join(f"    {line}\n" for line in lines) + "]\n"
