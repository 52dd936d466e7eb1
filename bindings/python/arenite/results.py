"""Results.

Written by tools/c_api/generate.py from arenite.h: do not edit it.
"""

from __future__ import annotations

import dataclasses

from .enums import *  # noqa: F403


@dataclasses.dataclass(frozen=True)
class ModelInfo:
  """Contents of a bundle. arn_model_info."""

  architecture: str
  source_name: str
  producer: str
  target: str
  """CPU target that the weights are packed for."""
  chat_template: str
  """"" if the bundle has none."""
  has_weights: bool
  """0: a tokenizer-only bundle."""
  has_tokenizer: bool
  """0: works with token ids only."""
  n_layers: int
  hidden: int
  vocab: int
  max_context: int
  """Longest context the model was trained for."""
  n_parameters: int
  file_bytes: int
  weight_bytes: int
  bos_id: int
  """First of bos_ids; -1: none."""
  pad_id: int
  """-1: none."""
  eos_ids: tuple[int, ...]
  do_sample: bool
  """The checkpoint's sampling defaults; arn_model_sampling combines them. Without do_sample the
  others apply only if sampling is requested explicitly."""
  temperature: float
  top_k: int
  top_p: float
  min_p: float
  prefix_tokens: int
  """Length of the precomputed prompt prefix in the bundle; 0: none (arn_model_prefix,
  Session.use_prefix)."""
  bos_ids: tuple[int, ...]
  encoder_rows: int
  """Models with an encoder (Session.encode_ids, .._features): maximum encoder rows; 0: no
  encoder."""
  encoder_feature_width: int
  """Width of each input frame; 0: the encoder takes token ids."""
  start_ids: tuple[int, ...]
  self_test_tokens: int
  """Tokens of the device self-test whose logits the bundle contains; 0: none, a CPU computes them
  (SessionOptions.trust_device)."""
  makes_text: bool
  """0: no sessions, only embedders (arn_embedder_create)."""
  makes_vectors: bool
  """Of texts: arn_embed."""
  makes_scores: bool
  """Of pairs of texts: arn_rerank."""
  encoder_row_frames: int
  """N rows of an encoder with frames are encoder_row_frames * n + encoder_more_frames frames, or
  up to encoder_optional_frames less. 1, 0 and 0: the encoder takes token ids."""
  encoder_more_frames: int
  encoder_optional_frames: int


@dataclasses.dataclass(frozen=True)
class ResidencyInfo:
  """Bytes of a bundle by where they lie. arn_residency."""

  residency: Residency
  """Residency; COPIED after arn_model_open_reader."""
  mapped_bytes: int
  """Mapped from the file; 0: a copy, or the caller's memory."""
  copied_bytes: int
  """Memory owned by the model."""
  resident_bytes: int
  """Of these bytes, in memory as far as this process has touched them."""
  huge_bytes: int
  """Of the resident bytes, in huge pages."""
  locked_bytes: int
  """Locked in memory."""


@dataclasses.dataclass(frozen=True)
class ReplyInfo:
  """Parts that are recognised in a model's replies. arn_reply_info."""

  has_reasoning: bool
  """1: reasoning is recognised."""
  has_calls: bool
  """1: tool calls are recognised."""
  reasoning_begin: str
  """The texts around reasoning, or "". Valid as long as the model."""
  reasoning_end: str


