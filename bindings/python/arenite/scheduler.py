"""Many requests in one session, each as if it were alone."""

from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional

from . import _abi
from ._convert import from_struct, to_struct
from ._handle import Closing
from .adapter import Adapter
from .errors import AreniteError, ErrorText, Status, failure
from .generation import GenerateOptions
from .options import ConstraintKind, Finish, RequestEvent, Sampling
from .session import Session, Tokens, _constraint_options


class Request:
  """A request of a scheduler, and the memory that it reads until it has ended."""

  number: int
  """From 1, in the order of submission."""

  def __init__(self, kept: Any) -> None:
    self.number = 0
    self._kept = kept


@dataclasses.dataclass(frozen=True)
class SchedulerEvent:
  """What has happened to a request. arn_scheduler_event."""

  request: Request
  kind: RequestEvent
  text: str
  """Ready to show; may be empty."""
  token: Optional[int]
  """TOKEN: the next token of the reply."""
  finish: Finish
  """ENDED: why; NONE: see error."""
  error: Optional[AreniteError]
  """ENDED: why the request failed."""
  n_prompt_tokens: int
  n_kept: int
  """Part of them that a sequence had already."""
  n_tokens: int
  """Of the reply so far."""


@dataclasses.dataclass(frozen=True)
class StepResult:
  """What a step has done. arn_step_result."""

  n_rows: int
  """That ran; 0: there was nothing to do."""
  n_prompt_rows: int
  """Part of them: tokens of prompts."""
  n_chosen: int
  """Replies that went on or ended."""
  n_running: int
  n_waiting: int
  n_guess_rows: int
  """Part of n_rows: guesses."""
  n_put_off: int
  """Replies that did not go on, because their constraint needs more work for the next token than a
  step does: the next steps go on with it."""


@dataclasses.dataclass(frozen=True)
class SchedulerInfo:
  """What a scheduler has and has counted. arn_scheduler_info."""

  step_rows: int
  max_requests: int
  n_waiting: int
  n_running: int
  n_dropped: int
  """Sequences whose tokens were dropped because others needed their pages."""
  guesses_proposed: int
  guesses_accepted: int
  guess_steps: int
  """Steps that had guesses."""
  guess_rows: int
  """All rows of those steps."""


