"""Compares the ctypes structures with the C compiler's layout of arenite.h, and the package's
dataclasses and enums with both: everything in the C API is present, at the same offsets.
"""

import ctypes
import dataclasses
import enum
import json
import sys
import unittest

import support

rest = support.parse_arguments()
sys.path.insert(0, str(support.options.source / "tools/c_api"))

import headers  # noqa: E402
import arenite  # noqa: E402
from arenite import _abi, _functions  # noqa: E402

# Dataclass: its struct, and the omitted fields: counts and pointers that became tuples.
DATACLASSES = {
    arenite.SessionOptions: ("arn_session_options", {"adapters", "n_adapters", "draft"}),
    arenite.Sampling: ("arn_sampling", {
        "n_bias_ids", "n_bias_values", "n_bad_words", "n_suppress_tokens",
        "n_begin_suppress_tokens", "n_dry_breakers", "n_dry_breaker_sequences"}),
    arenite.GenerateResult: ("arn_generate_result", set()),
    arenite.BeamOptions: ("arn_beam_options", {"n_extra_eos_ids"}),
    arenite.ModelInfo: (
        "arn_model_info", {"n_eos_ids", "n_bos_ids", "n_start_ids", "chat_template_bytes"}),
    arenite.AdapterInfo: ("arn_adapter_info", set()),
    arenite.KvGroup: ("arn_kv_group_info", set()),
    arenite.MemoryPlan: ("arn_memory_plan", set()),
    arenite.ResidencyInfo: ("arn_residency", set()),
    arenite.Stats: ("arn_session_stats_data", set()),
    arenite.ConversationOptions: (
        "arn_conversation_options", {"tools_bytes", "variables_bytes", "now"}),
    arenite.ConversationResult: ("arn_conversation_result", set()),
    arenite.ConversationInfo: ("arn_conversation_info", set()),
}
ENUMS = {
    arenite.Status: "ARN_", arenite.KvType: "ARN_KV_", arenite.Overflow: "ARN_OVERFLOW_",
    arenite.Backend: "ARN_BACKEND_", arenite.Verify: "ARN_VERIFY_", arenite.Finish: "ARN_FINISH_",
    arenite.EarlyStopping: "ARN_EARLY_STOPPING_", arenite.Hashes: "ARN_HASHES_",
    arenite.Residency: "ARN_RESIDENCY_", arenite.KvAxis: "ARN_KV_AXIS_",
    arenite.RopeScaling: "ARN_ROPE_",
}


class AbiTest(unittest.TestCase):
  @classmethod
  def setUpClass(cls):
    cls.c = json.loads(support.run(support.options.layout))
    for part in cls.c.values():
      part.pop("")  # the part after the last separator

  def test_structures_lie_as_in_c(self):
    self.assertGreater(len(self.c["structs"]), 15)
    for name, layout in self.c["structs"].items():
      with self.subTest(name):
        struct = getattr(_abi, name)
        seen = {"": [0, ctypes.sizeof(struct)]}
        for field, _ in struct._fields_:
          seen[field] = [getattr(struct, field).offset, getattr(struct, field).size]
        self.assertEqual(layout, seen)

  def test_initial_bytes_are_those_of_the_macros(self):
    self.assertGreater(len(self.c["initial"]), 12)
    for name, expected in self.c["initial"].items():
      with self.subTest(name):
        self.assertEqual(expected, bytes(getattr(_abi, name)()).hex())

  def test_constants_have_the_values_of_c(self):
    self.assertGreater(len(self.c["constants"]), 40)
    for name, value in self.c["constants"].items():
      self.assertEqual(value, getattr(_abi, name), name)

  def test_every_function_is_declared_with_all_its_parameters(self):
    functions = {d.name: d for d in headers.declarations() if d.kind == "function"}
    self.assertEqual(set(functions), set(_functions.FUNCTIONS))
    for name, declaration in functions.items():
      result, arguments = _functions.FUNCTIONS[name]
      self.assertEqual(len(declaration.variables), len(arguments), name)
      self.assertEqual(declaration.returns == "void", result is None, name)

  def test_dataclasses_have_every_field(self):
    for cls, (struct, without) in DATACLASSES.items():
      with self.subTest(struct):
        expected = set(self.c["structs"][struct]) - {"", "struct_size"} - without
        self.assertEqual(expected, {field.name for field in dataclasses.fields(cls)})

  def test_dataclasses_begin_as_the_macros_do(self):
    for cls in (arenite.SessionOptions, arenite.Sampling, arenite.BeamOptions):
      options, struct = cls(), getattr(_abi, DATACLASSES[cls][0])()
      for field in dataclasses.fields(cls):
        value, initial = getattr(options, field.name), getattr(struct, field.name)
        if isinstance(value, tuple):  # a list: a null pointer and its length
          self.assertEqual((), value, field.name)
          self.assertFalse(initial, field.name)
          continue
        if isinstance(value, float):
          value = ctypes.c_float(value).value  # as the struct holds it
        self.assertEqual(initial, value, field.name)

  def test_enums_have_every_name(self):
    statuses = next(d.values for d in headers.declarations(["status.h"]) if d.kind == "enum")
    for cls, prefix in ENUMS.items():
      with self.subTest(cls.__name__):
        assert issubclass(cls, enum.IntEnum)
        names = statuses if cls is arenite.Status else {
            name: value for name, value in self.c["constants"].items()
            if prefix == max((p for p in ENUMS.values() if name.startswith(p)), key=len,
                             default="")}
        self.assertEqual({name[len(prefix):]: value for name, value in names.items()},
                         {item.name: item.value for item in cls})


if __name__ == "__main__":
  support.main(rest)