@dataclasses.dataclass(frozen=True)
class MemoryPlan:
  """The bytes that a session takes, by region. arn_memory_plan."""

  weights_bytes: int
  """Of the bundle; read-only, shared, not part of the block."""
  constants_bytes: int
  """Session state, tables, repacked weights."""
  repacked_bytes: int
  """Part of constants_bytes: weights repacked for this CPU."""
  kv_bytes: int
  """Reserved; committed as tokens are added."""
  kv_bytes_per_token: int
  activations_bytes: int
  io_bytes: int
  total_bytes: int
  alignment: int
  """Of the block."""
  context_tokens: int
  """Options after defaults are applied."""
  prefill_chunk: int
  """The most, where a GPU chooses."""
  n_threads: int
  kv_page_tokens: int
  max_sequences: int
  kv_tokens: int
  n_kv_groups: int
  """See Session.plan_group."""
  n_prefill_threads: int
  n_performance_cpus: int
  """Performance CPUs that the process may use."""
  keeps_to_performance_cpus: bool
  """1: there are other CPUs too, and threads stay on the performance CPUs, the calling thread
  during calls. 0: all CPUs are alike, or more threads were requested than there are performance
  CPUs; the system places them."""
  device_bytes: int
  """VULKAN, AUTO, VULKAN_CPU: all buffers on the device: weights, KV pages, activations, logits,
  run parameters, and a staging buffer."""
  copied_bytes: int
  """Residency.COPIED: the model's copy of the bundle, in whole pages. Not part of the block,
  allocated once for all sessions. 0: no copy."""
  constraints_bytes: int
  """Part of io_bytes: constraints, and a copy of the logits for them."""
  snapshots_bytes: int
  """Part of kv_bytes: slots for snapshots of recurrent states."""
  state_snapshots: int
  """Per sequence; 0 without recurrent states, and with no_cache."""
  snapshot_every: int
  speculation_bytes: int
  """Part of io_bytes: the index of n-grams (of each sequence with max_requests), logits of
  guesses, and draft_bytes."""
  max_guesses: int
  """0: no speculation."""
  n_adapters: int
  adapters_bytes: int
  """Part of constants_bytes and activations_bytes: tables of adapters, and rows between two
  matrices."""
  adapter_files_bytes: int
  """Of the adapters' bundles, which are mapped; not part of the block."""
  embeddings_bytes: int
  """Part of io_bytes: of embedding_rows."""
  embedding_rows: int
  draft_bytes: int
  """Part of speculation_bytes: cache, activations and all else of the draft model but its bundle,
  or of the head of Speculate.MTP."""
  draft_weights_bytes: int
  """Of the draft's bundle; not part of the block. Of a head: what weights_bytes has for it
  alone."""
  scheduler_bytes: int
  """Part of io_bytes: requests, their events and texts."""
  max_requests: int
  importable_bytes: int
  """Part of device_bytes: weights in the device's layout (arenite-convert --target vulkan). Where
  the device shares the host's memory and its driver can, it reads them in the bundle's own pages:
  they take no memory of their own then (BackendInfo.imported_bytes)."""


@dataclasses.dataclass(frozen=True)
class KvGroup:
  """A group of layers that share a pool of KV pages. arn_kv_group_info."""

  n_layers: int
  """Layers with their own keys and values."""
  n_kv_heads: int
  head_dim: int
  window: int
  """Tokens that a query attends to, itself included; 0: all."""
  chunk: int
  """A query attends only within its chunk of this many positions; 0: no chunks."""
  page_tokens: int
  n_pages: int
  """Pages in the pool."""
  sequence_pages: int
  """Maximum pages of one sequence."""
  page_bytes: int
  offset: int
  """Offset of the pool in the KV region."""
  n_quantised_pages: int
  """Pages in the pool of quantised pages; 0: none."""
  quantised_page_bytes: int
  quantised_offset: int
  residual: int
  """Most recent tokens, never quantised; 0 without quantised pages."""
  state_bytes: int
  """Bytes per layer; 0: keys and values. Otherwise each page is a slot with the states of one
  sequence, independent of its length: heads, dimension, window, chunk and page_tokens are 0."""
  is_encoder: bool
  """1: cross-attention: a page holds a sequence's encoder output, up to page_tokens rows."""


