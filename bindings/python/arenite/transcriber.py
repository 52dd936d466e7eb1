"""Speech to text."""

from __future__ import annotations

import array
import ctypes
import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, Optional, Union

from . import _abi
from ._handle import Closing, Handle
from .errors import ErrorText, Status, failure
from .model import Model
from .options import KvType, SessionOptions
from .session import Session

_Callback = Callable[[], object]


@dataclasses.dataclass(frozen=True)
class Word:
  """A word and when it was heard, in seconds from the beginning of the audio."""
  start_s: float
  end_s: float
  text: str  # as the model writes it: a space comes first as a rule
  ids: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Segment:
  """A part of the speech, in seconds from the beginning of the audio."""
  start_s: float
  end_s: float
  text: str  # as the model writes it: a space comes first as a rule
  ids: tuple[int, ...]  # tokens, with the times around the text
  words: tuple[Word, ...] = ()  # if they were asked for
  # Rating of the segment's window.
  temperature: float = 0.0
  logprob: float = 0.0  # mean of its tokens; 0: not computed
  no_speech: float = 0.0  # probability that nothing is said; 0: not computed


@dataclasses.dataclass(frozen=True)
class Transcript:
  """What was heard."""
  language: str  # "": the model has one, which is not named
  language_probability: float  # among the model's languages; 1 if the language was given
  segments: list[Segment]
  n_retries: int = 0  # of windows, at a higher temperature
  n_silent: int = 0  # windows that were left out

  @property
  def text(self) -> str:
    return "".join(segment.text for segment in self.segments).strip()


class Transcriber(Closing):
  """Writes speech down with a model whose encoder takes audio features (Whisper). Has a session of
  its own. Allows one call at a time; cancel() and close() may be called from any thread."""

  def __init__(self, model: Model, options: Optional[SessionOptions] = None, *,
               words: bool = False, kv: Union[KvType, str, None] = None, **fields: Any) -> None:
    """words: with memory to find when words were heard; Unsupported if the checkpoint does not
    tell it. The other arguments are those of Session."""
    self._library = model._library
    self._model = model
    self._session = Session(model, options, kv=kv, **fields)
    pointer, error = ctypes.c_void_p(), ErrorText()
    own = _abi.arn_transcriber_options()
    own.words = words
    session = self._session._handle.acquire()
    try:
      error.check(self._library.arn_transcriber_create(
          session, ctypes.byref(own), None, 0, error.buffer, error.size, ctypes.byref(pointer)))
    except BaseException:
      self._session._handle.release()
      self._session.close()
      raise
    self._session._handle.release()
    self._handle = Handle("transcriber", pointer, self._destroy, shared=False)

  def _destroy(self, transcriber: int) -> None:
    self._library.arn_transcriber_destroy(transcriber)
    self._session.close()

  def close(self) -> None:
    """Ends a call of another thread and closes the transcriber."""
    self._handle.close(lambda _: self._session.cancel())

  def cancel(self) -> None:
    """Ends the call in progress, or the next one, with Cancelled."""
    self._session.cancel()

  def transcribe(self, samples: Iterable[float], *, language: str = "", translate: bool = False,
                 timestamps: bool = True, words: bool = False, temperature: float = 0.0,
                 temperature_step: float = 0.0, seed: int = 0, logprob_threshold: float = 0.0,
                 entropy_threshold: float = 0.0, no_speech_threshold: float = 0.0,
                 condition_on_previous: bool = False, prompt: str = "",
                 on_segment: Optional[Callable[[Segment], object]] = None,
                 on_progress: Optional[Callable[[int, int], object]] = None) -> Transcript:
    """Transcribes samples in [-1, 1], mono, 16000 in a second; array.array("f") is fastest.
    language: "en"; "": found in the first window. translate: into English. words: segments have
    them, with times; the transcriber has to be created with words. temperature and what follows
    it: fields of arn_transcribe_options (arenite/transcribe.h), all off at first; prompt: text
    before the speech, which shows the model names and style. on_segment gets each
    segment as it is heard, on_progress how many samples of all are done; an exception of theirs
    ends the call."""
    is_ready = isinstance(samples, array.array) and samples.typecode == "f"
    data: Any = samples if is_ready else array.array("f", samples)
    pcm = (ctypes.c_float * len(data)).from_buffer(data) if len(data) > 0 else None
    segments: list[Segment] = []
    raised: list[BaseException] = []

    def guarded(call: _Callback) -> int:
      try:
        call()
        return 0
      except BaseException as error:  # must not pass through the library
        raised.append(error)
        return 1

    def add(pointer: Any) -> None:
      segments.append(_segment(pointer))
      if on_segment is not None:
        on_segment(segments[-1])

    options = _abi.arn_transcribe_options()
    options.language, options.translate = language.encode(), translate
    options.no_timestamps = not timestamps
    options.words = words
    options.temperature, options.temperature_step = temperature, temperature_step
    options.seed = seed
    options.logprob_threshold, options.entropy_threshold = logprob_threshold, entropy_threshold
    options.no_speech_threshold = no_speech_threshold
    options.condition_on_previous = condition_on_previous
    prompt_ids = (self._model.tokenize(" " + prompt.strip(), special=False, plain=True)
                  if prompt.strip() else [])
    options.prompt_ids = (ctypes.c_int32 * len(prompt_ids))(*prompt_ids)
    options.n_prompt_ids = len(prompt_ids)
    options.on_segment = _abi.arn_segment_callback(
        lambda _, segment: guarded(lambda: add(segment)))
    if on_progress is not None:
      report = on_progress
      options.on_progress = _abi.arn_transcribe_progress(
          lambda _, done, total: guarded(lambda: report(done, total)))
    result = _abi.arn_transcribe_result()
    with self._handle.use() as transcriber:
      status = self._library.arn_transcribe(
          transcriber, pcm, len(data), ctypes.byref(options), ctypes.byref(result))
      if raised:
        raise raised[0]
      if status != Status.OK:
        reason = self._library.arn_transcriber_last_error(transcriber) or b""
        raise failure(status, reason.decode("utf-8", "replace"))
    return Transcript((result.language or b"").decode(), result.language_probability, segments,
                      result.n_retries, result.n_silent)


def _segment(pointer: Any) -> Segment:
  found = pointer.contents
  # The text is not NUL-terminated, and a field c_char_p would be read up to a NUL.
  at = ctypes.addressof(found) + _abi.arn_segment.text.offset
  address = ctypes.c_void_p.from_address(at).value
  text = ctypes.string_at(address, found.text_bytes) if address else b""
  ids = tuple(found.ids[:found.n_ids])
  words = tuple(
      Word(word.start_s, word.end_s,
           text[word.offset:word.offset + word.bytes].decode("utf-8", "replace"),
           ids[word.first_id:word.first_id + word.n_ids])
      for word in found.words[:found.n_words])
  return Segment(found.start_s, found.end_s, text.decode("utf-8", "replace"), ids, words,
                 found.temperature, found.logprob, found.no_speech)
