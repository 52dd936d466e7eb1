"""Chat templates: format messages as the text that the model was trained on."""

from __future__ import annotations

import ctypes
import datetime
import json
from collections.abc import Mapping, Sequence
from typing import Any, Optional

from . import _abi
from ._handle import Closing, Handle
from .errors import ErrorText, Status, check_plain, failure
from .image import Image, expand
from .model import Model


def _json(value: Any) -> bytes:
  return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()


class Chat(Closing):
  """Renders conversations. Allows one call at a time; several instances may share a model."""

  def __init__(self, model: Model, *, arena_bytes: int = 0, max_steps: int = 0) -> None:
    self._library = model._library
    self._model = model._handle
    self._source = model
    options, pointer, error = _abi.arn_chat_options(), ctypes.c_void_p(), ErrorText()
    options.arena_bytes, options.max_steps = arena_bytes, max_steps
    parent = self._model.acquire()
    try:
      error.check(self._library.arn_chat_create(
          parent, ctypes.byref(options), None, 0, error.buffer, error.size,
          ctypes.byref(pointer)))
    except BaseException:
      self._model.release()
      raise
    self._handle = Handle("chat", pointer, self._destroy, shared=False)

  def _destroy(self, chat: int) -> None:
    self._library.arn_chat_destroy(chat)
    self._model.release()

  def close(self) -> None:
    self._handle.close()

  def render(self, messages: Sequence[Mapping[str, Any]], *,
             tools: Optional[Sequence[Mapping[str, Any]]] = None,
             variables: Optional[Mapping[str, Any]] = None, template_name: Optional[str] = None,
             now: Optional[datetime.datetime] = None, add_generation_prompt: bool = True) -> str:
    """Returns the text of a conversation, for display; use tokenize() for a model's input. now: for
    templates that show the date; None: the machine's clock."""
    with self._handle.use() as chat:
      return self._render(chat, messages, tools, variables, template_name, now,
                          add_generation_prompt).decode()

  def tokenize(self, messages: Sequence[Mapping[str, Any]], *,
               tools: Optional[Sequence[Mapping[str, Any]]] = None,
               variables: Optional[Mapping[str, Any]] = None, template_name: Optional[str] = None,
               now: Optional[datetime.datetime] = None, add_generation_prompt: bool = True,
               images: Sequence[Image] = ()) -> list[int]:
    """Returns the token ids of a conversation. Only the template writes special tokens; messages,
    tools and variables are plain text. images: those of the messages' parts {"type": "image"}, in
    their order."""
    spans, count = ctypes.c_void_p(), ctypes.c_size_t()
    with self._handle.use() as chat:
      text = self._render(chat, messages, tools, variables, template_name, now,
                          add_generation_prompt)
      check_plain(self._library, self._library.arn_chat_plain_spans(
          chat, ctypes.byref(spans), ctypes.byref(count)))
      plain: Any = ctypes.cast(spans, ctypes.POINTER(_abi.arn_text_span))
      if images:
        text, plain = expand(self._source, text, images, plain, count.value)
      return self._source._tokenize(text, False, False, plain, count.value)

  def _render(self, chat: int, messages: Sequence[Mapping[str, Any]],
              tools: Optional[Sequence[Mapping[str, Any]]],
              variables: Optional[Mapping[str, Any]], template_name: Optional[str],
              now: Optional[datetime.datetime], add_generation_prompt: bool) -> bytes:
    given = _abi.arn_chat_input()
    for name, value in (("messages", messages), ("tools", tools), ("variables", variables)):
      if value is not None:
        data = _json(value)
        setattr(given, name, data)
        setattr(given, name + "_bytes", len(data))
    if template_name is not None:
      given.template_name = template_name.encode()
    now = now or datetime.datetime.now()
    time = _abi.arn_chat_time(now.year, now.month, now.day, now.hour, now.minute, now.second,
                              now.microsecond)
    given.now = ctypes.pointer(time)
    given.add_generation_prompt = int(add_generation_prompt)
    capacity, count = 4096, ctypes.c_size_t()
    while True:
      text = ctypes.create_string_buffer(capacity)
      status = self._library.arn_chat_render(chat, ctypes.byref(given), text, capacity,
                                             ctypes.byref(count))
      if status == Status.OK:
        return text.raw[:count.value]
      if status != Status.BUFFER_TOO_SMALL:
        raise failure(status, self._library.arn_chat_last_error(chat).decode())
      capacity = count.value
