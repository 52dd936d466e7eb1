"""Writes the checkpoints of tests/golden/data/speech, for tests that run without NumPy."""

import array
import json
import math
import struct

MASK = (1 << 64) - 1


def signal(count):
  """The formula of tests/unit/audio/signal.h."""
  out, state = array.array("f"), 0
  for i in range(count):
    state = (state * 6364136223846793005 + 1442695040888963407) & MASK
    t = i / 16000.0
    tone = math.sin(2 * math.pi * (150.0 * t + 700.0 * t * t % 1.0)) * math.sin(3.0 * t)
    out.append(0.3 * tone + 0.02 * ((state >> 40) / (1 << 23) - 1.0))
  return out


def wav(samples, rate=16000):
  """Returns a WAV file of floats."""
  data = array.array("f", samples).tobytes()
  chunk = struct.pack("<HHIIHH", 3, 1, rate, 4 * rate, 4, 32)
  return (b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " + struct.pack("<I", 16) +
          chunk + b"data" + struct.pack("<I", len(data)) + data)


def values(name, count, base_seed, amplitude):
  """The formula of tests/support/tiny_checkpoint.h."""
  seed = 0xCBF29CE484222325
  for byte in name.encode():
    seed = ((seed ^ byte) * 0x100000001B3) & MASK
  state, out = seed ^ base_seed, array.array("f")
  amplitude = struct.unpack("f", struct.pack("f", amplitude))[0]
  tenth = struct.unpack("f", struct.pack("f", 0.1))[0]
  is_scale = name.endswith(("norm.weight", "Norm.weight"))
  for _ in range(count):
    state = (state + 0x9E3779B97F4A7C15) & MASK
    z = ((state ^ state >> 30) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
    unit = (((z ^ z >> 31) >> 40) - (1 << 23)) / (1 << 23)
    out.append(1 + unit * tenth if is_scale else unit * amplitude)
  return out


def write_tensors(case, folder):
  """Writes model.safetensors of a golden's case."""
  header, data = {}, b""
  for name, shape in sorted(case["tensors"].items()):
    made = values(name, math.prod(shape), case["base_seed"], case["amplitude"]).tobytes()
    header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data + made)]}
    data += made
  text = json.dumps(header).encode()
  text += b" " * (-len(text) % 8)
  (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_checkpoint(case, folder):
  """Writes a case of data/speech, without a tokenizer, to a new folder."""
  folder.mkdir()
  (folder / "config.json").write_text(json.dumps(case["config"]))
  (folder / "generation_config.json").write_text(json.dumps(case["generation"]))
  write_tensors(case, folder)
