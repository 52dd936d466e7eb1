"""Views of the C API's structs and enums for other languages: which exist, their names, and the
kind of each field.
"""

import dataclasses
import re

import headers

# Struct of C: class, description, and whether a program creates and fills it itself.
STRUCTS = {
    "arn_session_options": ("SessionOptions", "Options of a session. Zeros are defaults.", True),
    "arn_sampling": ("Sampling", "Sampling parameters. The defaults are greedy.", True),
    "arn_generate_result": ("GenerateResult", "Result of a generation.", False),
    "arn_beam_options": ("BeamOptions", "Options of a beam search.", True),
    "arn_model_info": ("ModelInfo", "Contents of a bundle.", False),
    "arn_residency": ("ResidencyInfo", "Bytes of a bundle by where they lie.", False),
    "arn_memory_plan": ("MemoryPlan", "The bytes that a session takes, by region.", False),
    "arn_kv_group_info": ("KvGroup", "A group of layers that share a pool of KV pages.", False),
    "arn_session_stats_data": ("Stats", "Counters of a session.", False),
    "arn_backend_info": ("BackendInfo", "The backend that computes a session's tokens.", False),
    "arn_session_cpus_data": ("SessionCpus", "CPUs that a session's threads may run on.", False),
    "arn_cpu_cluster": ("CpuCluster", "CPUs of one package that are alike.", False),
    "arn_thermal_zone": ("ThermalZone", "A thermal zone of the device.", False),
    "arn_reply_info": ("ReplyInfo", "Parts that are recognised in a model's replies.", False),
    "arn_constraint_stats_data": ("ConstraintStats", "Cost of a constraint so far.", False),
    "arn_conversation_options": ("ConversationOptions", "Options of a conversation.", True),
    "arn_conversation_result": ("ConversationResult", "How a reply ended, and its counts.", False),
    "arn_conversation_info": ("ConversationInfo", "Sizes of a conversation.", False),
    "arn_kv_layer_info": ("KvLayer", "A layer whose keys and values can be read.", False),
}
# Structs that are classes in Java alone: Python's classes of skills have their fields as arguments
# and attributes.
SKILLS = {
    "arn_embed_info": ("EmbedInfo", "Description of what a model makes of texts.", False),
    "arn_embed_options": ("EmbedOptions", "Options of an embedder. Zeros are defaults.", True),
    "arn_embed_plan_data": ("EmbedPlan", "The bytes that an embedder takes, by region.", False),
    "arn_embed_counts": ("EmbedCounts", "Counts of an embedder's last call.", False),
    "arn_image_info": ("ImageInfo", "How a model takes images.", False),
    "arn_image_layout": ("ImageLayout", "Layout of an image of some size.", False),
    "arn_image_options": ("ImageOptions", "Options of an image encoder. Zeros are defaults.", True),
    "arn_image_plan_data": ("ImagePlan", "The bytes that an image encoder takes, by region.",
                            False),
    "arn_image_counts": ("ImageCounts", "Counts of the last image.", False),
    "arn_transcribe_info": ("TranscribeInfo", "Description of what a model makes of speech.",
                            False),
    "arn_transcribe_options": ("TranscribeOptions", "Options of a transcription.", True),
    "arn_transcribe_result": ("TranscribeResult", "Result and counts of a transcription.",
                              False),
}
# Named numbers, and the Java class that holds them.
NUMBERS = {"ARN_NO_TEMPERATURE": "Stats"}
# Names of enums that their prefix does not give.
_ENUM_NAMES = {"ARN_": "Status", "ARN_KV_": "KvType", "ARN_CONSTRAINT_": "ConstraintKind",
               "ARN_ROPE_": "RopeScaling"}
