"""Writes adapters as PEFT saves them, of random numbers, for the tests of the bindings."""

import json
import random
import struct


def write_safetensors(path, tensors):
  """tensors: name to (shape, floats)."""
  header, data = {}, b""
  for name, (shape, values) in tensors.items():
    packed = struct.pack(f"<{len(values)}f", *values)
    header[name] = {"dtype": "F32", "shape": shape,
                    "data_offsets": [len(data), len(data) + len(packed)]}
    data += packed
  text = json.dumps(header).encode()
  path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def shapes_of(path):
  with open(path, "rb") as file:
    header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
  return {name: entry["shape"] for name, entry in header.items() if name != "__metadata__"}


def write_adapter(folder, checkpoint, seed):
  """Writes an adapter of rank 2 of all q and down projections, as PEFT does."""
  folder.mkdir()
  numbers, rank, tensors = random.Random(seed), 2, {}
  for name, shape in shapes_of(checkpoint / "model.safetensors").items():
    if not name.endswith(("q_proj.weight", "down_proj.weight")):
      continue
    module = "base_model.model." + name[:-len(".weight")]
    for part, size in (("lora_A", [rank, shape[1]]), ("lora_B", [shape[0], rank])):
      values = [numbers.uniform(-0.2, 0.2) for _ in range(size[0] * size[1])]
      tensors[f"{module}.{part}.weight"] = (size, values)
  assert tensors
  write_safetensors(folder / "adapter_model.safetensors", tensors)
  (folder / "adapter_config.json").write_text(
      json.dumps({"peft_type": "LORA", "r": rank, "lora_alpha": 3, "bias": "none"}))
