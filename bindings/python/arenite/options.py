"""Options, whose zeros are the library's defaults; and all of results.py.

Written by tools/c_api/generate.py from arenite.h: do not edit it.
"""

from __future__ import annotations

import dataclasses
from typing import Optional

from . import _abi
from .enums import *  # noqa: F403
from .results import *  # noqa: F403
from .results import __all__ as _results

NO_TEMPERATURE = _abi.ARN_NO_TEMPERATURE


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
class SessionOptions:
  """Options of a session. Zeros are defaults. arn_session_options."""

  backend: Backend = Backend.CPU
  """Backend."""
  kv_type: KvType = KvType.INT8
  """KvType of keys, and of values unless kv_value_type differs."""
  context_tokens: int = 0
  """Per sequence; 0: the model's max_context, at most 4096."""
  prefill_chunk: int = 0
  """Tokens per prefill step; 0: 128. On a GPU, without all_logits and speculation, 0: up to 512,
  as the device wants."""
  n_threads: int = 0
  """0: the number of performance cores."""
  kv_page_tokens: int = 0
  """A power of two, 8..1024; 0: 32, with INT4 keys 64."""
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
  kv_page_tokens; 0: its default or a page."""
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
  """Speculate: Session.generate, and the steps of a scheduler, run guesses of the next tokens
  beside each token, where that is expected to be faster. The tokens, and the random numbers that
  they take, are those of a session without. Status.UNSUPPORTED with no_cache, with INT4 or INT2
  KV beside layers with a recurrent state, and for a GPU without a fallback; while a GPU is in
  use, and with max_tokens_per_s or a thermal limit, nothing is guessed.
  MemoryPlan.speculation_bytes is what it takes."""
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
  embedding_rows: int = 0
  """Embeddings of images that the sequences may hold at a time (Session.prefill_embeddings).
  MemoryPlan has their bytes."""
  max_requests: int = 0
  """Requests that a scheduler of this session takes at a time, those that wait included
  (scheduler.h); 0: it has none. Status.UNSUPPORTED for models with an encoder, and with no_cache
  or another overflow than STOP. MemoryPlan.scheduler_bytes is what it takes."""
  half_products: bool = False
  """VULKAN, AUTO, VULKAN_CPU: 1: matmuls of prompts with f16 and bf16 weights may multiply in f16
  on a GPU that has such arithmetic, if that measures faster (device_folder). Sums of 32 products
  go on in f32; a matmul's outputs are off by less than a thousandth (root mean square). 0: all in
  f32. Other weights and backends ignore it."""


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


__all__ = [
    "Backend", "BeamOptions", "ConstraintKind", "ConversationOptions", "Cpus", "EarlyStopping",
    "Energy", "Finish", "Hashes", "KvAxis", "KvType", "NO_TEMPERATURE", "Option", "Overflow",
    "ReplyEvent", "RequestEvent", "RequestState", "Residency", "RopeScaling", "Sampling",
    "SessionOptions", "Speculate", "Status", "ToolChoice", "Verify"
]
__all__ += _results
