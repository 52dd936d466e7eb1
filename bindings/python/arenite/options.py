"""Options and results. Written by tools/c_api/generate.py from arenite.h: do not edit it.

What each field means is said in arenite.h. Zeros of options are the library's defaults.
"""

from __future__ import annotations

import dataclasses
import enum
from typing import Optional

from . import _abi


class Status(enum.IntEnum):
  """ARN_..."""

  OK = _abi.ARN_OK
  INTERNAL = _abi.ARN_INTERNAL
  BAD_STATE = _abi.ARN_BAD_STATE
  CANCELLED = _abi.ARN_CANCELLED
  BAD_ARGUMENT = _abi.ARN_BAD_ARGUMENT
  UNSUPPORTED = _abi.ARN_UNSUPPORTED
  BAD_TOKEN = _abi.ARN_BAD_TOKEN
  BUFFER_TOO_SMALL = _abi.ARN_BUFFER_TOO_SMALL
  TEMPLATE_ERROR = _abi.ARN_TEMPLATE_ERROR
  CONTEXT_FULL = _abi.ARN_CONTEXT_FULL
  OUT_OF_MEMORY = _abi.ARN_OUT_OF_MEMORY
  NOT_FOUND = _abi.ARN_NOT_FOUND
  IO = _abi.ARN_IO
  DISK_FULL = _abi.ARN_DISK_FULL
  BAD_BUNDLE = _abi.ARN_BAD_BUNDLE
  BUNDLE_VERSION = _abi.ARN_BUNDLE_VERSION
  BUNDLE_TRUNCATED = _abi.ARN_BUNDLE_TRUNCATED
  HASH_MISMATCH = _abi.ARN_HASH_MISMATCH
  BAD_SAVE = _abi.ARN_BAD_SAVE
  SAVE_MISMATCH = _abi.ARN_SAVE_MISMATCH
  BAD_SIGNATURE = _abi.ARN_BAD_SIGNATURE
  DEVICE = _abi.ARN_DEVICE
  DEVICE_LOST = _abi.ARN_DEVICE_LOST


class Hashes(enum.IntEnum):
  """ARN_HASHES_..."""

  INDEX = _abi.ARN_HASHES_INDEX
  ALL = _abi.ARN_HASHES_ALL
  ON_USE = _abi.ARN_HASHES_ON_USE


class Residency(enum.IntEnum):
  """ARN_RESIDENCY_..."""

  MAPPED = _abi.ARN_RESIDENCY_MAPPED
  COPIED = _abi.ARN_RESIDENCY_COPIED
  LOCKED = _abi.ARN_RESIDENCY_LOCKED
  HUGE = _abi.ARN_RESIDENCY_HUGE


class KvType(enum.IntEnum):
  """ARN_KV_..."""

  F32 = _abi.ARN_KV_F32
  F16 = _abi.ARN_KV_F16
  INT8 = _abi.ARN_KV_INT8
  INT4 = _abi.ARN_KV_INT4
  INT2 = _abi.ARN_KV_INT2
  AS_KEYS = _abi.ARN_KV_AS_KEYS


class Overflow(enum.IntEnum):
  """ARN_OVERFLOW_..."""

  STOP = _abi.ARN_OVERFLOW_STOP
  ERROR = _abi.ARN_OVERFLOW_ERROR
  SHIFT = _abi.ARN_OVERFLOW_SHIFT


class Backend(enum.IntEnum):
  """ARN_BACKEND_..."""

  CPU = _abi.ARN_BACKEND_CPU
  REFERENCE = _abi.ARN_BACKEND_REFERENCE
  VULKAN = _abi.ARN_BACKEND_VULKAN
  AUTO = _abi.ARN_BACKEND_AUTO
  VULKAN_CPU = _abi.ARN_BACKEND_VULKAN_CPU


class Cpus(enum.IntEnum):
  """ARN_CPUS_..."""

  AUTO = _abi.ARN_CPUS_AUTO
  PERFORMANCE = _abi.ARN_CPUS_PERFORMANCE
  ALL = _abi.ARN_CPUS_ALL
  MASK = _abi.ARN_CPUS_MASK


class Option(enum.IntEnum):
  """ARN_OPTION_..."""

  FLOAT = _abi.ARN_OPTION_FLOAT
  UINT32 = _abi.ARN_OPTION_UINT32
  UINT64 = _abi.ARN_OPTION_UINT64
  INT32 = _abi.ARN_OPTION_INT32
  IDS = _abi.ARN_OPTION_IDS
  FLOATS = _abi.ARN_OPTION_FLOATS


