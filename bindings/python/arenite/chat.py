"""Chat templates: messages to the text that the model was trained on."""

from __future__ import annotations

import ctypes
import datetime
import json
from collections.abc import Mapping, Sequence
from typing import Any, Optional

from . import _abi
from ._handle import Closing, Handle
from .errors import ErrorText, Status, failure
from .model import Model


def _json(value: Any) -> bytes:
  return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()


class Chat(Closing):
  """Renders conversations. In one call at a time; several may share a model."""

  def __init__(self, model: Model, *, arena_bytes: int = 0, max_steps: int = 0) -> None:
    self._library = model._library
    self._model = model._handle
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
    """The text of a conversation. Tokenize it with special=False: templates write the tokens that
    begin a text themselves."""
    given = _abi.arn_chat_input()
    for name, value in (("messages", messages), ("tools", tools), ("variables", variables)):
      if value is not None:
        data = _json(value)
        setattr(given, name, data)
        setattr(given, name + "_bytes", len(data))
    if template_name is not None:
      given.template_name = template_name.encode()
    if now is not None:
      time = _abi.arn_chat_time(now.year, now.month, now.day, now.hour, now.minute, now.second,
                                now.microsecond)
      given.now = ctypes.pointer(time)
    given.add_generation_prompt = int(add_generation_prompt)
    capacity, count = 4096, ctypes.c_size_t()
    with self._handle.use() as chat:
      while True:
        text = ctypes.create_string_buffer(capacity)
        status = self._library.arn_chat_render(chat, ctypes.byref(given), text, capacity,
                                               ctypes.byref(count))
        if status == Status.OK:
          return text.raw[:count.value].decode()
        if status != Status.BUFFER_TOO_SMALL:
          raise failure(status, self._library.arn_chat_last_error(chat).decode())
        capacity = count.value
