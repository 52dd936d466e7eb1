"""Sessions run a model."""

from __future__ import annotations

import array
import contextlib
import ctypes
import json
import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Optional, TypeVar, Union

from . import _abi
from ._convert import from_struct, replaced, to_struct
from ._handle import Closing, Handle
from ._stream import Stream
from .adapter import Adapter
from .errors import ErrorText, Status, failure
from .generation import GenerateOptions, Generation
from .image import Image, embedding_width, expand, floats, joined
from .model import Model, Path, id_array, session_struct
from .options import (
    BackendInfo, Beam, BeamOptions, ConstraintKind, ConstraintStats, KvLayer, KvType, Sampling,
    SessionCpus, SessionOptions, Stats, ThermalZone, ToolChoice, Verify)

_T = TypeVar("_T")
Tokens = Union[str, Iterable[int]]  # a text is tokenized as the start of a sequence


def _constraint_options(kind: ConstraintKind, text: str, any_order: bool, choose_forced: bool,
                        first: Optional[int]) -> _abi.arn_constraint_options:
  data = text.encode()
  options = _abi.arn_constraint_options()
  options.struct_size = ctypes.sizeof(options)
  options.kind, options.text, options.text_bytes = kind, data, len(data)
  options.any_order, options.choose_forced = any_order, choose_forced
  options.first = 0xFFFFFFFF if first is None else first
  return options


