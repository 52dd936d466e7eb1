"""Options and results. Written by tools/c_api/generate.py from arenite.h: do not edit it.

Zeros of options are the library's defaults.
"""

from __future__ import annotations

import dataclasses
from typing import Optional

from . import _abi
from .enums import *  # noqa: F403

NO_TEMPERATURE = _abi.ARN_NO_TEMPERATURE


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
  """Width of each input frame, two of which make a row; 0: the encoder takes token ids."""
  start_ids: tuple[int, ...]
  self_test_tokens: int
  """Tokens of the device self-test whose logits the bundle contains; 0: none, a CPU computes them
  (SessionOptions.trust_device)."""
  makes_text: int
  """0: no sessions, only embedders (arn_embedder_create)."""
  makes_vectors: int
  """Of texts: arn_embed."""
  makes_scores: int
  """Of pairs of texts: arn_rerank."""


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
class Sampling:
  """Sampling parameters. The defaults are greedy. arn_sampling."""

  temperature: float = 0.0
  """Temperature of the softmax; 0: greedy."""
  top_k: int = 0
  """Keeps the k most likely tokens; 0: off."""
  top_p: float = 1.0
  """Keeps the most likely tokens up to this total probability; 1: off."""
  min_p: float = 0.0
  """Keeps tokens with at least this fraction of the highest probability; 0: off."""
  seed: int = 0
  """Seed of the random numbers: the same seed gives the same tokens for any number of threads."""
  repetition_penalty: float = 1.0
  """Divides the positive logits of the sequence's tokens by this and multiplies the negative
  ones; 1: off."""
  penalty_window: int = 0
  """The most recent tokens, prompt included, that repetition_penalty, frequency_penalty and
  presence_penalty look at; 0: all."""
  frequency_penalty: float = 0.0
  """Subtracted from a token's logit for each time it occurs; 0: off."""
  presence_penalty: float = 0.0
  """Subtracted from a token's logit if it occurs; 0: off."""
  no_repeat_ngram_size: int = 0
  """Forbids tokens that would repeat an n-gram of this many tokens; 0: off."""
  min_new_tokens: int = 0
  """Forbids stop tokens until this many tokens have been generated; 0: off."""
  typical_p: float = 1.0
  """Keeps the tokens whose surprise is nearest to the expected one, up to this total probability;
  1: off."""
  xtc_probability: float = 0.0
  """XTC: probability that of the tokens with at least xtc_threshold all but the least likely are
  removed; 0: off."""
  xtc_threshold: float = 0.1
  """XTC: probability from which on a token may be removed; above 0.5: none."""
  dry_multiplier: float = 0.0
  """DRY: subtracts this * dry_base ^ (n - dry_allowed_length) from tokens that would continue a
  repetition of n tokens; 0: off."""
  dry_base: float = 1.75
  """DRY: growth of the penalty with n."""
  dry_allowed_length: int = 2
  """DRY: repetitions of at least this many tokens are penalised."""
  dry_window: int = 0
  """DRY: the most recent tokens that are searched for repetitions; 0: all."""
  mirostat_tau: float = 0.0
  """Mirostat 2: target of the surprise in bits, kept by cutting off unlikely tokens; 0: off."""
  mirostat_eta: float = 0.1
  """Mirostat 2: learning rate."""
  forced_first: int = -1
  """Token id that is generated first; -1: off."""
  forced_last: int = -1
  """Token id that is generated last, where max_tokens or the context ends; -1: off."""
  bias_ids: tuple[int, ...] = ()
  """Token sequences, separated by -1; the element of bias_values for each is added to the logit
  of its last token where the others precede it."""
  bias_values: tuple[float, ...] = ()
  """A number for each sequence of bias_ids; -inf: it is not generated."""
  bad_words: tuple[int, ...] = ()
  """Token sequences, separated by -1, that are not generated."""
  suppress_tokens: tuple[int, ...] = ()
  """Token ids that are not generated."""
  begin_suppress_tokens: tuple[int, ...] = ()
  """Token ids that are not generated first."""
  dry_breakers: tuple[int, ...] = ()
  """DRY: token ids that no repetition reaches across."""
  top_n_sigma: float = 0.0
  """Keeps tokens within this many standard deviations of the largest logit; 0: off."""
  dry_breaker_sequences: tuple[int, ...] = ()
  """DRY: token sequences, separated by -1, that no repetition reaches across."""


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
class SessionOptions:
  """Options of a session. Zeros are defaults. arn_session_options."""

  backend: Backend = Backend.CPU
  """Backend."""
  kv_type: KvType = KvType.INT8
  """KvType of keys, and of values unless kv_value_type differs."""
  context_tokens: int = 0
  """Per sequence; 0: the model's max_context, at most 4096."""
  prefill_chunk: int = 0
  """Tokens per prefill step; 0: 128."""
  n_threads: int = 0
  """0: the number of performance cores."""
  kv_page_tokens: int = 0
  """A power of two, 8..1024; 0: 32."""
  all_logits: bool = False
  """1: reserves logits for every position of a chunk (Session.prefill_logits)."""
  max_sequences: int = 0
  """0: 1."""
  kv_tokens: int = 0
  """Total KV tokens of all sequences, tokens shared by forks counted once; rounded up to pages.
  0: enough for all sequences to be full."""
  overflow: Overflow = Overflow.STOP
  """Overflow."""
  pinned_tokens: int = 0
  """Overflow.SHIFT: leading tokens that are kept, rounded up to pages."""
  no_cache: bool = False
  """1: every run recomputes all tokens of its sequences (slow: for comparisons)."""
  kv_file: Optional[str] = None
  """If not None: stores the KV pages of full-attention layers in a file of this name, so that a
  cache can be larger than memory: what does not fit is read a layer ahead (Stats has the bytes).
  The session creates the file, sparse, and unlinks it at once: nothing is left behind. The name
  must be unused, and kv_bytes must fit the disk (else Status.DISK_FULL); a disk that fills up
  later ends the process (SIGBUS). Status.UNSUPPORTED if the caller provides the memory."""
  kv_value_type: KvType = KvType.AS_KEYS
  """KvType, or KvType.AS_KEYS."""
  kv_residual: int = 0
  """INT4, INT2: most recent tokens that stay int8; 0: 128."""
  kv_group_size: int = 0
  """INT4, INT2: quantisation group size in tokens (keys) and channels (values), a divisor of
  kv_page_tokens; 0: 32 or a page."""
  encoder_rows: int = 0
  """Models with an encoder: encoder rows reserved per sequence; 0: the model's maximum, for token
  ids at most 512."""
  n_prefill_threads: int = 0
  """For runs with more than one token of a sequence; 0: n_threads."""
  device: Optional[str] = None
  """VULKAN, AUTO, VULKAN_CPU: device number or part of its name; None: the best one. Ignored by
  other backends. Must stay valid until Session.create returns."""
  cpus: Cpus = Cpus.AUTO
  """Cpus With PERFORMANCE and MASK creation fails with Status.UNSUPPORTED if the affinity read
  back differs from the request, or if the backend has no threads."""
  sensors: bool = False
  """1: finds energy counters and thermal zones, for Session.stats. Implied by a thermal limit."""
  cpu_mask: int = 0
  """Cpus.MASK: bit i is CPU i, for the first 64."""
  max_tokens_per_s: float = 0
  """Rate limit: sleeps before decoding more tokens than this per second, over all sequences;
  prompts are not limited. 0: none."""
  thermal_limit_mc: int = 0
  """Thermal limit in millidegrees Celsius; 0: none. Once a thermal zone reaches it, and until all
  zones are 3 degrees cooler, the session sleeps after each run (a token or a prompt chunk).
  Status.UNSUPPORTED if no zone can be read."""
  thermal_headroom: float = 0
  """As thermal_limit_mc for Android's thermal headroom, which is 1 at severe throttling; 0: none.
  Status.UNSUPPORTED if the system has none."""
  thermal_duty_percent: int = 0
  """Share of time spent running while hot, 1 to 99; 0: 50."""
  thermal_zone: Optional[str] = None
  """Uses only zones with this string in their type; None: all. Must stay valid until
  Session.create returns."""
  system_root: Optional[str] = None
  """Directory that contains /sys, for containers; None: "". Must stay valid until Session.create
  returns."""
  trust_device: bool = False
  """0: Session.create tests a GPU: it runs a few tokens several times and compares their logits
  with those in the bundle or, if the bundle has none, with the CPU's. If they differ:
  Status.DEVICE, or the CPU if it is the fallback. Takes memory for the test and releases it. 1:
  no test."""
  device_folder: Optional[str] = None
  """VULKAN, AUTO, VULKAN_CPU: directory of the pipeline cache, for faster creation, and of the
  kernel choice, measured for 0.2 s in total while the first sessions are created. Damaged files
  and files of another device, driver or library are ignored and replaced. If a driver crashes the
  process during a measurement, a marker file makes later sessions refuse it (Status.UNSUPPORTED,
  with the file's name). None: none. Must stay valid until Session.create returns."""
  needs_gpu: bool = False
  """VULKAN, VULKAN_CPU: 1: refuses a software driver (slower than Backend.CPU) unless `device`
  names it: Status.UNSUPPORTED (or the CPU), before anything is compiled. 0: uses it if there is
  no other device. AUTO uses one only if named."""
  activation_bits: int = 0
  """Bits of the activations multiplied with int8 and int4 weights: 8 (or 0) or 16. 16 splits each
  row in two 8-bit parts, multiplied together: with int8 weights only the rounding of the weights
  remains, and prompts take twice as long. CPU and REFERENCE only; VULKAN returns
  Status.UNSUPPORTED."""
  constraint_bytes: int = 0
  """Bytes for each constraint (constrain.h), part of io_bytes; ordinary schemas take less than 1
  MiB. 0: no constraints."""
  max_constraints: int = 0
  """Different constraints at a time; 0: one for each sequence."""
  logits_processors: bool = False
  """1: reserves a row of logits for the options of Sampling that change logits before a token is
  sampled: penalties, biases, suppressed tokens (arn_sampling_option_info.is_processor). Implied
  if the checkpoint's own defaults have some."""
  sampling_words: int = 0
  """Elements reserved per sequence for the lists of Sampling, all lists together; at least as
  many as the checkpoint's own defaults have."""
  state_snapshots: int = 0
  """Snapshots of the recurrent states (Mamba, short convolutions) kept for each sequence, up to
  1024, so that it can be rewound: one every snapshot_every tokens, and one at each Session.mark.
  When all are in use, the older ones thin out. MemoryPlan has their bytes; models without such
  states need none and take none. 0: none."""
  snapshot_every: int = 0
  """0: prefill_chunk; context_tokens or more: only marks."""
  speculation: Speculate = Speculate.NONE
  """Speculate: Session.generate runs guesses of the next tokens beside each token, where that is
  expected to be faster. The tokens, and the random numbers that they take, are those of a session
  without. Status.UNSUPPORTED for layers with a recurrent state, with no_cache, and for a GPU
  without a fallback; while a GPU is in use, and with max_tokens_per_s or a thermal limit, nothing
  is guessed. MemoryPlan.speculation_bytes is what it takes."""
  max_guesses: int = 0
  """Guesses that a run verifies at most, up to 63, less than prefill_chunk; 0: 15."""
  guess_always: int = 0
  """1: verifies every guess there is, whatever it costs: for tests and measurements. 0: those
  that are expected to save time."""
  encoder_kv_type: KvType = KvType.AS_KEYS
  """Models with an encoder: KvType.F32, F16 or INT8 for the keys and values of its output, which
  cross-attention reads; others are Status.UNSUPPORTED. KvType.AS_KEYS: as kv_type and
  kv_value_type, where INT4 and INT2 count as INT8. Ignored by other models."""
  rope_scaling: RopeScaling = RopeScaling.AS_TRAINED
  """RopeScaling: extends max_context by rope_factor, as if config.json had the scaling. Saved
  states and the bundle's prefix are of one scaling only. Status.UNSUPPORTED for models with a
  scaling of their own, frequencies by layer type, learned positions or an encoder, and for
  bundles from before 0.2."""
  rope_factor: float = 0
  """With rope_scaling: above 1, at most 1024; else 0."""
  kv_key_axis: KvAxis = KvAxis.DEFAULT
  """KvAxis of INT4 and INT2, to compare caches: slower than the default. Status.UNSUPPORTED on a
  GPU."""
  kv_value_axis: KvAxis = KvAxis.DEFAULT


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
  """Part of io_bytes: the index of n-grams, and logits of guesses."""
  max_guesses: int
  """0: no speculation."""
  n_adapters: int
  adapters_bytes: int
  """Part of constants_bytes and activations_bytes: tables of adapters, and rows between two
  matrices."""
  adapter_files_bytes: int
  """Of the adapters' bundles, which are mapped; not part of the block."""


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
class BeamOptions:
  """Options of a beam search. arn_beam_options."""

  num_beams: int = 1
  """1 .. max_sequences."""
  num_beam_groups: int = 1
  """Divides num_beams."""
  diversity_penalty: float = 0.0
  """>= 0; 0 with one group."""
  length_penalty: float = 1.0
  """Score = sum of log-probabilities / tokens ^ length_penalty."""
  early_stopping: EarlyStopping = EarlyStopping.FALSE
  """EarlyStopping."""
  num_return_sequences: int = 1
  """1 .. num_beams."""
  max_tokens: int = 0
  """New tokens per sequence; 0: as many as fit the context."""
  ignore_eos: bool = False
  """1: do not stop at stop tokens."""
  extra_eos_ids: tuple[int, ...] = ()
  """Stop tokens besides the model's own; 16 in total at most."""


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
class ConversationOptions:
  """Options of a conversation. arn_conversation_options."""

  tools: Optional[str] = None
  """A JSON array of the tools that the model may call, as the template takes them; None: none.
  This text and the two below are copied."""
  variables: Optional[str] = None
  """A JSON object of further variables of the template: {"enable_thinking": false}; None:
  none."""
  template_name: Optional[str] = None
  """None: "tool_use" if there are tools and such a template, else "default"."""
  text_bytes: int = 0
  """Maximum bytes of all messages as JSON, and of the text that the template makes of them; 0: 8
  for each token of the context, 16 KiB, and twice the tools and variables."""
  arena_bytes: int = 0
  """Maximum memory of one rendering; 0: 8 MiB."""
  max_steps: int = 0
  """Maximum steps of one rendering; 0: 50 million."""
  sequence: int = 0
  """Sequence of the session that the conversation uses."""
  drops_oldest: bool = False
  """What happens when the messages no longer fit. 0: Status.CONTEXT_FULL or Status.OUT_OF_MEMORY.
  1: the oldest turns are dropped, from the first message behind the system's up to the next of
  the user."""


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
  """Run again after a rewind, by Session.follow, or for their logits."""
  n_state_snapshots: int
  """Kept for the selected sequence now; not reset."""
  guess_runs: int
  """Speculation: runs with guesses, the guesses in them, and those that were then chosen. Such a
  run has a row for each guess and one for the token before them."""
  guesses_proposed: int
  guesses_accepted: int


@dataclasses.dataclass(frozen=True)
class Beam:
  """A sequence that a beam search found: its new tokens and its score."""

  ids: list[int]
  score: float


__all__ = [
    "Backend", "BackendInfo", "Beam", "BeamOptions", "ConstraintKind", "ConstraintStats",
    "ConversationInfo", "ConversationOptions", "ConversationResult", "CpuCluster", "Cpus",
    "EarlyStopping", "Energy", "Finish", "GenerateResult", "Hashes", "KvAxis", "KvGroup", "KvLayer",
    "KvType", "MemoryPlan", "ModelInfo", "NO_TEMPERATURE", "Option", "Overflow", "ReplyEvent",
    "ReplyInfo", "Residency", "ResidencyInfo", "RopeScaling", "Sampling", "SessionCpus",
    "SessionOptions", "Speculate", "Stats", "Status", "ThermalZone", "ToolChoice", "Verify"
]
