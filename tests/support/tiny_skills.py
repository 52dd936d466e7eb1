#!/usr/bin/env python3
"""Writes a tiny checkpoint of each skill of docs/skills.md, with random numbers, and something
to try it on.

usage: tiny_skills.py DIR

DIR/embedder, DIR/reranker, DIR/eyes (images), DIR/ears (speech), DIR/style (an adapter of
models/fable/fable-2m); DIR/notes.txt, DIR/cat.png, DIR/talk.wav. They show which commands and files
there are; what such models say means nothing.
"""

import json
import pathlib
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/support"), str(ROOT / "tests/bindings")]

from adapter_files import write_adapter  # noqa: E402
from pooled_checkpoint import write_pooled_checkpoint  # noqa: E402
from speech_checkpoint import signal, wav, write_checkpoint  # noqa: E402
from vision_checkpoint import golden_image, png, write_vision_checkpoint  # noqa: E402

NOTES = "The keys are in the drawer.\nThe hen lays eggs.\nCall the dentist on Monday.\n"


def main():
  if len(sys.argv) != 2:
    sys.exit("usage: tiny_skills.py DIR")
  folder = pathlib.Path(sys.argv[1])
  folder.mkdir(parents=True)  # a folder that exists is left alone
  write_pooled_checkpoint(folder / "embedder", "prompts")
  write_pooled_checkpoint(folder / "reranker", "pairs")
  write_vision_checkpoint(folder / "eyes")
  speech = json.loads((ROOT / "tests/golden/data/speech/multilingual.json").read_text())
  write_checkpoint(speech, folder / "ears")
  shutil.copy(ROOT / "tests/unit/text/data/byte_level_added/tokenizer.json", folder / "ears")
  write_adapter(folder / "style", ROOT / "models/fable/fable-2m", seed=1)
  (folder / "notes.txt").write_text(NOTES)
  (folder / "cat.png").write_bytes(png(golden_image(64, 40)))
  (folder / "talk.wav").write_bytes(wav(signal(32000)))


if __name__ == "__main__":
  main()