class Scheduler(Closing):
  """Answers requests with the sequences of a session, which has max_requests. While it is open only
  it changes the sequences. One thread at a time uses the two; session.cancel() ends a step."""

  def __init__(self, session: Session, *, step_rows: int = 0) -> None:
    """step_rows: most rows of a step; 0: the session's prefill_chunk."""
    self._session = session
    self._library = session._library
    self._requests: dict[int, Request] = {}
    self.last_step: Optional[StepResult] = None
    """What the last step has done; None: there was none."""
    options = _abi.arn_scheduler_options()
    options.step_rows = step_rows
    pointer, error = ctypes.c_void_p(), ErrorText()
    with session._handle.use() as handle:
      error.check(self._library.arn_scheduler_create(
          handle, ctypes.byref(options), error.buffer, error.size, ctypes.byref(pointer)))
    self._pointer: Optional[int] = pointer.value
    self._handle = session._handle

  def close(self) -> None:
    """Ends all requests without events. The sequences keep their tokens."""
    pointer, self._pointer = self._pointer, None
    if pointer is not None and not self._handle.closed:
      with self._handle.use():
        self._library.arn_scheduler_destroy(pointer)

  def _call(self, name: str, *arguments: Any) -> None:
    with self._handle.use() as session:
      self._session._check(session, getattr(self._library, name)(self._pointer, *arguments))

  def submit(self, tokens: Tokens, *, max_tokens: int = 0, sampling: Optional[Sampling] = None,
             stops: Sequence[str] = (), ignore_eos: bool = False,
             extra_eos_ids: Sequence[int] = (),
             constraint: Optional[tuple[ConstraintKind, str]] = None,
             adapters: Optional[Mapping[Adapter, float]] = None, one_by_one: bool = False,
             no_guesses: bool = False) -> Request:
    """Queues a request. The arguments are those of Session.generate(), set_sampling(),
    set_constraint() and set_adapters(). one_by_one: a step brings no more than one token of it;
    no_guesses: nothing of it is guessed. Raises BadState if the queue is full."""
    ids = self._session._ids(tokens)
    options = GenerateOptions(max_tokens, stops, ignore_eos, extra_eos_ids, None)
    struct = _abi.arn_request()
    struct.ids, struct.n_ids, struct.max_tokens = ids, len(ids), max_tokens
    struct.one_by_one, struct.no_guesses = int(one_by_one), int(no_guesses)
    for name in ("ignore_eos", "stops", "n_stops", "extra_eos_ids", "n_extra_eos_ids"):
      setattr(struct, name, getattr(options.struct, name))
    chosen = to_struct(_abi.arn_sampling(), sampling) if sampling is not None else None
    if chosen is not None:
      struct.sampling = ctypes.pointer(chosen)
    rule = _constraint_options(*constraint, False, False, None) if constraint is not None else None
    if rule is not None:
      struct.constraint = ctypes.pointer(rule)
    given = dict(adapters or {})
    own = self._session._adapters
    for adapter in given:
      if adapter not in own:
        raise ValueError("the session was created without this adapter")
    indices = (ctypes.c_uint32 * len(given))(*[own.index(adapter) for adapter in given])
    scales = (ctypes.c_float * len(given))(*given.values())
    struct.adapters, struct.adapter_scales, struct.n_adapters = indices, scales, len(given)
    request = Request((ids, options, chosen, rule, indices, scales))
    number = ctypes.c_uint64()
    self._call("arn_scheduler_submit", ctypes.byref(struct), ctypes.byref(number))
    request.number = number.value
    self._requests[request.number] = request
    return request

  def cancel(self, request: Request) -> None:
    """Ends a request. Raises NotFound if it has ended."""
    self._call("arn_scheduler_cancel", request.number)

  def pause(self, request: Request, paused: bool = True) -> None:
    """Holds a request back, or lets it go on."""
    self._call("arn_scheduler_pause", request.number, int(paused))

  def step(self) -> list[SchedulerEvent]:
    """Runs one step, unless there are events already (of cancel()), and returns what happened. An
    empty list: there is nothing to do, or a part of a prompt has run."""
    events = self._take()
    if not events:
      result = _abi.arn_step_result()
      self._call("arn_scheduler_step", ctypes.byref(result))
      self.last_step = from_struct(StepResult, result)
      events = self._take()
    return events

  @property
  def info(self) -> SchedulerInfo:
    struct = _abi.arn_scheduler_info()
    with self._handle.use():
      self._library.arn_scheduler_get_info(self._pointer, ctypes.byref(struct))
    return from_struct(SchedulerInfo, struct)

  def __iter__(self) -> Iterator[SchedulerEvent]:
    """Steps until no request is left, and yields the events. More may be submitted meanwhile."""
    while self._requests:
      yield from self.step()

  def __len__(self) -> int:
    """Returns the number of requests that have not ended."""
    return len(self._requests)

  def __bool__(self) -> bool:
    return True  # one without requests must not be false

  def _take(self) -> list[SchedulerEvent]:
    events, struct = [], _abi.arn_scheduler_event()
    take = self._library.arn_scheduler_next_event
    with self._handle.use():
      while take(self._pointer, ctypes.byref(struct)) == Status.OK:
        events.append(self._event(struct))
    return events

  def _event(self, struct: _abi.arn_scheduler_event) -> SchedulerEvent:
    kind = RequestEvent(struct.kind)
    request = (self._requests.pop(struct.request) if kind == RequestEvent.ENDED
               else self._requests[struct.request])
    at = ctypes.c_void_p.from_buffer(struct, type(struct).text.offset).value  # no NUL ends it
    text = ctypes.string_at(at, struct.text_bytes).decode("utf-8", "replace") if at else ""
    error = None if struct.status == Status.OK else failure(struct.status, text)
    return SchedulerEvent(request, kind, "" if error else text,
                          struct.id if kind == RequestEvent.TOKEN else None, Finish(struct.finish),
                          error, struct.n_prompt_tokens, struct.n_kept, struct.n_tokens)
