"""Writes the checkpoints of tests/golden/data/pooled_text, for tests that run without NumPy."""

import json
import pathlib
import shutil

from speech_checkpoint import write_tensors

ROOT = pathlib.Path(__file__).resolve().parents[2]


def write_pooled_checkpoint(folder, name):
  """Writes a case of data/pooled_text to a new folder. Returns the case."""
  case = json.loads((ROOT / f"tests/golden/data/pooled_text/{name}.json").read_text())
  folder.mkdir()
  (folder / "config.json").write_text(json.dumps(case["config"]))
  for file, content in case["files"].items():
    (folder / file).parent.mkdir(exist_ok=True)
    (folder / file).write_text(json.dumps(content))
  shutil.copy(ROOT / case["tokenizer"], folder / "tokenizer.json")
  write_tensors(case, folder)
  return case
