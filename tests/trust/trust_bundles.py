"""Makes the bundles that the tests of this folder share, one of each kind, in a few seconds."""

import array
import json
import math
import pathlib
import shutil
import struct
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests" / folder) for folder in ("support", "bindings", "serve")]

from adapter_files import write_adapter  # noqa: E402
from speech_checkpoint import write_checkpoint  # noqa: E402
from vision_checkpoint import write_vision_checkpoint  # noqa: E402

CHECKPOINT = ROOT / "models/fable/fable-2m"


def convert(converter, *arguments):
  subprocess.run([str(converter), *map(str, arguments), "--quiet"], check=True, timeout=300)


def wav(n_samples):
  """A sound of 16 bits and 16,000 Hz: half a second of a tone is 8,000 samples."""
  data = array.array("h", (int(9000 * math.sin(0.05 * i)) for i in range(n_samples))).tobytes()
  return (b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " + struct.pack("<I", 16) +
          struct.pack("<HHIIHH", 1, 1, 16000, 32000, 2, 16) + b"data" +
          struct.pack("<I", len(data)) + data)


def write_tiny_checkpoint(folder):
  """A checkpoint that converts in a tenth of a second: a decoder of bytes, with a template."""
  write_vision_checkpoint(folder, "whole")


def make_bundles(converter, folder):
  """Writes text.arn with text.lora.arn, vectors.arn, speech.arn and image.arn."""
  folder = pathlib.Path(folder)
  convert(converter, CHECKPOINT, "-o", folder / "text.arn", "--weights", "int8")
  convert(converter, CHECKPOINT, "-o", folder / "vectors.arn", "--weights", "int8", "--pooling",
          "mean")
  write_adapter(folder / "lora", CHECKPOINT, 7)
  convert(converter, CHECKPOINT, "--lora", folder / "lora", "--base", folder / "text.arn", "-o",
          folder / "text.lora.arn")
  case = json.loads((ROOT / "tests/golden/data/speech/multilingual.json").read_text())
  write_checkpoint(case, folder / "speech")
  shutil.copy(ROOT / "tests/unit/text/data/byte_level_added/tokenizer.json", folder / "speech")
  convert(converter, folder / "speech", "-o", folder / "speech.arn", "--weights", "int8")
  write_vision_checkpoint(folder / "image")
  convert(converter, folder / "image", "-o", folder / "image.arn", "--weights", "f32")