_FLAGS = ("ARN_TOKENIZE_", "ARN_DETOKENIZE_")  # booleans in other languages
# Integers of C that are booleans.
_YES_OR_NO = {
    "all_logits", "half_products", "no_cache", "ignore_eos", "has_weights", "has_tokenizer",
    "do_sample", "is_encoder", "keeps_to_performance_cpus", "sensors", "is_hot", "trust_device",
    "needs_gpu", "is_performance", "is_as_wanted", "has_reasoning", "has_calls",
    "logits_processors", "drops_oldest", "is_added", "is_normalized", "has_instruction",
    "can_translate", "translate", "condition_on_previous", "has_word_times", "no_timestamps",
    "makes_text", "makes_vectors", "makes_scores",
}
# Integers of C that hold an enum: its class.
_ENUM_FIELDS = {
    "kv_type": "KvType", "kv_value_type": "KvType", "encoder_kv_type": "KvType",
    "overflow": "Overflow",
    "kv_key_axis": "KvAxis", "kv_value_axis": "KvAxis",
    "speculation": "Speculate", "rope_scaling": "RopeScaling", "backend": "Backend",
    "finish": "Finish", "early_stopping": "EarlyStopping", "cpus": "Cpus",
    "energy_source": "Energy", "residency": "Residency",
}


@dataclasses.dataclass
class Enum:
  name: str
  prefix: str
  values: dict[str, int]  # names without the prefix


@dataclasses.dataclass
class Field:
  name: str
  kind: str  # "bool", "u32", "i32", "u64", "i64", "float", "double", "text", "chars", "ids",
             # "floats", "cpus"
  initial: str  # as in the INIT macro
  comment: str
  enum: str  # its class, or ""


_KINDS = {
    "uint32_t": "u32", "int32_t": "i32", "uint64_t": "u64", "int64_t": "i64", "size_t": "u64",
    "float": "float", "double": "double", "const char*": "text", "char": "chars",
    "const uint32_t*": "ids", "const int32_t*": "ids", "const float*": "floats",
}

# Set by the bindings' own code.
_BY_HAND = ("const arn_chat_time*", "const arn_adapter* const*", "const arn_model*",
            "arn_segment_callback", "arn_transcribe_progress", "void*")
# Java's transcribers have no words.
_LEFT_OUT = {("arn_transcribe_options", "words")}


def enums(found):
  """Returns every enum that is not a set of flags."""
  made = []
  for d in found:
    if d.kind == "enum":
      names = list(d.values)
      if len(names) == 1:
        continue  # a named number
      prefix = "ARN_" if names[0] == "ARN_OK" else _common_prefix(names)
      if prefix not in _FLAGS:
        name = _ENUM_NAMES.get(prefix) or "".join(
            word.capitalize() for word in prefix[4:-1].split("_"))
        made.append(Enum(name, prefix, {n[len(prefix):]: v for n, v in d.values.items()}))
  return made


def _common_prefix(names):
  prefix = names[0]
  while not all(name.startswith(prefix) for name in names) or not prefix.endswith("_"):
    prefix = prefix[:-1]
  return prefix


def fields(struct, initial):
  """Returns a struct's fields without struct_size and without the counts of arrays."""
  counts = {"n_" + v.name for v in struct.variables if v.type.endswith("*")}
  counts |= {v.name + "_bytes" for v in struct.variables if v.type == "const char*"}
  made = []
  for v, word in zip(struct.variables[1:], initial.initial, strict=True):
    if v.name in counts:
      continue
    if v.type in _BY_HAND or (struct.name, v.name) in _LEFT_OUT:
      continue
    kind = "bool" if v.name in _YES_OR_NO else _KINDS[v.type]
    if v.elements == "ARN_CPU_WORDS":
      kind = "cpus"
    elif v.elements and kind != "chars":
      raise ValueError(f"{struct.name}.{v.name}: unsupported array")
    comment = re.sub(r"^\.\.\. |,? \.\.\.$", "", v.comment)
    enum = _ENUM_FIELDS.get(v.name, "") if kind == "u32" else ""
    made.append(Field(v.name, kind, word, comment, enum))
  return made


def structs(chosen=STRUCTS):
  """Returns (struct of C, its fields) for each of `chosen`, in header order."""
  found = headers.declarations()
  initial = {d.name: d for d in found if d.kind == "init"}
  return [(d.name, fields(d, initial[d.name])) for d in found
          if d.kind == "struct" and d.name in chosen]
