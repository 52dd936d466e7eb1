"""Models: the contents of a bundle, its tokenizer, and plans of sessions."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable, Optional, Union

from . import _abi
from ._convert import from_struct, replaced, to_struct
from ._handle import Closing, Handle
from ._library import library
from .errors import AreniteError, ErrorText, Status, check_plain
from .options import (
    Hashes, KvGroup, KvType, MemoryPlan, ModelInfo, Residency, ResidencyInfo, Sampling,
    SessionOptions)

if TYPE_CHECKING:
  from .adapter import Adapter
  from .chat import Chat
  from .conversation import Conversation
  from .session import Session

Path = Union[str, "os.PathLike[str]"]

_ALIGNMENT = 64  # of a bundle in memory
_KEY_BYTES = 32  # of a public key


def session_struct(options: Optional[SessionOptions], kv: Union[KvType, str, None] = None,
                   fields: Optional[Mapping[str, Any]] = None,
                   adapters: Sequence[int] = (), draft: Optional[int] = None) -> Any:
  changed = dict(fields or {})
  if kv is not None:
    changed["kv_type"] = kv
  struct = to_struct(_abi.arn_session_options(),
                     replaced(options or SessionOptions(), changed, "SessionOptions"))
  struct.adapters = (ctypes.c_void_p * len(adapters))(*adapters)
  struct.n_adapters = len(adapters)
  struct.draft = draft
  return struct


def id_array(ids: Iterable[int]) -> Any:
  values = list(ids)
  return (ctypes.c_int32 * len(values))(*values)


class Detokenizer:
  """Converts the tokens of one sequence to text as they arrive, in whole characters. A copy
  continues independently, as a fork of the sequence does."""

  def __init__(self, model: Model, skip_special: bool) -> None:
    self._model = model
    self._flags = (_abi.ARN_DETOKENIZE_SKIP_SPECIAL if skip_special else
                   _abi.ARN_DETOKENIZE_DEFAULT)
    self._state = _abi.arn_detokenizer()

  def next(self, token: int) -> str:
    """Returns the text that the next token completes."""
    return self._call("arn_detokenizer_next", token, self._flags)

  def end(self) -> str:
    """Ends the sequence and returns the remaining text; the next token starts a new sequence."""
    return self._call("arn_detokenizer_end")

  def copy(self) -> Detokenizer:
    other = Detokenizer(self._model, False)
    other._flags = self._flags
    ctypes.memmove(ctypes.byref(other._state), ctypes.byref(self._state),
                   ctypes.sizeof(self._state))
    return other

  def _call(self, function: str, *arguments: Any) -> str:
    library, count = self._model._library, ctypes.c_size_t()
    with self._model._handle.use() as model:
      capacity = library.arn_detokenizer_piece_bytes(model)
      text = ctypes.create_string_buffer(capacity + 1)
      check_plain(library, getattr(library, function)(
          model, ctypes.byref(self._state), *arguments, text, capacity, ctypes.byref(count)))
    return text.raw[:count.value].decode()


class Model(Closing):
  """An open bundle. Thread-safe.

  Closing a model that sessions or chats use takes effect when the last of these is closed.
  """

  def __init__(self, path: Path, *, verify: Hashes = Hashes.INDEX,
               public_key: Optional[bytes] = None,
               residency: Residency = Residency.MAPPED) -> None:
    """Opens the bundle at `path`. verify: hashes to check; public_key: 32 bytes of the key that
    must have signed the bundle; residency: mapped, copied, locked or in huge pages."""
    self._open("arn_model_open", verify, public_key, os.fsencode(path), residency=residency)

  @classmethod
  def from_fd(cls, fd: int, offset: int = 0, length: int = 0, *, verify: Hashes = Hashes.INDEX,
              public_key: Optional[bytes] = None,
              residency: Residency = Residency.MAPPED) -> Model:
    """Opens `length` bytes (0: all) of an open file from `offset` on, a multiple of 16384. The
    descriptor may be closed afterwards."""
    model = cls.__new__(cls)
    model._open("arn_model_open_fd", verify, public_key, fd, offset, length, residency=residency)
    return model

  @classmethod
  def from_bytes(cls, data: bytes, *, verify: Hashes = Hashes.INDEX,
                 public_key: Optional[bytes] = None) -> Model:
    """Opens a copy of a bundle's bytes."""
    model = cls.__new__(cls)
    memory = ctypes.create_string_buffer(len(data) + _ALIGNMENT)
    start = -ctypes.addressof(memory) % _ALIGNMENT
    ctypes.memmove(ctypes.addressof(memory) + start, data, len(data))
    model._memory = memory
    model._open("arn_model_open_memory", verify, public_key, ctypes.addressof(memory) + start,
                len(data))
    return model

  @classmethod
  def from_reader(cls, read: Callable[[int, int], bytes], length: int, *,
                  verify: Hashes = Hashes.INDEX, public_key: Optional[bytes] = None) -> Model:
    """Reads a bundle of `length` bytes through read(offset, n), which returns n bytes, decrypted
    for example, in increasing order of offset. Its exceptions propagate to the caller."""
    raised: list[BaseException] = []

    def fill(_user: Any, offset: int, out: int, n: int) -> int:
      try:
        data = read(offset, n)
        if len(data) != n:
          raise ValueError(f"read({offset}, {n}) returned {len(data)} bytes")
        ctypes.memmove(out, data, n)
        return 0
      except BaseException as error:  # ctypes would print and ignore it
        raised.append(error)
        return 1

    reader = _abi.arn_reader()
    reader.bytes, reader.read = length, _abi.arn_reader_read(fill)
    model = cls.__new__(cls)
    try:
      model._open("arn_model_open_reader", verify, public_key, ctypes.byref(reader))
    except AreniteError as error:
      if raised:
        raise raised[0] from error
      raise
    return model

  _handle: Handle
  _memory: Any = None

  def _open(self, function: str, verify: Hashes, public_key: Optional[bytes],
            *source: Any, residency: Residency = Residency.MAPPED) -> None:
    options = _abi.arn_model_options()
    options.residency = residency
    options.verify_hashes = verify
    if public_key is not None:
      if len(public_key) != _KEY_BYTES:
        raise ValueError(f"the public key has {len(public_key)} bytes, expected {_KEY_BYTES}")
      options.public_key = (ctypes.c_uint8 * _KEY_BYTES)(*public_key)
    pointer, error, memory = ctypes.c_void_p(), ErrorText(), self._memory
    self._library = library()
    error.check(getattr(self._library, function)(
        *source, ctypes.byref(options), error.buffer, error.size, ctypes.byref(pointer)))
    close = self._library.arn_model_close

    def destroy(model: int, keep: Any = memory) -> None:  # keeps the bytes alive as long as the
                                                          # model
      close(model)

    self._handle = Handle("model", pointer, destroy, shared=True)

  def close(self) -> None:
    """Closes the model; sessions and chats that use it keep it alive until they are closed."""
    self._handle.close()

  @property
  def info(self) -> ModelInfo:
    struct = _abi.arn_model_info()
    with self._handle.use() as model:
      check_plain(self._library, self._library.arn_model_get_info(model, ctypes.byref(struct)))
      return from_struct(ModelInfo, struct)

  @property
  def residency(self) -> ResidencyInfo:
    """Memory residency of the bundle. Counts the pages of the process: takes milliseconds."""
    struct = _abi.arn_residency()
    with self._handle.use() as model:
      check_plain(self._library, self._library.arn_model_get_residency(model, ctypes.byref(struct)))
    return from_struct(ResidencyInfo, struct)

  @property
  def sampling(self) -> Sampling:
    """The checkpoint's own sampling settings."""
    struct = _abi.arn_sampling()
    with self._handle.use() as model:
      check_plain(self._library, self._library.arn_model_sampling(model, ctypes.byref(struct)))
    return from_struct(Sampling, struct)

  @property
  def prefix(self) -> list[int]:
    """The tokens of the bundle's precomputed prompt prefix; [] if none."""
    ids, count = ctypes.c_void_p(), ctypes.c_uint32()
    with self._handle.use() as model:
      status = self._library.arn_model_prefix(model, ctypes.byref(ids), ctypes.byref(count))
      if status == Status.NOT_FOUND:
        return []
      check_plain(self._library, status)
      return list(ctypes.cast(ids, ctypes.POINTER(ctypes.c_int32))[:count.value])

  def tokenize(self, text: str, *, special: bool = True, plain: bool = False) -> list[int]:
    """Returns token ids of a text. special=False adds no BOS etc. plain=True treats special tokens
    written in the text as plain text, for user input."""
    return self._tokenize(text.encode(), special, plain, None, 0)

  def _tokenize(self, data: bytes, special: bool, plain: bool, spans: Any,
                n_spans: int) -> list[int]:
    options = _abi.arn_tokenize_options()
    options.flags = ((0 if special else _abi.ARN_TOKENIZE_NO_SPECIAL) |
                     (_abi.ARN_TOKENIZE_PLAIN if plain else 0))
    options.plain_spans, options.n_plain_spans = spans, n_spans
    count, capacity = ctypes.c_size_t(), len(data) + 16
    with self._handle.use() as model:
      while True:
        ids = (ctypes.c_int32 * capacity)()
        status = self._library.arn_tokenize_with(model, data, len(data), ctypes.byref(options),
                                                 ids, capacity, ctypes.byref(count))
        if status != Status.BUFFER_TOO_SMALL:
          check_plain(self._library, status)
          return ids[:count.value]
        capacity = count.value

  def detokenize(self, ids: Iterable[int], *, skip_special: bool = False) -> str:
    """Returns the text of tokens; invalid UTF-8 becomes U+FFFD."""
    given = id_array(ids)
    flags = _abi.ARN_DETOKENIZE_SKIP_SPECIAL if skip_special else _abi.ARN_DETOKENIZE_DEFAULT
    count, capacity = ctypes.c_size_t(), 16 * len(given) + 64
    with self._handle.use() as model:
      while True:
        text = ctypes.create_string_buffer(capacity)
        status = self._library.arn_detokenize(model, given, len(given), flags, text, capacity,
                                              ctypes.byref(count))
        if status != Status.BUFFER_TOO_SMALL:
          check_plain(self._library, status)
          return text.raw[:count.value].decode()
        capacity = count.value

  def detokenizer(self, *, skip_special: bool = False) -> Detokenizer:
    """Returns a streaming detokenizer for one sequence."""
    return Detokenizer(self, skip_special)

  def token_text(self, token: int) -> bytes:
    """Returns the stored bytes of one token: not always complete UTF-8."""
    text, count = ctypes.c_void_p(), ctypes.c_size_t()
    with self._handle.use() as model:
      check_plain(self._library, self._library.arn_token_text(
          model, token, ctypes.cast(ctypes.byref(text), ctypes.POINTER(ctypes.c_void_p)),
          ctypes.byref(count)))
      return ctypes.string_at(text.value or 0, count.value) if count.value else b""

  def plan(self, options: Optional[SessionOptions] = None, *,
           kv: Union[KvType, str, None] = None, adapters: Sequence[Adapter] = (),
           draft: Optional[Model] = None, **fields: Any) -> MemoryPlan:
    """Returns the memory of a session with these options, as session() takes them; allocates
    nothing."""
    plan, error = _abi.arn_memory_plan(), ErrorText()
    with contextlib.ExitStack() as uses:
      pointers = [uses.enter_context(adapter._handle.use()) for adapter in adapters]
      drafts = None if draft is None else uses.enter_context(draft._handle.use())
      struct = session_struct(options, kv, fields, pointers, drafts)
      model = uses.enter_context(self._handle.use())
      error.check(self._library.arn_session_plan(
          model, ctypes.byref(struct), error.buffer, error.size, ctypes.byref(plan)))
    return from_struct(MemoryPlan, plan)

  def plan_groups(self, options: Optional[SessionOptions] = None) -> list[KvGroup]:
    """Returns the groups of layers that share a pool of KV pages."""
    struct, error, groups = session_struct(options), ErrorText(), []
    for index in range(self.plan(options).n_kv_groups):
      group = _abi.arn_kv_group_info()
      with self._handle.use() as model:
        error.check(self._library.arn_session_plan_group(
            model, ctypes.byref(struct), index, error.buffer, error.size, ctypes.byref(group)))
      groups.append(from_struct(KvGroup, group))
    return groups

  def session(self, options: Optional[SessionOptions] = None, *,
              kv: Union[KvType, str, None] = None, **fields: Any) -> Session:
    """Creates a session on this model. kv: the KV type, such as "int8". fields: those of
    SessionOptions by name (context_tokens=2048), and `adapters` and `draft`, as in Session()."""
    from .session import Session  # imported here because it imports this module
    return Session(self, options, kv=kv, **fields)

  def conversation(self, *, system: Optional[str] = None,
                   messages: Sequence[Mapping[str, Any]] = (),
                   tools: Optional[Sequence[Mapping[str, Any]]] = None,
                   variables: Optional[Mapping[str, Any]] = None, drops_oldest: bool = False,
                   options: Optional[SessionOptions] = None,
                   kv: Union[KvType, str, None] = None, **fields: Any) -> Conversation:
    """Creates a conversation with a session of its own, whose options are as in session(). The
    others are those of Conversation()."""
    from .conversation import Conversation  # imported here because it imports this module
    session = self.session(options, kv=kv, **fields)
    try:
      conversation = Conversation(session, system=system, messages=messages, tools=tools,
                                  variables=variables, drops_oldest=drops_oldest)
    except BaseException:
      session.close()
      raise
    conversation._owns_session = True
    return conversation

  def chat(self, *, arena_bytes: int = 0, max_steps: int = 0) -> Chat:
    """Creates a renderer for the bundle's chat templates; raises NotFound if it has none."""
    from .chat import Chat  # imported here because it imports this module
    return Chat(self, arena_bytes=arena_bytes, max_steps=max_steps)
