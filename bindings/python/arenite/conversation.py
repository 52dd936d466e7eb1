"""Conversations: messages in, events of replies out."""

from __future__ import annotations

import ctypes
import dataclasses
import datetime
import json
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union

from . import _abi
from ._convert import from_struct, replaced, to_struct
from ._handle import Closing, Handle
from ._stream import Run, Stream
from .errors import ErrorText, Status, check_plain, failure
from .generation import GenerateOptions, TokenLogprobs
from .options import (
    ConversationInfo, ConversationOptions, ConversationResult, Finish, ReplyEvent, Sampling)
from .reply import Event
from .session import Session

Message = Union[str, Mapping[str, Any]]  # a text is the user's


@dataclasses.dataclass(frozen=True)
class Call:
  """A complete tool call of a reply: answer it with Conversation.answer(index, result)."""

  index: int
  name: str
  arguments: Any  # as the model wrote them, read as JSON


def _json(value: Any) -> bytes:
  return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()


class ConversationReply(Stream[Event, ConversationResult]):
  """Iterates over the events of a reply, with `for` or `async for`. A separate thread computes it,
  slightly ahead of the reader; the session refuses other calls until the last event is read or
  close(). `result` then says why it ended, with its counts; `calls` has the complete tool calls
  that have been read so far."""

  def __init__(self, conversation: Conversation, options: GenerateOptions) -> None:
    self.calls: list[Call] = []
    self._name, self._arguments = "", ""
    self._options = options
    self._session = session = conversation.session._handle
    library, handle = conversation._library, conversation._handle
    clear_cancel = library.arn_session_clear_cancel
    session_pointer = session.acquire()
    try:
      pointer = handle.acquire()
    except BaseException:
      session.release()
      raise

    def reply(run: Run) -> tuple[ConversationResult, Optional[Exception]]:
      def on_event(_user: Any, kind: int, text: Any, n: int) -> int:
        run.items.put(Event(ReplyEvent(kind), ctypes.string_at(text, n).decode() if n else ""))
        return int(run.stopped)

      result, error = _abi.arn_conversation_result(), None
      status = library.arn_conversation_reply(
          pointer, ctypes.byref(options.struct), _abi.arn_reply_callback(on_event), None,
          ctypes.byref(result))
      with run.lock:
        run.ended = True
        if run.stopped:
          clear_cancel(session_pointer)  # it may have come too late, and must not end the next call
      if status != Status.OK:
        error = failure(status, library.arn_conversation_last_error(pointer).decode(
            "utf-8", "replace"))
      handle.release()
      session.release()
      return from_struct(ConversationResult, result), error

    try:
      self._start("arenite-reply", reply)
    except BaseException:
      handle.release()
      session.release()
      raise
    self._cancel = library.arn_session_cancel

  def _convert(self, item: Event) -> Event:
    if item.kind == ReplyEvent.CALL_BEGIN:
      self._name, self._arguments = item.text, ""
    elif item.kind == ReplyEvent.CALL_ARGUMENTS:
      self._arguments += item.text
    elif item.kind == ReplyEvent.CALL_END and not item.text:
      self.calls.append(Call(len(self.calls), self._name, json.loads(self._arguments or "{}")))
    return item

  def _stop(self) -> None:
    with self._run.lock:
      if not self._run.ended:
        super()._stop()
        self._session.signal(self._cancel)  # a long prompt has no events

  def text(self) -> str:
    """Returns all remaining text as one string, without reasoning and calls."""
    return "".join(event.text for event in self if event.kind == ReplyEvent.TEXT)

  @property
  def logprobs(self) -> list[TokenLogprobs]:
    """The log-probabilities of the reply's tokens, once it has ended; empty while it runs and
    without n_top_logprobs."""
    return [] if self.result is None else self._options.logprobs(self.result.n_logprobs)

  @property
  def finish(self) -> Optional[Finish]:
    """Why the reply ended; None while it runs."""
    return None if self.result is None else self.result.finish


