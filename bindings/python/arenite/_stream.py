"""Streams: iterators, plain and asynchronous, over the callbacks of a call on another thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Generic, Optional, TypeVar, Union

from ._handle import Closing

_WAITING_ITEMS = 64  # how far the call may run ahead of the reader

_T = TypeVar("_T")
_Result = TypeVar("_Result")


class Run:
  """State shared by the calling thread and the reader; holds no reference to the reader."""

  def __init__(self) -> None:
    self.items: queue.Queue[Any] = queue.Queue(_WAITING_ITEMS)
    self.stopped = False
    self.ended = False  # the call has returned; guarded by `lock`
    self.lock = threading.Lock()


class _End:
  """Last item of a stream."""

  def __init__(self, result: Any, error: Optional[Exception]) -> None:
    self.result, self.error = result, error


class Stream(Closing, Iterator[_T], AsyncIterator[_T], Generic[_T, _Result]):
  """Iterates over what a call delivers. A separate thread makes the call, slightly ahead of the
  reader; the session refuses other calls until the last item is read or close()."""

  result: Optional[_Result] = None  # set once the call has ended

  def _start(self, name: str,
             call: Callable[[Run], tuple[_Result, Optional[Exception]]]) -> None:
    """Runs `call`, which must not refer to this object, on a thread of its own. It puts items into
    the queue and returns the result and the error, if any."""
    run = Run()

    def work() -> None:
      run.items.put(_End(*call(run)))

    # Daemon: the program can exit meanwhile without waiting for the thread.
    threading.Thread(target=work, name=name, daemon=True).start()
    self._run = run

  def _take(self) -> Any:
    item = self._run.items.get()
    if isinstance(item, _End):
      self.result = item.result
      self._run.items.put(item)  # wakes readers on other threads too
    return item

  def _convert(self, item: Any) -> _T:
    raise NotImplementedError

  def _next(self) -> Union[_T, _End]:
    if self.result is not None:
      return _End(self.result, None)
    item = self._take()
    if not isinstance(item, _End):
      return self._convert(item)
    if item.error is not None:
      raise item.error
    return item

  def __next__(self) -> _T:
    item = self._next()
    if isinstance(item, _End):
      raise StopIteration
    return item

  def __aiter__(self) -> AsyncIterator[_T]:
    return self

  async def __anext__(self) -> _T:
    import asyncio  # takes long to import, and few programs need it here
    try:
      item = await asyncio.get_running_loop().run_in_executor(None, self._next)
    except asyncio.CancelledError:
      self._stop()
      raise
    if isinstance(item, _End):
      raise StopAsyncIteration
    return item

  def _stop(self) -> None:
    """Asks the call to end soon. Does not wait."""
    self._run.stopped = True

  def close(self) -> _Result:
    """Ends the call after its next token, unless it has ended, and drops unread items."""
    if self.result is None:
      self._stop()
    while self.result is None:
      self._take()
    return self.result

  def __del__(self) -> None:
    if hasattr(self, "_run"):
      self.close()
