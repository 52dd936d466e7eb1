"""A small model that writes speech down, and forms for its endpoints."""

import json
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))

from speech_checkpoint import signal, wav, write_checkpoint  # noqa: E402, F401

BOUNDARY = "----arenite-test-boundary"


def form(fields, file=None, name="file"):
  """Returns a multipart form; a value that is a list is sent once for each of its items."""
  parts = []
  for key, value in fields.items():
    for one in value if isinstance(value, list) else [value]:
      parts.append(f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n'
                   f"{one}\r\n".encode())
  if file is not None:
    parts.append(f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"; '
                 f'filename="a.wav"\r\nContent-Type: audio/wav\r\n\r\n'.encode() + file + b"\r\n")
  return b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()


def convert(converter, folder, name):
  """Converts the checkpoint of a golden, with a small tokenizer; returns bundle and golden."""
  case = json.loads((ROOT / f"tests/golden/data/speech/{name}.json").read_text())
  write_checkpoint(case, folder / name)
  shutil.copy(ROOT / "tests/unit/text/data/byte_level_added/tokenizer.json", folder / name)
  bundle = folder / f"{name}.arn"
  subprocess.run([converter, folder / name, "-o", bundle, "--weights", "f32"], check=True,
                 capture_output=True)
  return bundle, case
