"""The base of the C API's structs in ctypes."""

from __future__ import annotations

from ctypes import Structure, sizeof
from typing import Any


class Struct(Structure):
  """A struct of the C API with the values of its ARN_..._INIT macro after struct_size."""

  _initial_: tuple[Any, ...] = ()

  def __init__(self) -> None:
    super().__init__(sizeof(type(self)), *self._initial_)