@dataclasses.dataclass(frozen=True)
class BackendInfo:
  """The backend that computes a session's tokens. arn_backend_info."""

  backend: Backend
  """Backend, never AUTO."""
  name: str
  """"cpu", "reference", "vulkan", "vulkan+cpu"."""
  device: str
  """VULKAN, VULKAN_CPU: device name; else ""."""
  reason: str
  """AUTO, VULKAN_CPU: why it is not Vulkan, or no longer; else ""."""
  kernels: str
  """VULKAN, VULKAN_CPU: text for display: the matmul kernels per weight type for one, few and
  many rows, and whether they were "measured" at creation, "remembered" in device_folder, or are
  "fixed"; else ""."""
  quirks: str
  """VULKAN, VULKAN_CPU: text for display: what is not used because of known bugs of this driver,
  with a source for each; else ""."""
  imported_bytes: int
  """VULKAN, VULKAN_CPU: bytes of weights that the device reads in the bundle's own pages:
  importable_bytes of the plan, or less where the driver takes only some of them; else 0."""


@dataclasses.dataclass(frozen=True)
class KvLayer:
  """A layer whose keys and values can be read. arn_kv_layer_info."""

  n_kv_heads: int
  head_dim: int
  kv_layer: int
  """Layer that owns the keys and values: this layer or an earlier one."""
  first_position: int
  """First position kept for the selected sequence. Earlier ones are dropped: no later token of a
  layer with a window or chunks attends to them."""


@dataclasses.dataclass(frozen=True)
class GenerateResult:
  """Result of a generation. arn_generate_result."""

  n_tokens: int
  """New tokens, without the stop token."""
  finish: Finish
  """Finish."""
  n_logprobs: int
  """Tokens whose log-probabilities are in arn_generate_options.logprobs: the first ones, all of
  them unless its room or the device failed."""


@dataclasses.dataclass(frozen=True)
class ConstraintStats:
  """Cost of a constraint so far. arn_constraint_stats_data."""

  steps: int
  """Tokens read, end tokens included."""
  candidates_tested: int
  """Tokens tested one by one."""
  masks: int
  """Tests of all tokens at once."""
  forced_tokens: int
  """Tokens that were appended without asking the model."""
  compile_ns: int
  p50_ns: int
  p99_ns: int
  p999_ns: int
  max_ns: int
  """Per token."""
  bytes: int
  """Of the block in use."""


@dataclasses.dataclass(frozen=True)
class ConversationResult:
  """How a reply ended, and its counts. arn_conversation_result."""

  finish: Finish
  """Finish: why the reply ended."""
  n_tokens: int
  """Tokens of the reply, without the stop token."""
  n_prompt_tokens: int
  """Tokens before the reply."""
  n_kept: int
  """Part of them that the session had already; the others were computed."""
  n_calls: int
  """Complete tool calls: answer each, then ask for the next reply."""
  n_missing: int
  """Status.CONTEXT_FULL before the reply: tokens that the context lacks."""
  n_dropped: int
  """Messages that drops_oldest removed for this reply."""
  is_added: bool
  """1: the reply has joined the messages."""
  n_logprobs: int
  """Tokens that have log-probabilities, as in GenerateResult."""


@dataclasses.dataclass(frozen=True)
class ConversationInfo:
  """Sizes of a conversation. arn_conversation_info."""

  n_messages: int
  n_tokens: int
  """Of the messages that have been read or written by the model."""
  context_tokens: int
  """Of the session."""
  has_reasoning: bool
  """1: reasoning is recognised."""
  has_calls: bool
  """1: tool calls are recognised."""
  messages_bytes: int
  """Of text_bytes."""
  text_bytes: int


@dataclasses.dataclass(frozen=True)
class CpuCluster:
  """CPUs of one package that are alike. arn_cpu_cluster."""

  cpus: frozenset[int]
  """CPUs that the process may use."""
  n_cpus: int
  capacity: int
  """Relative to the largest CPU, 1024; 0: unknown."""
  max_khz: int
  """0: unknown."""
  is_performance: bool
  """1: at least half of the largest capacity."""


@dataclasses.dataclass(frozen=True)
class SessionCpus:
  """CPUs that a session's threads may run on. arn_session_cpus_data."""

  wanted: frozenset[int]
  """Requested CPUs; none: placed by the system."""
  applied: frozenset[int]
  """Union of the CPUs that the threads may run on now."""
  n_threads: int
  """Threads covered: the session's own and the calling thread, as it was in the last run. 0: the
  backend has none."""
  is_as_wanted: bool
  """1: each thread may run on exactly the CPUs of `wanted`, or the system places them. 0: the
  system has moved some (Android does so with an app in the background)."""


