"""The lifetime of a handle of the C API, whatever thread closes it."""

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
  """What is closed at the end of a `with`, or at the latest when nobody has it any more."""

  _handle: Handle

  def close(self) -> object:
    raise NotImplementedError

  def __enter__(self: _Self) -> _Self:
    return self

  def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
               trace: Optional[TracebackType]) -> None:
    self.close()

  def __del__(self) -> None:
    if hasattr(self, "_handle"):  # not one whose making failed
      self.close()


class Handle:
  """A pointer that is given to calls, and ended once none of them runs.

  Shared handles may be in several calls at once, and are ended by the last user. Others are in one
  call at a time; a second one is refused.
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
    """The pointer, which stays good until release()."""
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
    """Calls function, which may run beside other calls; nothing happens after close()."""
    with self._changed:
      if self._pointer is not None and not self._closed:
        function(self._pointer)

  def close(self, interrupt: Optional[Callable[[int], None]] = None) -> None:
    """Ends the handle. One that is not shared is interrupted and waited for."""
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