class Finish(enum.IntEnum):
  """ARN_FINISH_..."""

  NONE = _abi.ARN_FINISH_NONE
  EOS = _abi.ARN_FINISH_EOS
  STOP = _abi.ARN_FINISH_STOP
  LENGTH = _abi.ARN_FINISH_LENGTH
  CONTEXT = _abi.ARN_FINISH_CONTEXT
  CALLBACK = _abi.ARN_FINISH_CALLBACK
  CANCELLED = _abi.ARN_FINISH_CANCELLED


class EarlyStopping(enum.IntEnum):
  """ARN_EARLY_STOPPING_..."""

  FALSE = _abi.ARN_EARLY_STOPPING_FALSE
  TRUE = _abi.ARN_EARLY_STOPPING_TRUE
  NEVER = _abi.ARN_EARLY_STOPPING_NEVER


class Energy(enum.IntEnum):
  """ARN_ENERGY_..."""

  NONE = _abi.ARN_ENERGY_NONE
  RAPL = _abi.ARN_ENERGY_RAPL
  BOARD_COUNTER = _abi.ARN_ENERGY_BOARD_COUNTER
  BOARD_POWER = _abi.ARN_ENERGY_BOARD_POWER
  BATTERY_POWER = _abi.ARN_ENERGY_BATTERY_POWER
  BATTERY_LEFT = _abi.ARN_ENERGY_BATTERY_LEFT


class Verify(enum.IntEnum):
  """ARN_VERIFY_..."""

  DEFAULT = _abi.ARN_VERIFY_DEFAULT
  ALL = _abi.ARN_VERIFY_ALL
  TABLES = _abi.ARN_VERIFY_TABLES


class ConstraintKind(enum.IntEnum):
  """ARN_CONSTRAINT_..."""

  JSON_SCHEMA = _abi.ARN_CONSTRAINT_JSON_SCHEMA
  REGEX = _abi.ARN_CONSTRAINT_REGEX
  GRAMMAR = _abi.ARN_CONSTRAINT_GRAMMAR
  CHOICES = _abi.ARN_CONSTRAINT_CHOICES


class ReplyEvent(enum.IntEnum):
  """ARN_REPLY_EVENT_..."""

  TEXT = _abi.ARN_REPLY_EVENT_TEXT
  REASONING = _abi.ARN_REPLY_EVENT_REASONING
  CALL_BEGIN = _abi.ARN_REPLY_EVENT_CALL_BEGIN
  CALL_ID = _abi.ARN_REPLY_EVENT_CALL_ID
  CALL_ARGUMENTS = _abi.ARN_REPLY_EVENT_CALL_ARGUMENTS
  CALL_END = _abi.ARN_REPLY_EVENT_CALL_END


NO_TEMPERATURE = _abi.ARN_NO_TEMPERATURE


@dataclasses.dataclass(frozen=True)
class ModelInfo:
  """Contents of a bundle. arn_model_info."""

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
  encoder_rows: int
  encoder_feature_width: int
  start_ids: tuple[int, ...]
  self_test_tokens: int


@dataclasses.dataclass(frozen=True)
class ResidencyInfo:
  """Bytes of a bundle by where they lie. arn_residency."""

  residency: Residency
  mapped_bytes: int
  copied_bytes: int
  resident_bytes: int
  huge_bytes: int
  locked_bytes: int


@dataclasses.dataclass(frozen=True)
class Sampling:
  """Sampling parameters. The defaults are greedy. arn_sampling."""

  temperature: float = 0.0
  top_k: int = 0
  top_p: float = 1.0
  min_p: float = 0.0
  seed: int = 0
  repetition_penalty: float = 1.0
  penalty_window: int = 0
  frequency_penalty: float = 0.0
  presence_penalty: float = 0.0
  no_repeat_ngram_size: int = 0
  min_new_tokens: int = 0
  typical_p: float = 1.0
  xtc_probability: float = 0.0
  xtc_threshold: float = 0.1
  dry_multiplier: float = 0.0
  dry_base: float = 1.75
  dry_allowed_length: int = 2
  dry_window: int = 0
  mirostat_tau: float = 0.0
  mirostat_eta: float = 0.1
  forced_first: int = -1
  forced_last: int = -1
  bias_ids: tuple[int, ...] = ()
  bias_values: tuple[float, ...] = ()
  bad_words: tuple[int, ...] = ()
  suppress_tokens: tuple[int, ...] = ()
  begin_suppress_tokens: tuple[int, ...] = ()
  dry_breakers: tuple[int, ...] = ()
  top_n_sigma: float = 0.0