@dataclasses.dataclass(frozen=True)
class ThermalZone:
  """A thermal zone of the device. arn_thermal_zone."""

  millicelsius: int
  """Status.NO_TEMPERATURE: cannot be read now."""
  name: str
  """The kernel's zone type: "cpu-0-0", "battery"."""


@dataclasses.dataclass(frozen=True)
class Stats:
  """Counters of a session. arn_session_stats_data."""

  prefill_tokens: int
  prefill_ns: int
  """Including sleep."""
  decode_tokens: int
  decode_ns: int
  """Including sleep and time in the callback."""
  create_ns: int
  weight_bytes_per_token: int
  """Weights read from memory by one decode step."""
  kv_bytes_read_per_token: int
  """And KV read at the current length."""
  kv_used_bytes: int
  """Pages in use."""
  constants_used_bytes: int
  activations_used_bytes: int
  io_used_bytes: int
  kv_capacity_bytes: int
  """Must equal the plan."""
  prefill_tokens_per_s: float
  decode_tokens_per_s: float
  """From the above; 0: none yet."""
  weight_bytes_read: int
  """All runs; each weight once per run."""
  kv_bytes_read: int
  """Each key, value and state once per run and sequence."""
  paced_ns: int
  """Slept for max_tokens_per_s and thermal throttling."""
  cooled_ns: int
  """Part of it for thermal throttling."""
  energy_uj: int
  """The fields below need sensors = 1; without, they are 0 and Status.NO_TEMPERATURE. Read again
  after 100 ms at the earliest. microjoules of everything that the energy source measures, not
  only this process."""
  energy_ns: int
  """Time, idle or not, covered by energy_uj; gaps where the energy could not be read are
  missing."""
  power_uw: int
  """Microwatts at the last reading; 0: unknown."""
  energy_source: Energy
  """Energy."""
  n_thermal_zones: int
  """Found at creation, see Session.thermal_zone."""
  temperature_mc: int
  """Hottest readable zone in millidegrees Celsius, or Status.NO_TEMPERATURE."""
  hottest_zone: int
  """Its index."""
  thermal_headroom: float
  """Android's; negative: unknown."""
  is_hot: bool
  """1: over the session's thermal limit."""
  energy_name: str
  """Name of the energy source."""
  kv_file_bytes_read: int
  """With kv_file, the part of the cache that did not fit the memory: requested because it was
  missing, in whole OS pages."""
  kv_file_bytes_written: int
  """Of pages that became full, or were quantised, while others were missing; writes by the OS
  itself are not counted."""
  kv_file_wait_ns: int
  """Time that layers waited for reads, beyond the computation."""
  recomputed_tokens: int
  """Run again after a rewind, by Session.follow, for their logits, or beside guesses because of
  recurrent states."""
  n_state_snapshots: int
  """Kept for the selected sequence now; not reset."""
  guess_runs: int
  """Speculation: runs with guesses, the guesses in them, and those that were then chosen. Such a
  run has a row for each guess and one for the token before them."""
  guesses_proposed: int
  guesses_accepted: int
  draft_ns: int
  """Part of decode_ns: of the draft model, which reads prompts too, or of the head of
  Speculate.MTP when it is asked."""


@dataclasses.dataclass(frozen=True)
class Beam:
  """A sequence that a beam search found: its new tokens and its score."""

  ids: list[int]
  score: float


__all__ = [
    "BackendInfo", "Beam", "ConstraintStats", "ConversationInfo", "ConversationResult",
    "CpuCluster", "GenerateResult", "KvGroup", "KvLayer", "MemoryPlan", "ModelInfo", "ReplyInfo",
    "ResidencyInfo", "SessionCpus", "Stats", "ThermalZone"
]
