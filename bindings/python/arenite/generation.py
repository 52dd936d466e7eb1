"""Streaming text: an iterator over the callbacks of arn_session_generate."""

from __future__ import annotations

import codecs
import ctypes
from collections.abc import Sequence
from typing import Any, Optional

from . import _abi
from ._convert import from_struct
from ._handle import Handle
from ._stream import Run, Stream
from .errors import Status, failure
from .options import Finish, GenerateResult

_MOST_TOKENS = 2**32 - 1


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


class GenerateOptions:
  """arn_generate_options with the memory that they point to."""

  def __init__(self, max_tokens: int, stops: Sequence[str], ignore_eos: bool,
               extra_eos_ids: Sequence[int]) -> None:
    if not 0 <= max_tokens <= _MOST_TOKENS:
      raise ValueError(f"max_tokens is {max_tokens}, expected 0 (until a stop token or a full "
                       f"context) to {_MOST_TOKENS}")
    if isinstance(stops, (str, bytes)):
      raise TypeError(f"stops is one text, expected a sequence of texts: stops=[{stops!r}]")
    texts = [stop.encode() for stop in stops]
    array = (_abi.arn_stop_string * len(texts))()
    for stop, text in zip(array, texts):
      stop.text, stop.bytes = text, len(text)
    eos = (ctypes.c_int32 * len(extra_eos_ids))(*extra_eos_ids)
    self.struct = _abi.arn_generate_options()
    self.struct.max_tokens, self.struct.ignore_eos = max_tokens, int(ignore_eos)
    self.struct.stops, self.struct.n_stops = array, len(texts)
    self.struct.extra_eos_ids, self.struct.n_extra_eos_ids = eos, len(eos)
    self._kept = (texts, array, eos)


class Generation(Stream[Piece, GenerateResult]):
  """Iterates over the pieces of a text, with `for` or `async for`. A separate thread computes the
  tokens, slightly ahead of the reader; the session refuses other calls until the last piece is read
  or close()."""

  def __init__(self, library: Any, handle: Handle, options: GenerateOptions) -> None:
    self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
    session = handle.acquire()

    def generate(run: Run) -> tuple[GenerateResult, Optional[Exception]]:
      def on_token(_user: Any, token: int, text: Any, n: int) -> int:
        run.items.put((token, ctypes.string_at(text, n) if n else b""))
        return int(run.stopped)

      options.struct.callback = _abi.arn_token_callback(on_token)
      result, error = _abi.arn_generate_result(), None
      status = library.arn_session_generate(session, ctypes.byref(options.struct),
                                            ctypes.byref(result))
      if status != Status.OK:
        error = failure(status,
                        library.arn_session_last_error(session).decode("utf-8", "replace"))
      options.struct.callback = _abi.arn_token_callback(0)  # it refers to this function
      handle.release()
      return from_struct(GenerateResult, result), error

    try:
      self._start("arenite-generate", generate)
    except BaseException:
      handle.release()
      raise

  def _convert(self, item: tuple[int, bytes]) -> Piece:
    token, data = item
    text = self._decoder.decode(data, final=token < 0)
    return Piece.make(text, data, token if token >= 0 else None)

  def text(self) -> str:
    """Returns all remaining text as one string."""
    return "".join(self)

  @property
  def finish(self) -> Optional[Finish]:
    """Why the generation ended; None while it runs."""
    return None if self.result is None else self.result.finish