@dataclasses.dataclass(frozen=True)
class SessionOptions:
  """Options of a session. Zeros are defaults. arn_session_options."""

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
  encoder_rows: int = 0
  n_prefill_threads: int = 0
  device: Optional[str] = None
  cpus: Cpus = Cpus.AUTO
  sensors: bool = False
  cpu_mask: int = 0
  max_tokens_per_s: float = 0
  thermal_limit_mc: int = 0
  thermal_headroom: float = 0
  thermal_duty_percent: int = 0
  thermal_zone: Optional[str] = None
  system_root: Optional[str] = None
  trust_device: bool = False
  device_folder: Optional[str] = None
  needs_gpu: bool = False
  activation_bits: int = 0
  constraint_bytes: int = 0
  max_constraints: int = 0
  logits_processors: bool = False
  sampling_words: int = 0
  state_snapshots: int = 0
  snapshot_every: int = 0


@dataclasses.dataclass(frozen=True)
class MemoryPlan:
  """The bytes that a session takes, by region. arn_memory_plan."""

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
  copied_bytes: int
  constraints_bytes: int
  snapshots_bytes: int
  state_snapshots: int
  snapshot_every: int


@dataclasses.dataclass(frozen=True)
class KvGroup:
  """A group of layers that share a pool of KV pages. arn_kv_group_info."""

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
  n_quantised_pages: int
  quantised_page_bytes: int
  quantised_offset: int
  residual: int
  state_bytes: int
  is_encoder: bool


@dataclasses.dataclass(frozen=True)
class BackendInfo:
  """The backend that computes a session's tokens. arn_backend_info."""

  backend: Backend
  name: str
  device: str
  reason: str
  kernels: str


@dataclasses.dataclass(frozen=True)
class KvLayer:
  """A layer whose keys and values can be read. arn_kv_layer_info."""

  n_kv_heads: int
  head_dim: int
  kv_layer: int
  first_position: int


@dataclasses.dataclass(frozen=True)
class GenerateResult:
  """Result of a generation. arn_generate_result."""

  n_tokens: int
  finish: Finish


@dataclasses.dataclass(frozen=True)
class BeamOptions:
  """Options of a beam search. arn_beam_options."""

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
class Stats:
  """Counters of a session. arn_session_stats_data."""

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
  prefill_tokens_per_s: float
  decode_tokens_per_s: float
  weight_bytes_read: int
  kv_bytes_read: int
  paced_ns: int
  cooled_ns: int
  energy_uj: int
  energy_ns: int
  power_uw: int
  energy_source: Energy
  n_thermal_zones: int
  temperature_mc: int
  hottest_zone: int
  thermal_headroom: float
  is_hot: bool
  energy_name: str
  kv_file_bytes_read: int
  kv_file_bytes_written: int
  kv_file_wait_ns: int
  recomputed_tokens: int
  n_state_snapshots: int


@dataclasses.dataclass(frozen=True)
class ConstraintStats:
  """Cost of a constraint so far. arn_constraint_stats_data."""

  steps: int
  candidates_tested: int
  masks: int
  forced_tokens: int
  compile_ns: int
  p50_ns: int
  p99_ns: int
  p999_ns: int
  max_ns: int
  bytes: int


@dataclasses.dataclass(frozen=True)
class CpuCluster:
  """CPUs of one package that are alike. arn_cpu_cluster."""

  cpus: frozenset[int]
  n_cpus: int
  capacity: int
  max_khz: int
  is_performance: bool


@dataclasses.dataclass(frozen=True)
class SessionCpus:
  """CPUs that a session's threads may run on. arn_session_cpus_data."""

  wanted: frozenset[int]
  applied: frozenset[int]
  n_threads: int
  is_as_wanted: bool


@dataclasses.dataclass(frozen=True)
class ThermalZone:
  """A thermal zone of the device. arn_thermal_zone."""

  millicelsius: int
  name: str


@dataclasses.dataclass(frozen=True)
class ReplyInfo:
  """Parts that are recognised in a model's replies. arn_reply_info."""

  has_reasoning: bool
  has_calls: bool
  reasoning_begin: str
  reasoning_end: str


@dataclasses.dataclass(frozen=True)
class Beam:
  """A sequence that a beam search found: its new tokens and its score."""

  ids: list[int]
  score: float


__all__ = [
    "Backend", "BackendInfo", "Beam", "BeamOptions", "ConstraintKind", "ConstraintStats",
    "CpuCluster", "Cpus", "EarlyStopping", "Energy", "Finish", "GenerateResult", "Hashes",
    "KvGroup", "KvLayer", "KvType", "MemoryPlan", "ModelInfo", "NO_TEMPERATURE", "Option",
    "Overflow", "ReplyEvent", "ReplyInfo", "Residency", "ResidencyInfo", "Sampling", "SessionCpus",
    "SessionOptions", "Stats", "Status", "ThermalZone", "Verify"
]
