"""Text while it is made: an iterator over what arn_session_generate calls back with."""

from __future__ import annotations

import codecs
import ctypes
import queue
import threading
from collections.abc import Iterator, Sequence
from typing import Any, Optional, Union

from . import _abi
from ._convert import from_struct
from ._handle import Closing, Handle
from .errors import Status, failure
from .options import Finish, GenerateResult

_WAITING_PIECES = 64  # that generation may be ahead of who reads

# A token and its text; at the end the result, and what went wrong.
_Item = Union["tuple[int, bytes]", "tuple[GenerateResult, Optional[Exception]]"]


class Piece(str):
  """What can be shown after one more token; empty when that is nothing yet.

  `data` has the same as bytes. `token` is None for text that was held back to the end.
  """

  data: bytes
  token: Optional[int]

  @classmethod
  def make(cls, text: str, data: bytes, token: Optional[int]) -> Piece:
    piece = cls(text)
    piece.data, piece.token = data, token
    return piece


class _Run:
  """What the thread that generates shares with who reads; without a reference to the reader."""

  def __init__(self) -> None:
    self.pieces: queue.Queue[_Item] = queue.Queue(_WAITING_PIECES)
    self.stopped = False

  def generate(self, library: Any, handle: Handle, session: int, options: Any,
               keep: list[Any]) -> None:
    def on_token(_user: Any, token: int, text: Any, n: int) -> int:
      self.pieces.put((token, ctypes.string_at(text, n) if n else b""))
      return int(self.stopped)

    options.callback = _abi.arn_token_callback(on_token)
    result, error = _abi.arn_generate_result(), None
    status = library.arn_session_generate(session, ctypes.byref(options), ctypes.byref(result))
    if status != Status.OK:
      error = failure(status, library.arn_session_last_error(session).decode("utf-8", "replace"))
    keep.clear()  # what the options pointed at
    handle.release()
    self.pieces.put((from_struct(GenerateResult, result), error))


class Generation(Closing, Iterator[Piece]):
  """The pieces of a text. The tokens are computed on a thread of their own, a little ahead of the
  reader; no other call on the session is possible until the last piece was read or close()."""

  result: Optional[GenerateResult] = None  # once the generation has ended

  def __init__(self, library: Any, handle: Handle, *, max_tokens: int, stops: Sequence[str],
               ignore_eos: bool, extra_eos_ids: Sequence[int]) -> None:
    options = _abi.arn_generate_options()
    options.max_tokens, options.ignore_eos = max_tokens, int(ignore_eos)
    texts = [stop.encode() for stop in stops]
    stop_array = (_abi.arn_stop_string * len(texts))()
    for stop, text in zip(stop_array, texts):
      stop.text, stop.bytes = text, len(text)
    eos_array = (ctypes.c_int32 * len(extra_eos_ids))(*extra_eos_ids)
    options.stops, options.n_stops = stop_array, len(texts)
    options.extra_eos_ids, options.n_extra_eos_ids = eos_array, len(extra_eos_ids)
    self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
    self._run = _Run()
    session = handle.acquire()
    # A daemon: a program that ends while a text is made does not wait for it.
    thread = threading.Thread(
        target=self._run.generate, name="arenite-generate", daemon=True,
        args=(library, handle, session, options, [texts, stop_array, eos_array]))
    try:
      thread.start()
    except BaseException:
      handle.release()
      raise

  def _take(self) -> _Item:
    item = self._run.pieces.get()
    if isinstance(item[0], GenerateResult):
      self.result = item[0]
      self._run.pieces.put(item)  # whoever waits on another thread gets it too
    return item

  def __next__(self) -> Piece:
    if self.result is not None:
      raise StopIteration
    token, data = self._take()
    if isinstance(token, GenerateResult):
      if isinstance(data, Exception):
        raise data
      raise StopIteration
    assert isinstance(data, bytes)
    text = self._decoder.decode(data, final=token < 0)
    return Piece.make(text, data, token if token >= 0 else None)

  def close(self) -> GenerateResult:
    """Ends the generation with its next token, if it has not ended, and drops unread pieces."""
    self._run.stopped = True
    while self.result is None:
      self._take()
    return self.result

  def text(self) -> str:
    """All that is still to come, as one string."""
    return "".join(self)

  @property
  def finish(self) -> Optional[Finish]:
    """Why it ended; None while it runs."""
    return None if self.result is None else self.result.finish

  def __del__(self) -> None:
    if hasattr(self, "_run"):
      self._run.stopped = True
      self.close()
