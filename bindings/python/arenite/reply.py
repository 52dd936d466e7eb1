"""Replies: reasoning, text and tool calls, split while the model generates them."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Optional

from . import _abi
from ._convert import from_struct
from ._handle import Closing, Handle
from .errors import ErrorText, check_plain
from .model import Model
from .options import ReplyEvent, ReplyInfo


class Event(NamedTuple):
  """A part of a reply. Of a call: its name, its id, pieces of its arguments as JSON, and its end,
  whose text is empty or says why the call is incomplete."""

  kind: ReplyEvent
  text: str


class Reply(Closing):
  """Splits replies of a model. Allows one call at a time; several instances may share a model."""

  def __init__(self, model: Model, *,
               tools: Optional[Sequence[Mapping[str, Any]]] = None,
               reasoning_close: str = "") -> None:
    """tools: as given to the chat template; their types tell numbers from strings where a model
    writes arguments without quotes. reasoning_close: what is written before the end of reasoning
    that takes more tokens than its budget."""
    self._library = model._library
    self._model = model._handle
    options, pointer, error = _abi.arn_reply_options(), ctypes.c_void_p(), ErrorText()
    if tools is not None:
      self._tools = json.dumps(tools, ensure_ascii=False, allow_nan=False).encode()
      options.tools, options.tools_bytes = self._tools, len(self._tools)
    close = reasoning_close.encode()
    if close:
      options.reasoning_close, options.reasoning_close_bytes = close, len(close)
    parent = self._model.acquire()
    try:
      error.check(self._library.arn_reply_create(
          parent, ctypes.byref(options), None, 0, error.buffer, error.size,
          ctypes.byref(pointer)))
    except BaseException:
      self._model.release()
      raise
    self._handle = Handle("reply", pointer, self._destroy, shared=False)

  def _destroy(self, reply: int) -> None:
    self._library.arn_reply_destroy(reply)
    self._model.release()

  def close(self) -> None:
    self._handle.close()

  @property
  def info(self) -> ReplyInfo:
    """What is recognised in replies of this model."""
    info = _abi.arn_reply_info()
    with self._handle.use() as reply:
      check_plain(self._library, self._library.arn_reply_get_info(reply, ctypes.byref(info)))
    return from_struct(ReplyInfo, info)

  def start(self, prompt: str = "") -> None:
    """Starts a reply. prompt: the rendered conversation, or its end: it may begin the reasoning."""
    data = prompt.encode()
    with self._handle.use() as reply:
      check_plain(self._library, self._library.arn_reply_start(reply, data, len(data)))

  def next(self, ids: Iterable[int]) -> list[Event]:
    """Takes the next tokens; returns what is certain about them. Ignores negative ids."""
    return self._collect(lambda reply, callback: [
        self._library.arn_reply_next(reply, token, callback, None) for token in ids])

  def next_text(self, text: str) -> list[Event]:
    """Takes the next text instead, with special tokens in it."""
    data = text.encode()
    return self._collect(lambda reply, callback: [
        self._library.arn_reply_next_text(reply, data, len(data), callback, None)])

  @property
  def in_reasoning(self) -> bool:
    """True while the reply is inside its reasoning."""
    with self._handle.use() as reply:
      return bool(self._library.arn_reply_in_reasoning(reply))

  def end(self) -> list[Event]:
    """Ends the reply: returns what was held back, and the end of an open call."""
    return self._collect(lambda reply, callback: [
        self._library.arn_reply_end(reply, callback, None)])

  def _collect(self, call: Any) -> list[Event]:
    events: list[Event] = []

    def on_event(_user: Any, kind: int, text: Any, n: int) -> int:
      events.append(Event(ReplyEvent(kind), ctypes.string_at(text, n).decode() if n else ""))
      return 0

    with self._handle.use() as reply:
      for status in call(reply, _abi.arn_reply_callback(on_event)):
        check_plain(self._library, status)
    return events
