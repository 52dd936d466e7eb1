"""Lifetime of a handle of the C API, whatever thread closes it."""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Callable, Optional, TypeVar

from .errors import BadState, Status

_Self = TypeVar("_Self", bound="Closing")


class Closing:
  """Base of objects that close at the end of a `with` block, or at the latest when collected."""

  _handle: Handle

  def close(self) -> object:
    raise NotImplementedError

  def __enter__(self: _Self) -> _Self:
    return self

  def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
               trace: Optional[TracebackType]) -> None:
    self.close()

  def __del__(self) -> None:
    if hasattr(self, "_handle"):  # not set if the constructor failed
      self.close()


class Handle:
  """Wraps a pointer; destroys the object once no call uses it.

  Shared handles allow several calls at once and are destroyed by the last user. Others allow one
  call at a time and refuse a second.
  """

  def __init__(self, what: str, pointer: ctypes.c_void_p, destroy: Callable[[int], None],
               shared: bool) -> None:
    self._what = what
    self._pointer: Optional[int] = pointer.value
    self._destroy = destroy
    self._shared = shared
    self._users = 0
    self._closed = False
    self._changed = threading.Condition()

  @property
  def closed(self) -> bool:
    return self._closed

  def acquire(self) -> int:
    """Returns the pointer, valid until release()."""
    with self._changed:
      if self._closed or self._pointer is None:
        raise BadState(Status.BAD_STATE, f"the {self._what} is closed")
      if self._users > 0 and not self._shared:
        raise BadState(Status.BAD_STATE, f"the {self._what} is in another call")
      self._users += 1
      return self._pointer

  def release(self) -> None:
    with self._changed:
      self._users -= 1
      self._end_if_unused()
      self._changed.notify_all()

  @contextlib.contextmanager
  def use(self) -> Iterator[int]:
    pointer = self.acquire()
    try:
      yield pointer
    finally:
      self.release()

  def signal(self, function: Callable[[int], None]) -> None:
    """Runs a function that may overlap with other calls; does nothing after close()."""
    with self._changed:
      if self._pointer is not None and not self._closed:
        function(self._pointer)

  def close(self, interrupt: Optional[Callable[[int], None]] = None) -> None:
    """Closes the handle. Interrupts one that is not shared and waits for its call."""
    with self._changed:
      if self._closed:
        return
      self._closed = True
      if self._users > 0 and not self._shared and interrupt is not None:
        assert self._pointer is not None
        interrupt(self._pointer)
        self._changed.wait_for(lambda: self._users == 0)
      self._end_if_unused()

  def _end_if_unused(self) -> None:
    if self._closed and self._users == 0 and self._pointer is not None:
      pointer, self._pointer = self._pointer, None
      self._destroy(pointer)
