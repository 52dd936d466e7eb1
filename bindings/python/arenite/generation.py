"""Streaming text: an iterator over the callbacks of arn_session_generate."""

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

_WAITING_PIECES = 64  # how far generation may run ahead of the reader

# A token and its text; at the end the result and the error, if any.
_Item = Union["tuple[int, bytes]", "tuple[GenerateResult, Optional[Exception]]"]


class Piece(str):
  """Text that can be shown after one more token; may be empty.

  `data` has the same text as bytes. `token` is None for text held back until the end.
  """

  data: bytes
  token: Optional[int]

  @classmethod
  def make(cls, text: str, data: bytes, token: Optional[int]) -> Piece:
    piece = cls(text)
    piece.data, piece.token = data, token
    return piece


class _Run:
  """State shared by the generating thread and the reader; holds no reference to the reader."""

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
    keep.clear()  # memory that the options point to
    handle.release()
    self.pieces.put((from_struct(GenerateResult, result), error))


class Generation(Closing, Iterator[Piece]):
  """Iterates over the pieces of a text. A separate thread computes the tokens, slightly ahead of
  the reader; the session refuses other calls until the last piece is read or close()."""

  result: Optional[GenerateResult] = None  # set once the generation has ended

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
    # Daemon: the program can exit during generation without waiting for the thread.
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
      self._run.pieces.put(item)  # wakes readers on other threads too
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
    """Stops the generation after its next token, unless it has ended, and drops unread pieces."""
    self._run.stopped = True
    while self.result is None:
      self._take()
    return self.result

  def text(self) -> str:
    """Returns all remaining text as one string."""
    return "".join(self)

  @property
  def finish(self) -> Optional[Finish]:
    """Why the generation ended; None while it runs."""
    return None if self.result is None else self.result.finish

  def __del__(self) -> None:
    if hasattr(self, "_run"):
      self._run.stopped = True
      self.close()
