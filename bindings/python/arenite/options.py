"""Options and results: the structs of the C API as dataclasses. arenite.h explains each field."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any, Optional, TypeVar

from . import _abi


class KvType(enum.IntEnum):
  """How keys and values are kept."""

  F32 = _abi.ARN_KV_F32
  F16 = _abi.ARN_KV_F16
  INT8 = _abi.ARN_KV_INT8
  INT4 = _abi.ARN_KV_INT4
  INT2 = _abi.ARN_KV_INT2
  AS_KEYS = _abi.ARN_KV_AS_KEYS  # of values


class Overflow(enum.IntEnum):
  """What happens when the context is full."""

  STOP = _abi.ARN_OVERFLOW_STOP
  ERROR = _abi.ARN_OVERFLOW_ERROR
  SHIFT = _abi.ARN_OVERFLOW_SHIFT


class Backend(enum.IntEnum):
  """What computes."""

  CPU = _abi.ARN_BACKEND_CPU
  REFERENCE = _abi.ARN_BACKEND_REFERENCE
  VULKAN = _abi.ARN_BACKEND_VULKAN


class Verify(enum.IntEnum):
  """Which hashes of a saved state are checked."""

  DEFAULT = _abi.ARN_VERIFY_DEFAULT
  ALL = _abi.ARN_VERIFY_ALL
  TABLES = _abi.ARN_VERIFY_TABLES


class Finish(enum.IntEnum):
  """Why a generation ended."""

  NONE = _abi.ARN_FINISH_NONE
  EOS = _abi.ARN_FINISH_EOS
  STOP = _abi.ARN_FINISH_STOP
  LENGTH = _abi.ARN_FINISH_LENGTH
  CONTEXT = _abi.ARN_FINISH_CONTEXT
  CALLBACK = _abi.ARN_FINISH_CALLBACK  # Generation.close()
  CANCELLED = _abi.ARN_FINISH_CANCELLED


class EarlyStopping(enum.IntEnum):
  """When a beam search with enough finished sequences is done."""

  FALSE = _abi.ARN_EARLY_STOPPING_FALSE
  TRUE = _abi.ARN_EARLY_STOPPING_TRUE
  NEVER = _abi.ARN_EARLY_STOPPING_NEVER


@dataclasses.dataclass(frozen=True)
class SessionOptions:
  """arn_session_options. Zeros mean the library's defaults."""

  backend: Backend = Backend.CPU
  kv_type: KvType = KvType.INT8
  context_tokens: int = 0
  prefill_chunk: int = 0
  n_threads: int = 0
  kv_page_tokens: int = 0
  all_logits: bool = False
  max_sequences: int = 0
  kv_tokens: int = 0
  overflow: Overflow = Overflow.STOP
  pinned_tokens: int = 0
  no_cache: bool = False
  kv_file: Optional[str] = None
  kv_value_type: KvType = KvType.AS_KEYS
  kv_residual: int = 0
  kv_group_size: int = 0
  source_rows: int = 0
  n_prefill_threads: int = 0
  device: Optional[str] = None


@dataclasses.dataclass(frozen=True)
class Sampling:
  """arn_sampling. The default is greedy."""

  temperature: float = 0.0
  top_k: int = 0
  top_p: float = 1.0
  min_p: float = 0.0
  seed: int = 0


@dataclasses.dataclass(frozen=True)
class GenerateResult:
  """arn_generate_result."""

  n_tokens: int
  finish: Finish


@dataclasses.dataclass(frozen=True)
class BeamOptions:
  """arn_beam_options."""

  num_beams: int = 1
  num_beam_groups: int = 1
  diversity_penalty: float = 0.0
  length_penalty: float = 1.0
  early_stopping: EarlyStopping = EarlyStopping.FALSE
  num_return_sequences: int = 1
  max_tokens: int = 0
  ignore_eos: bool = False
  extra_eos_ids: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class Beam:
  """A sequence that a beam search found: its new tokens and its score."""

  ids: list[int]
  score: float


@dataclasses.dataclass(frozen=True)
class ModelInfo:
  """arn_model_info."""

  architecture: str
  source_name: str
  producer: str
  target: str
  chat_template: str
  has_weights: bool
  has_tokenizer: bool
  n_layers: int
  hidden: int
  vocab: int
  max_context: int
  n_parameters: int
  file_bytes: int
  weight_bytes: int
  bos_id: int
  pad_id: int
  eos_ids: tuple[int, ...]
  do_sample: bool
  temperature: float
  top_k: int
  top_p: float
  min_p: float
  prefix_tokens: int
  bos_ids: tuple[int, ...]
  source_rows: int
  source_feature_width: int
  start_ids: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class KvGroup:
  """arn_kv_group_info."""

  n_layers: int
  n_kv_heads: int
  head_dim: int
  window: int
  chunk: int
  page_tokens: int
  n_pages: int
  sequence_pages: int
  page_bytes: int
  offset: int
  n_sealed_pages: int
  sealed_page_bytes: int
  sealed_offset: int
  residual: int
  state_bytes: int
  is_source: bool


@dataclasses.dataclass(frozen=True)
class MemoryPlan:
  """arn_memory_plan: the bytes that a session takes, by region, and what the options became."""

  weights_bytes: int
  constants_bytes: int
  repacked_bytes: int
  kv_bytes: int
  kv_bytes_per_token: int
  activations_bytes: int
  io_bytes: int
  total_bytes: int
  alignment: int
  context_tokens: int
  prefill_chunk: int
  n_threads: int
  kv_page_tokens: int
  max_sequences: int
  kv_tokens: int
  n_kv_groups: int
  n_prefill_threads: int
  n_performance_cpus: int
  keeps_to_performance_cpus: bool
  device_bytes: int


@dataclasses.dataclass(frozen=True)
class Stats:
  """arn_session_stats_data."""

  prefill_tokens: int
  prefill_ns: int
  decode_tokens: int
  decode_ns: int
  create_ns: int
  weight_bytes_per_token: int
  kv_bytes_read_per_token: int
  kv_used_bytes: int
  constants_used_bytes: int
  activations_used_bytes: int
  io_used_bytes: int
  kv_capacity_bytes: int


_T = TypeVar("_T")


def from_struct(cls: type[_T], struct: Any) -> _T:
  """A dataclass with a struct's fields: a count n_ids and a pointer ids become a tuple."""
  values: dict[str, Any] = {}
  for field in dataclasses.fields(cls):
    value, kind = getattr(struct, field.name), str(field.type)
    if kind == "tuple[int, ...]":
      value = tuple(value[:getattr(struct, "n_" + field.name)])
    elif kind == "str":
      value = (value or b"").decode("utf-8", "replace")
    elif kind == "bool":
      value = bool(value)
    elif kind == "Finish":
      value = Finish(value)
    values[field.name] = value
  return cls(**values)


def to_struct(struct: Any, options: Any) -> Any:
  """Sets a struct's fields to those of the dataclass."""
  for field in dataclasses.fields(options):
    value = getattr(options, field.name)
    if isinstance(value, tuple):
      continue  # a pointer and a count: the caller's work, who keeps the memory
    if isinstance(value, str):
      value = value.encode()
    maximum = {"int": 2**64 - 1 if field.name == "seed" else 2**32 - 1}.get(str(field.type))
    if maximum is not None and not 0 <= value <= maximum:
      raise ValueError(f"{field.name} is {value}, expected 0 to {maximum}")
    setattr(struct, field.name, value)
  return struct
