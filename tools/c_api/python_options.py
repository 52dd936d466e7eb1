"""Generates enums.py, options.py and results.py of bindings/python/arenite: the C API's enums, and
its structs as dataclasses."""

import re
import textwrap

import headers
import views

ENUMS_HEAD = '''\
"""Enums of the C API. Written by tools/c_api/generate.py from arenite.h: do not edit it."""

import enum

from . import _abi
'''

HEAD = '''\
"""{what}

Written by tools/c_api/generate.py from arenite.h: do not edit it.
"""

from __future__ import annotations

import dataclasses
from typing import Optional

from . import _abi
from .enums import *  # noqa: F403
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


def _in_python(text):
  """Replaces the names of C in a comment by Python's."""
  for e in sorted(views.enums(headers.declarations()), key=lambda e: -len(e.prefix)):
    text = re.sub(rf"\b{e.prefix}\.\.\.", e.name, text)
    text = re.sub(rf"\b{e.prefix}(?=[A-Z])", e.name + ".", text)
  for struct, (cls, _, _) in views.STRUCTS.items():
    text = re.sub(rf"\b{struct}\b", cls, text)
  text = re.sub(r"\barn_session_(?=\w)", "Session.", text)
  return re.sub(r"\bNULL\b", "None", text).replace("\\", "\\\\")


def _doc(comment):
  """Returns the documentation of a field, which editors show."""
  text = _in_python(headers.without_comments(comment))
  text = text[:1].upper() + text[1:]
  if not text:
    return ""
  if not text.endswith("."):
    text += "."
  lines = textwrap.wrap(f'"""{text}"""', 98, initial_indent="  ", subsequent_indent="  ",
                        break_long_words=False)
  return "\n".join(lines) + "\n"


def enums_file():
  text = ENUMS_HEAD
  for e in views.enums(headers.declarations()):
    text += f'\n\nclass {e.name}(enum.IntEnum):\n  """{e.prefix}..."""\n\n'
    text += "".join(f"  {name} = _abi.{e.prefix}{name}\n" for name in e.values)
  return text


def _dataclass(name, fields, enums, constants):
  cls, what, is_given = views.STRUCTS[name]
  known = {e.name for e in enums}
  text = f'\n\n@dataclasses.dataclass(frozen=True)\nclass {cls}:\n  """{what} {name}."""\n\n'
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
    text += "\n" + _doc(field.comment)
  return text


def _file(what, body, names):
  lines = textwrap.wrap(", ".join(f'"{name}"' for name in sorted(names)), 96)
  return (HEAD.format(what=what) + body + "\n\n__all__ = [\n" +
          "".join(f"    {line}\n" for line in lines) + "]\n")


def _dataclasses(is_given):
  """Returns the text of the structs that callers give, or of the others, and their names."""
  found = headers.declarations()
  enums, constants = views.enums(found), headers.constants(found)
  chosen = [(name, fields) for name, fields in views.structs()
            if views.STRUCTS[name][2] == is_given]
  return ("".join(_dataclass(name, fields, enums, constants) for name, fields in chosen),
          [views.STRUCTS[name][0] for name, _ in chosen])


def options_file():
  body, names = _dataclasses(True)
  head = "from .results import *  # noqa: F403\nfrom .results import __all__ as _results\n\n"
  head += "".join(f"{number[4:]} = _abi.{number}\n" for number in views.NUMBERS)
  names += [e.name for e in views.enums(headers.declarations())]
  names += [number[4:] for number in views.NUMBERS]
  text = _file("Options, whose zeros are the library's defaults; and all of results.py.",
               head + body, names)
  return text + "__all__ += _results\n"


def results_file():
  body, names = _dataclasses(False)
  body += textwrap.dedent('''

      @dataclasses.dataclass(frozen=True)
      class Beam:
        """A sequence that a beam search found: its new tokens and its score."""

        ids: list[int]
        score: float
      ''')
  text = _file("Results.", body, [*names, "Beam"])
  return text.replace("from . import _abi\n", "").replace("from typing import Optional\n", "")