class Session(Closing):
  """A session: KV cache, sampling, and the calls that run the model.

  Allows one call at a time, from any thread: a second one raises BadState. cancel() and close() may
  be called from any thread at any time.
  """

  def __init__(self, model: Model, options: Optional[SessionOptions] = None, *,
               kv: Union[KvType, str, None] = None, adapters: Sequence[Adapter] = (),
               draft: Optional[Model] = None, **fields: Any) -> None:
    """kv: the KV type, such as "int8". adapters: those that set_adapters() may name. draft: a
    smaller model with the same vocabulary, for Speculate.DRAFT and AUTO. fields: those of
    SessionOptions by name."""
    self.model = model
    self._library = model._library
    self._model = model._handle
    self._vocab = model.info.vocab
    self._generation: Optional[weakref.ref[Stream[Any, Any]]] = None
    self._prefill_callback: Any = None  # the C function, which must stay alive
    self._prefill_error: Optional[BaseException] = None
    self._adapters = tuple(adapters)
    self._used = [self._model] + [adapter._handle for adapter in self._adapters]
    if draft is not None:
      self._used.append(draft._handle)
    pointer, error = ctypes.c_void_p(), ErrorText()
    pointers: list[int] = []
    try:
      for handle in self._used:  # until _destroy()
        pointers.append(handle.acquire())
      struct = session_struct(options, kv, fields, pointers[1:len(self._adapters) + 1],
                              None if draft is None else pointers[-1])
      error.check(self._library.arn_session_create(
          pointers[0], ctypes.byref(struct), None, 0, error.buffer, error.size,
          ctypes.byref(pointer)))
    except BaseException:
      for handle in self._used[:len(pointers)]:
        handle.release()
      raise
    self._handle = Handle("session", pointer, self._destroy, shared=False)

  def _destroy(self, session: int) -> None:
    self._library.arn_session_destroy(session)
    for handle in self._used:
      handle.release()

  def close(self) -> None:
    """Cancels the running call and destroys the session; frees its memory."""
    generation = self._generation() if self._generation is not None else None
    if generation is not None:
      generation.close()
    self._handle.close(interrupt=self._library.arn_session_cancel)

  def cancel(self) -> None:
    """Cancels the call running on another thread, within one layer's time: it raises Cancelled, and
    generation may resume from there. If no call is running, cancels the next call that runs the
    model."""
    self._handle.signal(self._library.arn_session_cancel)

  def clear_cancel(self) -> None:
    """Clears a pending cancel(). Call it before handing new work to the worker thread."""
    self._handle.signal(self._library.arn_session_clear_cancel)

  def _check(self, session: int, status: int) -> None:
    if status != Status.OK:
      text = self._library.arn_session_last_error(session).decode("utf-8", "replace")
      raise failure(status, text or self._library.arn_status_name(status).decode())

  def _call(self, name: str, *arguments: Any) -> None:
    with self._handle.use() as session:
      self._check(session, getattr(self._library, name)(session, *arguments))

  def _number(self, name: str, *arguments: int) -> int:
    with self._handle.use() as session:
      return int(getattr(self._library, name)(session, *arguments))

  def _ids(self, tokens: Tokens) -> Any:
    return id_array(self.model.tokenize(tokens) if isinstance(tokens, str) else tokens)

  @contextlib.contextmanager
  def _logits(self, name: str, *arguments: Any) -> Iterator[Any]:
    pointer = ctypes.c_void_p()
    with self._handle.use() as session:
      self._check(session, getattr(self._library, name)(session, *arguments,
                                                        ctypes.byref(pointer)))
      yield pointer

  # ---- tokens

  def prefill(self, tokens: Tokens, images: Sequence[Image] = ()) -> None:
    """Appends tokens to the sequence and runs them. images: those whose tokens are among them; the
    session has embedding_rows for them."""
    if images:
      self._run_prefill("arn_session_prefill_embeddings", *self._image_arguments(tokens, images))
      return
    ids = self._ids(tokens)
    self._run_prefill("arn_session_prefill", ids, len(ids))

  def follow(self, tokens: Tokens, images: Sequence[Image] = ()) -> int:
    """Makes the sequence hold exactly these tokens, reusing the common prefix: for conversations.
    images: as for prefill(). Returns the number of reused tokens."""
    kept = ctypes.c_uint32()
    if images:
      self._run_prefill("arn_session_follow_embeddings", *self._image_arguments(tokens, images),
                        ctypes.byref(kept))
      return kept.value
    ids = self._ids(tokens)
    self._run_prefill("arn_session_follow", ids, len(ids), ctypes.byref(kept))
    return kept.value

  def _image_arguments(self, tokens: Tokens, images: Sequence[Image]) -> tuple[Any, ...]:
    if isinstance(tokens, str):
      text, _ = expand(self.model, tokens.encode(), images)
      tokens = self.model._tokenize(text, True, False, None, 0)
    ids, rows = id_array(tokens), joined(images)
    return ids, len(ids), floats(rows), len(rows) // embedding_width(self.model)

  def set_prefill_callback(self, callback: Optional[Callable[[int, int], object]]) -> None:
    """Calls callback(done, total) after each chunk of later prefill() and follow() calls, with the
    tokens that have run and all that the call computes. A true result or an exception ends the
    call, which raises Cancelled or that exception. None: no callback."""
    def on_chunk(_user: Any, done: int, total: int) -> int:
      assert callback is not None
      try:
        return 1 if callback(done, total) else 0
      except BaseException as error:  # pylint: disable=broad-exception-caught
        self._prefill_error = error
        return 1

    function = (_abi.arn_prefill_callback(0) if callback is None
                else _abi.arn_prefill_callback(on_chunk))
    self._call("arn_session_set_prefill_callback", function, None)
    self._prefill_callback = function

  def _run_prefill(self, name: str, *arguments: Any) -> None:
    self._prefill_error = None
    try:
      self._call(name, *arguments)
    finally:
      error, self._prefill_error = self._prefill_error, None
      if error is not None:
        raise error

  def set_adapters(self, adapters: Union[Mapping[Adapter, float], Iterable[Adapter]] = ()) -> None:
    """Makes the sequence, which must be empty, use these of the session's adapters, added up; a
    mapping has what multiplies each. None: the model as it is."""
    given = dict(adapters) if isinstance(adapters, Mapping) else {a: 1.0 for a in adapters}
    for adapter in given:
      if adapter not in self._adapters:
        raise ValueError("the session was created without this adapter")
    indices = (ctypes.c_uint32 * len(given))(*[self._adapters.index(a) for a in given])
    scales = (ctypes.c_float * len(given))(*given.values())
    self._call("arn_session_set_adapters", indices, scales, len(given))

  def use_prefix(self) -> None:
    """Starts the sequence with the bundle's precomputed prompt prefix."""
    self._call("arn_session_use_prefix")

  def encode(self, tokens: Tokens) -> None:
    """Encodes the sequence's encoder input, for models with a token encoder."""
    ids = self._ids(tokens)
    self._call("arn_session_encode_ids", ids, len(ids))

  def encode_features(self, features: Sequence[float], n_frames: int, width: int) -> None:
    """Encodes features: n_frames * width numbers, frame by frame."""
    if len(features) != n_frames * width:
      raise ValueError(f"{len(features)} features are not {n_frames} frames of {width}")
    values = (ctypes.c_float * len(features))(*features)
    self._call("arn_session_encode_features", values, n_frames, width)

  def decode(self) -> int:
    """Chooses the next token, appends it and runs it. With a full context, returns a last token
    without appending it."""
    token = ctypes.c_int32()
    self._call("arn_session_decode", ctypes.byref(token))
    return token.value

  def sample(self) -> int:
    """Chooses the next token without running the model."""
    token = ctypes.c_int32()
    self._call("arn_session_sample", ctypes.byref(token))
    return token.value

  def logprobs(self, token: int, n_top: int = 0) -> tuple[float, list[tuple[int, float]]]:
    """Returns the log-probability of a next token in the model's own distribution, before the
    sampling changes it, and the n_top most likely ones with theirs."""
    top, chosen = (_abi.arn_token_logprob * n_top)(), ctypes.c_float()
    self._call("arn_session_logprobs", token, n_top, top, ctypes.byref(chosen))
    return chosen.value, [(one.id, one.logprob) for one in top]

  def logits(self) -> array.array[float]:
    """Returns a copy of the logits after the last token, [vocab]."""
    with self._logits("arn_session_logits") as pointer:
      return array.array("f", ctypes.string_at(pointer, 4 * self._vocab))

  def prefill_logits(self, tokens: Tokens) -> array.array[float]:
    """Same as prefill(), for at most one chunk; returns the logits after each token, one row each.
    Requires all_logits."""
    ids = self._ids(tokens)
    with self._logits("arn_session_prefill_logits", ids, len(ids)) as pointer:
      return array.array("f", ctypes.string_at(pointer, 4 * self._vocab * len(ids)))

  def prefill_masked(self, tokens: Tokens, *, positions: Sequence[int] | None = None,
                     visible: Sequence[Sequence[int]] | None = None, first: int = 0,
                     logits: bool = False) -> array.array[float] | None:
    """Same as prefill(), for at most one chunk whose tokens have positions and an attention mask of
    their own: a tree of guesses, a prefix that is seen both ways. visible: for each token a row of
    0 and 1, for the tokens of the sequence from `first` on, those of the call included. The mask
    holds for this call; rewind() drops a tree. Returns the logits after each token, one row each,
    with `logits`, which requires all_logits."""
    ids = self._ids(tokens)
    mask = _abi.arn_attention_mask()
    if positions is not None:
      if len(positions) != len(ids):
        raise ValueError(f"{len(positions)} positions for {len(ids)} tokens")
      mask.positions = (ctypes.c_uint32 * len(ids))(*positions)
    if visible is not None:
      seen = len(self) + len(ids) - first
      if len(visible) != len(ids) or any(len(row) != seen for row in visible):
        raise ValueError(f"visible: expected {len(ids)} rows of {seen} numbers")
      cells = (cell for row in visible for cell in row)
      mask.visible = (ctypes.c_uint8 * (len(ids) * seen))(*cells)
    mask.first = first
    if not logits:
      self._call("arn_session_prefill_masked", ids, len(ids), ctypes.byref(mask), None)
      return None
    with self._logits("arn_session_prefill_masked", ids, len(ids), ctypes.byref(mask)) as pointer:
      return array.array("f", ctypes.string_at(pointer, 4 * self._vocab * len(ids)))

  @property
  def tokens(self) -> list[int]:
    """The tokens of the sequence."""
    ids, count = ctypes.c_void_p(), ctypes.c_uint32()
    with self._handle.use() as session:
      self._check(session, self._library.arn_session_tokens(session, ctypes.byref(ids),
                                                            ctypes.byref(count)))
      if count.value == 0:
        return []
      return list(ctypes.cast(ids, ctypes.POINTER(ctypes.c_int32))[:count.value])

  def __len__(self) -> int:
    return self._number("arn_session_length")

  def __bool__(self) -> bool:
    return True  # an empty sequence must not make the session false

  def reset(self) -> None:
    """Clears the sequence."""
    self._call("arn_session_reset")

  def rewind(self, position: int) -> None:
    """Removes the tokens from `position` on; generation continues from there."""
    self._call("arn_session_rewind", position)

  @property
  def first_rewind_position(self) -> int:
    return self._number("arn_session_first_rewind_position")

  def resume_position(self, position: int) -> int:
    """Returns where rewind(position) would continue from: the tokens in between run again, which
    only happens in models with recurrent states."""
    return self._number("arn_session_resume_position", position)

  def mark(self) -> None:
    """Keeps a snapshot of the recurrent states here, so that rewinding to this position computes
    nothing again. Needs state_snapshots in the session's options."""
    self._call("arn_session_mark")

  def trim(self) -> int:
    """Returns the memory of unused KV pages to the system; returns the number of bytes."""
    count = ctypes.c_uint64()
    self._call("arn_session_trim", ctypes.byref(count))
    return count.value

  # ---- text

  def set_sampling(self, sampling: Sampling) -> None:
    """Sets the sampling for all following tokens. A new session is greedy; model.sampling has the
    checkpoint's settings. A seed of random_seed() gives a different text each time."""
    struct = to_struct(_abi.arn_sampling(), sampling)
    self._call("arn_session_set_sampling", ctypes.byref(struct))

  def set_constraint(self, kind: ConstraintKind, text: str, *, any_order: bool = False,
                     any_whitespace: bool = False, any_spelling: bool = False,
                     choose_forced: bool = False, first: Optional[int] = None) -> None:
    """Compiles a constraint for the text that follows, in the session's constraint_bytes. `first`:
    the position of the text's first token, if it has begun already. Choices are
    separated by "\\0"."""
    options = _constraint_options(kind, text, any_order, choose_forced, first)
    options.any_whitespace = any_whitespace
    options.any_spelling = any_spelling
    self._call("arn_session_set_constraint", ctypes.byref(options))

  def set_tools(self, tools: Sequence[Mapping[str, Any]], choice: str = "auto", *,
                single_call: bool = False, prompt: str = "", any_order: bool = False,
                choose_forced: bool = False, first: Optional[int] = None) -> None:
    """Constrains the reply that follows to valid calls of the tools, as the chat template writes
    them. choice: "auto" (text, calls or both), "required", "none", or the name of the tool that
    must be called. prompt: the rendered conversation, or its end: it may begin the reasoning."""
    text = json.dumps(tools, ensure_ascii=False, allow_nan=False)
    options = _constraint_options(ConstraintKind.TOOL_CALLS, text, any_order, choose_forced, first)
    end, name = prompt.encode(), choice.encode()
    named = choice not in ("auto", "required", "none")
    options.tool_choice = ToolChoice.NAMED if named else ToolChoice[choice.upper()]
    if named:
      options.tool_name, options.tool_name_bytes = name, len(name)
    options.single_call = single_call
    options.prompt, options.prompt_bytes = end, len(end)
    self._call("arn_session_set_constraint", ctypes.byref(options))

  def drop_constraint(self) -> None:
    """Removes the sequence's constraint, if it has one."""
    self._call("arn_session_set_constraint", None)

  @property
  def constraint_stats(self) -> ConstraintStats:
    """What the sequence's constraint cost so far. Raises NotFound if it has none."""
    return self._read(ConstraintStats, "arn_session_constraint_stats",
                      _abi.arn_constraint_stats_data())

  def generate(self, prompt: Optional[Tokens] = None, *, max_tokens: int = 0,
               stops: Sequence[str] = (), ignore_eos: bool = False,
               extra_eos_ids: Sequence[int] = (), n_top_logprobs: Optional[int] = None,
               sampling: Optional[Sampling] = None, **sampling_options: Any) -> Generation:
    """Prefills `prompt`, if given, and streams the generated text. max_tokens 0: until a stop token
    or a full context. n_top_logprobs: the generation's `logprobs` keeps those of each token and of
    this many most likely ones; needs max_tokens. sampling, and fields of Sampling by name
    (temperature=0.7), are set as by set_sampling() first, and stay set; without them the session's
    sampling goes on."""
    options = GenerateOptions(max_tokens, stops, ignore_eos, extra_eos_ids, n_top_logprobs)
    if sampling is not None or sampling_options:
      self.set_sampling(replaced(sampling or Sampling(), sampling_options, "Sampling"))
    if prompt is not None:
      self.prefill(prompt)
    generation = Generation(self._library, self._handle, options)
    self._generation = weakref.ref(generation)
    return generation

  def beam_search(self, options: BeamOptions) -> list[Beam]:
    """Runs beam search from the selected sequence; clears all sequences that take part."""
    struct, result = to_struct(_abi.arn_beam_options(), options), _abi.arn_beam_result()
    eos = id_array(options.extra_eos_ids)
    struct.extra_eos_ids, struct.n_extra_eos_ids = eos, len(eos)
    self._call("arn_session_beam_search", ctypes.byref(struct), ctypes.byref(result))
    found, count, score = [], ctypes.c_size_t(), ctypes.c_float()
    ids = (ctypes.c_int32 * (result.n_steps + 1))()
    for index in range(result.n_sequences):
      self._call("arn_session_beam", index, ids, len(ids), ctypes.byref(count),
                 ctypes.byref(score))
      found.append(Beam(ids[:count.value], score.value))
    return found

  # ---- several sequences

  def select(self, sequence: int) -> None:
    """Selects the sequence for all following calls."""
    self._call("arn_session_select", sequence)

  @property
  def selected(self) -> int:
    return self._number("arn_session_selected")

  def fork(self, source: int, target: int) -> None:
    """Makes the empty sequence `target` a copy of `source` that shares its pages. The copy draws
    its own random numbers."""
    self._call("arn_session_fork", source, target)

  def step(self, tokens: Sequence[tuple[int, int]]) -> None:
    """Appends a token to each sequence, given as (sequence, token), all in one batch."""
    sequences = (ctypes.c_uint32 * len(tokens))(*(sequence for sequence, _ in tokens))
    ids = id_array(token for _, token in tokens)
    self._call("arn_session_step", sequences, ids, len(ids))

  def decode_batch(self, sequences: Sequence[int]) -> list[int]:
    """Chooses, appends and runs a token for each of these sequences, all in one batch."""
    given = (ctypes.c_uint32 * len(sequences))(*sequences)
    ids = (ctypes.c_int32 * len(sequences))()
    self._call("arn_session_decode_batch", given, len(sequences), ids)
    return ids[:]

  # ---- saving

  def save(self, path: Path) -> None:
    """Saves all sequences to a file; replaces it only once the new one is complete."""
    self._call("arn_session_save", os.fsencode(path))

  def save_bytes(self) -> bytes:
    """Saves all sequences to memory."""
    size = ctypes.c_uint64()
    self._call("arn_session_save_bytes", ctypes.byref(size))
    memory = ctypes.create_string_buffer(max(1, size.value))
    self._call("arn_session_save_memory", memory, size.value, ctypes.byref(size))
    return memory.raw[:size.value]

  def restore(self, path: Path, *, verify: Verify = Verify.DEFAULT,
              constraints: bool = True) -> None:
    """Replaces all sequences by saved ones; a file that does not match changes nothing.
    constraints=False leaves saved constraints out."""
    options = _abi.arn_restore_options()
    options.verify = verify
    options.no_constraints = not constraints
    self._call("arn_session_restore", os.fsencode(path), ctypes.byref(options))

  def restore_bytes(self, data: bytes, *, verify: Verify = Verify.DEFAULT,
                    constraints: bool = True) -> None:
    """Same, from the result of save_bytes()."""
    options = _abi.arn_restore_options()
    options.verify = verify
    options.no_constraints = not constraints
    self._call("arn_session_restore_memory", ctypes.c_char_p(data), len(data),
               ctypes.byref(options))

  # ---- KV cache

  def kv_layer(self, layer: int) -> KvLayer:
    """Returns the KV shape of a layer, and the positions that read_kv() can read."""
    return self._read(KvLayer, "arn_session_kv_layer", _abi.arn_kv_layer_info(), layer)

  def read_kv(self, layer: int, first: int, n: int) -> tuple[array.array[float],
                                                             array.array[float]]:
    """Returns a layer's keys and values of n tokens from position `first` on, each [n_kv_heads, n,
    head_dim]; keys are rotated by RoPE."""
    info = self.kv_layer(layer)
    read = tuple((ctypes.c_float * (info.n_kv_heads * n * info.head_dim))() for _ in "kv")
    self._call("arn_session_read_kv", layer, first, n, *read)
    keys, values = (array.array("f", bytes(floats)) for floats in read)
    return keys, values

  def write_kv(self, tokens: Iterable[int], layers: Sequence[Optional[tuple[Any, Any]]]) -> None:
    """Appends tokens without running them. `layers` has the keys and values of each layer as
    read_kv() returns them (any buffers of floats), or None for a layer that uses those of another.
    Logits come from running the last token again when they are needed."""
    if len(layers) != self.model.info.n_layers:
      raise ValueError(f"{len(layers)} layers, the model has {self.model.info.n_layers}")
    ids = id_array(list(tokens))
    kept, columns = [], []
    for which in (0, 1):
      column = (ctypes.c_void_p * len(layers))()
      for i, layer in enumerate(layers):
        if layer is None:
          continue
        floats = array.array("f", memoryview(layer[which]).cast("B").tobytes())
        info = self.kv_layer(i)
        if len(floats) != info.n_kv_heads * len(ids) * info.head_dim:
          raise ValueError(f"layer {i} has {len(floats)} {'keys' if which == 0 else 'values'}, "
                           f"expected {info.n_kv_heads} x {len(ids)} x {info.head_dim}")
        kept.append(floats)  # alive during the call
        column[i] = floats.buffer_info()[0]
      columns.append(column)
    self._call("arn_session_write_kv", ids, len(ids), *columns)

  # ---- backend and counters

  def _read(self, cls: type[_T], name: str, struct: Any, *arguments: Any) -> _T:
    with self._handle.use() as session:
      self._check(session, getattr(self._library, name)(session, *arguments,
                                                        ctypes.byref(struct)))
      return from_struct(cls, struct)

  @property
  def backend(self) -> BackendInfo:
    """The backend in use and, after a fallback, why the requested device is not used."""
    return self._read(BackendInfo, "arn_session_backend", _abi.arn_backend_info())

  @property
  def cpus(self) -> SessionCpus:
    """The CPUs chosen for the session's threads, and those that the system allows."""
    return self._read(SessionCpus, "arn_session_cpus", _abi.arn_session_cpus_data())

  @property
  def thermal_zones(self) -> list[ThermalZone]:
    """Reads the thermal zones; empty unless the session was created with sensors."""
    return [self._read(ThermalZone, "arn_session_thermal_zone", _abi.arn_thermal_zone(), index)
            for index in range(self.stats.n_thermal_zones)]

  @property
  def stats(self) -> Stats:
    return self._read(Stats, "arn_session_stats", _abi.arn_session_stats_data())

  def reset_stats(self) -> None:
    """Resets the token and time counters."""
    self._call("arn_session_reset_stats")
