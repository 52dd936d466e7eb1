"""Adapters: low-rank changes of a model (LoRA), which sessions add while they run."""

from __future__ import annotations

import ctypes
import dataclasses
import os
from typing import Optional

from . import _abi
from ._convert import from_struct
from ._handle import Closing, Handle
from .errors import ErrorText, check_plain
from .model import Model, Path

_KEY_BYTES = 32  # of a public key


@dataclasses.dataclass(frozen=True)
class AdapterInfo:
  """Contents of an adapter. arn_adapter_info."""

  name: str
  """Of the folder that it was made from."""
  base_name: str
  """File name of its base."""
  producer: str
  base_hash: int
  """Of the bundle that it changes."""
  hash: int
  """Of the adapter, as in saved states."""
  n_changes: int
  """Matrices that it changes."""
  max_rank: int
  """The largest of a matrix; parts that a bundle joins, such as q, k and v, add up."""
  file_bytes: int
  n_directions: int
  """Layers that have a control vector."""


class Adapter(Closing):
  """An open adapter of a model, as arenite-convert --lora --base writes it. Thread-safe. Closing
  one that sessions use takes effect when the last of these is closed."""

  def __init__(self, model: Model, path: Path, *, public_key: Optional[bytes] = None) -> None:
    """Opens the adapter at `path`, which must have been made for the bundle of `model`.
    public_key: 32 bytes of the key that must have signed it."""
    self._library = model._library
    self._model = model._handle
    options = _abi.arn_adapter_options()
    if public_key is not None:
      if len(public_key) != _KEY_BYTES:
        raise ValueError(f"the public key has {len(public_key)} bytes, expected {_KEY_BYTES}")
      options.public_key = (ctypes.c_uint8 * _KEY_BYTES)(*public_key)
    pointer, error = ctypes.c_void_p(), ErrorText()
    parent = self._model.acquire()
    try:
      error.check(self._library.arn_adapter_open(
          parent, os.fsencode(path), ctypes.byref(options), error.buffer, error.size,
          ctypes.byref(pointer)))
    except BaseException:
      self._model.release()
      raise
    self._handle = Handle("adapter", pointer, self._destroy, shared=True)

  def _destroy(self, adapter: int) -> None:
    self._library.arn_adapter_close(adapter)
    self._model.release()

  def close(self) -> None:
    """Closes the adapter; sessions made with it keep it alive until they are closed."""
    self._handle.close()

  @property
  def info(self) -> AdapterInfo:
    struct = _abi.arn_adapter_info()
    with self._handle.use() as adapter:
      check_plain(self._library, self._library.arn_adapter_get_info(adapter, ctypes.byref(struct)))
      return from_struct(AdapterInfo, struct)
