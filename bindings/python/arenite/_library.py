"""Loads the shared library once, on first use."""

from __future__ import annotations

import ctypes
import os
import pathlib
import threading
from typing import Any, Optional

from ._functions import FUNCTIONS

_lock = threading.Lock()
_loaded: Optional[ctypes.CDLL] = None


def _open() -> ctypes.CDLL:
  beside = pathlib.Path(__file__).with_name("libarenite.so")
  named = os.environ.get("ARENITE_LIBRARY")
  path = named if named else str(beside) if beside.is_file() else "libarenite.so.0"
  try:
    return ctypes.CDLL(path)
  except OSError as error:
    raise ImportError(
        f"the Arenite library cannot be loaded ({error}): it belongs beside this package "
        f"({beside}), among the system's libraries, or where ARENITE_LIBRARY says") from error


def library() -> Any:
  """Returns the library, with the C API's signatures set."""
  global _loaded
  with _lock:
    if _loaded is None:
      opened = _open()
      for name, (result, arguments) in FUNCTIONS.items():
        try:
          function = getattr(opened, name)
        except AttributeError:
          raise ImportError(f"the Arenite library has no {name}: it is older than this package"
                            ) from None
        function.restype = result
        function.argtypes = arguments
      _loaded = opened
    return _loaded


def random_seed() -> int:
  """Returns a random seed for Sampling."""
  return int(library().arn_random_seed())


def version() -> tuple[int, int, int]:
  """Returns the library's version: major, minor, patch."""
  number = int(library().arn_version())
  return number >> 16, number >> 8 & 0xFF, number & 0xFF
