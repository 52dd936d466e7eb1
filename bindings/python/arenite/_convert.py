"""Converts between the dataclasses of options.py and the structs of the C API."""

from __future__ import annotations

import ctypes
import dataclasses
import difflib
from typing import Any, TypeVar

from . import options

_T = TypeVar("_T")

# Range of an integer, by its C type.
_RANGES: dict[Any, tuple[int, int]] = {
    ctypes.c_uint32: (0, 2**32 - 1), ctypes.c_uint64: (0, 2**64 - 1),
    ctypes.c_int32: (-2**31, 2**31 - 1), ctypes.c_int64: (-2**63, 2**63 - 1),
}


def from_struct(cls: type[_T], struct: Any) -> _T:
  """Returns a dataclass with a struct's fields: a count n_ids and a pointer ids become a tuple, a
  CPU mask becomes the set of CPU numbers."""
  values: dict[str, Any] = {}
  for field in dataclasses.fields(cls):
    value, kind = getattr(struct, field.name), str(field.type)
    if kind.startswith("tuple"):
      value = tuple(value[:getattr(struct, "n_" + field.name)])
    elif kind == "frozenset[int]":
      value = frozenset(64 * w + b for w, word in enumerate(value) for b in range(64)
                        if word >> b & 1)
    elif kind == "str":
      value = (value or b"").decode("utf-8", "replace")
    elif kind == "bool":
      value = bool(value)
    elif kind not in ("int", "float"):
      value = getattr(options, kind)(value)  # an enum
    values[field.name] = value
  return cls(**values)


def enum_of(cls: Any, value: Any, name: str) -> Any:
  """Returns a value of an enum, given as such, as its number or by its name in any case: "int8"."""
  if isinstance(value, str):
    found = getattr(cls, "__members__").get(value.upper().replace("-", "_"))
    if found is None:
      names = ", ".join(repr(member.lower()) for member in cls.__members__)
      raise ValueError(f"{name} is {value!r}, expected one of {names}")
    return found
  return value


def replaced(given: _T, fields: dict[str, Any], what: str) -> _T:
  """Returns the dataclass with other values in some fields. TypeError names an unknown field, and
  those that are like it."""
  known = [field.name for field in dataclasses.fields(given)]
  for name in fields:
    if name not in known:
      near = difflib.get_close_matches(name, known, 3)
      hint = f": did you mean {' or '.join(near)}?" if near else f". It has: {', '.join(known)}."
      raise TypeError(f"{what} has no option {name}{hint}")
  return dataclasses.replace(given, **fields)


def to_struct(struct: Any, given: Any) -> Any:
  """Sets a struct's fields from the dataclass. The struct keeps the elements of lists alive."""
  types = dict(struct._fields_)
  for field in dataclasses.fields(given):
    value = getattr(given, field.name)
    if isinstance(value, tuple):
      array = (types[field.name]._type_ * len(value))(*value)
      struct.__dict__.setdefault("lists", []).append(array)
      setattr(struct, field.name, array)
      setattr(struct, "n_" + field.name, len(value))
      continue
    enum_class = getattr(options, str(field.type), None)
    if enum_class is not None:
      value = enum_of(enum_class, value, field.name)
    if isinstance(value, str):
      value = value.encode()
    if types[field.name] in _RANGES:
      least, most = _RANGES[types[field.name]]
      if not least <= value <= most:
        raise ValueError(f"{field.name} is {value}, expected {least} to {most}")
    setattr(struct, field.name, value)
  return struct
