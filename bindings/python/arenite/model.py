"""Models: what is in a bundle, its tokenizer, and what sessions on it take."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Callable, Optional, Union

from . import _abi
from ._convert import from_struct, to_struct
from ._handle import Closing, Handle
from ._library import library
from .errors import AreniteError, ErrorText, Status, check_plain
from .options import Hashes, KvGroup, MemoryPlan, ModelInfo, Sampling, SessionOptions

if TYPE_CHECKING:
  from .chat import Chat
  from .session import Session

Path = Union[str, "os.PathLike[str]"]

_ALIGNMENT = 64  # of a bundle in memory
_KEY_BYTES = 32  # of a public key


def session_struct(options: Optional[SessionOptions]) -> Any:
  return to_struct(_abi.arn_session_options(), options or SessionOptions())


def id_array(ids: Iterable[int]) -> Any:
  values = list(ids)
  return (ctypes.c_int32 * len(values))(*values)


class Model(Closing):
  """A bundle that is open. Several threads may use one.

  Closing a model that sessions or chats use takes effect when the last of these is closed.
  """

  def __init__(self, path: Path, *, verify: Hashes = Hashes.INDEX,
               public_key: Optional[bytes] = None) -> None:
    """Maps the bundle at `path`. verify: which hashes are checked; public_key: 32 bytes, with which
    the bundle has to be signed."""
    self._open("arn_model_open", verify, public_key, os.fsencode(path))

  @classmethod
  def from_fd(cls, fd: int, offset: int = 0, length: int = 0, *, verify: Hashes = Hashes.INDEX,
              public_key: Optional[bytes] = None) -> Model:
    """Maps `length` bytes (0: all) of an open file from `offset` on, a multiple of 16384. The
    descriptor may be closed afterwards."""
    model = cls.__new__(cls)
    model._open("arn_model_open_fd", verify, public_key, fd, offset, length)
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
    """Reads a bundle of `length` bytes by read(offset, n), which returns n bytes of it, decrypted
    say, from the beginning to the end. Its exceptions reach the caller."""
    raised: list[BaseException] = []

    def fill(_user: Any, offset: int, out: int, n: int) -> int:
      try:
        data = read(offset, n)
        if len(data) != n:
          raise ValueError(f"read({offset}, {n}) returned {len(data)} bytes")
        ctypes.memmove(out, data, n)
        return 0
      except BaseException as error:  # ctypes would print it and go on
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
            *source: Any) -> None:
    options = _abi.arn_model_options()
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

    def destroy(model: int, keep: Any = memory) -> None:  # the bytes outlive the model
      close(model)

    self._handle = Handle("model", pointer, destroy, shared=True)

  def close(self) -> None:
    """Ends the model; what uses it still ends it when it is closed itself."""
    self._handle.close()

  @property
  def info(self) -> ModelInfo:
    struct = _abi.arn_model_info()
    with self._handle.use() as model:
      check_plain(self._library, self._library.arn_model_get_info(model, ctypes.byref(struct)))
      return from_struct(ModelInfo, struct)

  @property
  def sampling(self) -> Sampling:
    """How the checkpoint wants its tokens chosen."""
    struct = _abi.arn_sampling()
    with self._handle.use() as model:
      check_plain(self._library, self._library.arn_model_sampling(model, ctypes.byref(struct)))
    return from_struct(Sampling, struct)

  @property
  def prefix(self) -> list[int]:
    """The tokens of the prompt's beginning that comes computed with the bundle; none: []."""
    ids, count = ctypes.c_void_p(), ctypes.c_uint32()
    with self._handle.use() as model:
      status = self._library.arn_model_prefix(model, ctypes.byref(ids), ctypes.byref(count))
      if status == Status.NOT_FOUND:
        return []
      check_plain(self._library, status)
      return list(ctypes.cast(ids, ctypes.POINTER(ctypes.c_int32))[:count.value])

  def tokenize(self, text: str, *, special: bool = True) -> list[int]:
    """Token ids of a text. special=False adds no BOS and the like around it."""
    data = text.encode()
    flags = _abi.ARN_TOKENIZE_DEFAULT if special else _abi.ARN_TOKENIZE_NO_SPECIAL
    count, capacity = ctypes.c_size_t(), len(data) + 16
    with self._handle.use() as model:
      while True:
        ids = (ctypes.c_int32 * capacity)()
        status = self._library.arn_tokenize(model, data, len(data), flags, None, 0, ids, capacity,
                                            ctypes.byref(count))
        if status != Status.BUFFER_TOO_SMALL:
          check_plain(self._library, status)
          return ids[:count.value]
        capacity = count.value

  def detokenize(self, ids: Iterable[int], *, skip_special: bool = False) -> str:
    """The text of tokens; bytes that are not UTF-8 become U+FFFD."""
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

  def token_text(self, token: int) -> bytes:
    """The text of one token as it is stored: not always whole UTF-8."""
    text, count = ctypes.c_void_p(), ctypes.c_size_t()
    with self._handle.use() as model:
      check_plain(self._library, self._library.arn_token_text(
          model, token, ctypes.cast(ctypes.byref(text), ctypes.POINTER(ctypes.c_void_p)),
          ctypes.byref(count)))
      return ctypes.string_at(text.value or 0, count.value) if count.value else b""

  def plan(self, options: Optional[SessionOptions] = None) -> MemoryPlan:
    """The bytes that a session with these options takes; none is taken."""
    struct, plan, error = session_struct(options), _abi.arn_memory_plan(), ErrorText()
    with self._handle.use() as model:
      error.check(self._library.arn_session_plan(
          model, ctypes.byref(struct), error.buffer, error.size, ctypes.byref(plan)))
    return from_struct(MemoryPlan, plan)

  def plan_groups(self, options: Optional[SessionOptions] = None) -> list[KvGroup]:
    """The groups of layers that share a pool of KV pages."""
    struct, error, groups = session_struct(options), ErrorText(), []
    for index in range(self.plan(options).n_kv_groups):
      group = _abi.arn_kv_group_info()
      with self._handle.use() as model:
        error.check(self._library.arn_session_plan_group(
            model, ctypes.byref(struct), index, error.buffer, error.size, ctypes.byref(group)))
      groups.append(from_struct(KvGroup, group))
    return groups

  def session(self, options: Optional[SessionOptions] = None) -> Session:
    """A new session on this model."""
    from .session import Session  # which needs this module
    return Session(self, options)

  def chat(self, *, arena_bytes: int = 0, max_steps: int = 0) -> Chat:
    """What renders conversations by the bundle's templates; NotFound when it has none."""
    from .chat import Chat  # which needs this module
    return Chat(self, arena_bytes=arena_bytes, max_steps=max_steps)