class Conversation(Closing):
  """A conversation over one sequence of a session. Keeps its messages, renders them with the
  model's chat template, and computes only what the session lacks. Allows one call at a time."""

  def __init__(self, session: Session, options: Optional[ConversationOptions] = None, *,
               system: Optional[str] = None, messages: Sequence[Mapping[str, Any]] = (),
               tools: Optional[Sequence[Mapping[str, Any]]] = None,
               variables: Optional[Mapping[str, Any]] = None,
               now: Optional[datetime.datetime] = None, **fields: Any) -> None:
    """system: the first message. messages: more of them, such as `messages` of a former
    conversation. now: the time that the template prints, the same in all turns; None: the
    machine's. fields: those of ConversationOptions by name."""
    self.session = session
    self._library = session._library
    self._owns_session = False
    if tools is not None:
      fields["tools"] = _json(tools).decode()
    if variables is not None:
      fields["variables"] = _json(variables).decode()
    given = replaced(options or ConversationOptions(), fields, "ConversationOptions")
    struct = to_struct(_abi.arn_conversation_options(), given)
    for name in ("tools", "variables"):
      setattr(struct, name + "_bytes", len((getattr(given, name) or "").encode()))
    now = now or datetime.datetime.now()
    time = _abi.arn_chat_time(now.year, now.month, now.day, now.hour, now.minute, now.second,
                              now.microsecond)
    struct.now = ctypes.pointer(time)
    pointer, error = ctypes.c_void_p(), ErrorText()
    with session._handle.use() as handle:
      error.check(self._library.arn_conversation_create(
          handle, ctypes.byref(struct), None, 0, error.buffer, error.size, ctypes.byref(pointer)))
    self._handle = Handle("conversation", pointer, self._library.arn_conversation_destroy,
                          shared=False)
    if system is not None:
      self.add(system, role="system")
    if messages:
      self._call("arn_conversation_add_json", *self._bytes(_json(list(messages))))

  def close(self) -> None:
    """Cancels a running reply and destroys the conversation; the session stays, unless
    Model.conversation() made it."""
    running = self.session._generation() if self.session._generation is not None else None
    if isinstance(running, ConversationReply):
      running.close()
    self._handle.close()
    if self._owns_session:
      self.session.close()

  @staticmethod
  def _bytes(data: bytes) -> tuple[bytes, int]:
    return data, len(data)

  def _call(self, name: str, *arguments: Any) -> None:
    with self.session._handle.use(), self._handle.use() as conversation:
      status = getattr(self._library, name)(conversation, *arguments)
      if status != Status.OK:
        text = self._library.arn_conversation_last_error(conversation).decode("utf-8", "replace")
        raise failure(status, text or self._library.arn_status_name(status).decode())

  # ---- messages

  def add(self, message: Message, *, role: str = "user") -> None:
    """Appends a message: a text of this role, or a mapping with "role" and the keys that the
    template reads."""
    if isinstance(message, str):
      self._call("arn_conversation_add", role.encode(), *self._bytes(message.encode()))
    else:
      self._call("arn_conversation_add_json", *self._bytes(_json(dict(message))))

  def answer(self, call: Union[Call, int], result: Any) -> None:
    """Appends the result of a tool call of the last reply: a text, or a value that becomes JSON."""
    index = call.index if isinstance(call, Call) else call
    text = result if isinstance(result, str) else _json(result).decode()
    self._call("arn_conversation_add_tool_result", index, *self._bytes(text.encode()))

  def undo(self) -> None:
    """Removes the last message of the user and all that follow it."""
    self._call("arn_conversation_undo")

  def undo_reply(self) -> None:
    """Removes the last reply; send() without a message asks for another."""
    self._call("arn_conversation_undo_reply")

  def truncate(self, n_messages: int) -> None:
    """Keeps the first n_messages."""
    self._call("arn_conversation_truncate", n_messages)

  @property
  def messages(self) -> list[dict[str, Any]]:
    """All messages. Give them to Conversation(messages=...) to go on later."""
    text, count = ctypes.c_void_p(), ctypes.c_size_t()
    with self._handle.use() as conversation:
      check_plain(self._library, self._library.arn_conversation_messages(
          conversation, ctypes.cast(ctypes.byref(text), ctypes.POINTER(ctypes.c_void_p)),
          ctypes.byref(count)))
      data = ctypes.string_at(text.value or 0, count.value)
    read: list[dict[str, Any]] = json.loads(data)
    return read

  @property
  def info(self) -> ConversationInfo:
    """Numbers of messages, tokens and bytes."""
    struct = _abi.arn_conversation_info()
    with self._handle.use() as conversation:
      check_plain(self._library, self._library.arn_conversation_get_info(
          conversation, ctypes.byref(struct)))
    return from_struct(ConversationInfo, struct)

  # ---- replies

  def send(self, message: Optional[Message] = None, *, max_tokens: int = 0,
           stops: Sequence[str] = (), ignore_eos: bool = False,
           extra_eos_ids: Sequence[int] = (), n_top_logprobs: Optional[int] = None,
           sampling: Optional[Sampling] = None, **sampling_options: Any) -> ConversationReply:
    """Appends the message, if given, and streams the reply to the last one. The other parameters
    are those of Session.generate(). Failures, a full context for instance, are raised when the
    reply is read."""
    options = GenerateOptions(max_tokens, stops, ignore_eos, extra_eos_ids, n_top_logprobs)
    if sampling is not None or sampling_options:
      self.session.set_sampling(replaced(sampling or Sampling(), sampling_options, "Sampling"))
    if message is not None:
      self.add(message)
    reply = ConversationReply(self, options)
    self.session._generation = weakref.ref(reply)
    return reply

  def cancel(self) -> None:
    """Cancels the running reply, from any thread: reading it raises Cancelled."""
    self.session.cancel()
