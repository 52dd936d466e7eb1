"""Streaming text: an iterator over the callbacks of arn_session_generate."""

from __future__ import annotations

import codecs
import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

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


class TokenLogprobs(NamedTuple):
  """The log-probability of a token in the model's own distribution, and the most likely tokens in
  its place with theirs, best first."""

  token: int
  logprob: float
  top: list[tuple[int, float]]


class GenerateOptions:
  """arn_generate_options with the memory that they point to."""

  def __init__(self, max_tokens: int, stops: Sequence[str], ignore_eos: bool,
               extra_eos_ids: Sequence[int], n_top_logprobs: Optional[int]) -> None:
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
    if n_top_logprobs is not None:
      if n_top_logprobs < 0:
        raise ValueError(f"n_top_logprobs is {n_top_logprobs}, expected 0 or more")
      if max_tokens == 0:
        raise ValueError("n_top_logprobs needs max_tokens, which say how many are kept")
      rows = (_abi.arn_token_logprob * (max_tokens * (1 + n_top_logprobs)))()
      self.struct.logprobs, self.struct.logprobs_capacity = rows, len(rows)
      self.struct.n_top_logprobs = n_top_logprobs
      self._rows = rows

  def logprobs(self, n_tokens: int) -> list[TokenLogprobs]:
    """Returns those of the first n_tokens generated tokens."""
    width = 1 + self.struct.n_top_logprobs
    rows = (self._rows[i:i + width] for i in range(0, n_tokens * width, width))
    return [TokenLogprobs(row[0].id, row[0].logprob, [(one.id, one.logprob) for one in row[1:]])
            for row in rows]


class Generation(Stream[Piece, GenerateResult]):
  """Iterates over the pieces of a text, with `for` or `async for`. A separate thread computes the
  tokens, slightly ahead of the reader; the session refuses other calls until the last piece is read
  or close()."""

  def __init__(self, library: Any, handle: Handle, options: GenerateOptions) -> None:
    self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
    self._options = options
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
  def logprobs(self) -> list[TokenLogprobs]:
    """The log-probabilities of the new tokens, once the generation has ended; empty while it runs
    and without n_top_logprobs."""
    return [] if self.result is None else self._options.logprobs(self.result.n_logprobs)

  @property
  def finish(self) -> Optional[Finish]:
    """Why the generation ended; None while it runs."""
    return None if self.result is None else self.result.finish
