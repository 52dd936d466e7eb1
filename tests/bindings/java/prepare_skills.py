"""Writes the input of the Java tests of skills into a folder: bundles of small checkpoints, and
text files with what transformers makes of them (tests/golden/data), or the command.
"""

import argparse
import base64
import json
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/support"))

from pooled_checkpoint import write_pooled_checkpoint  # noqa: E402
from speech_checkpoint import signal, wav, write_checkpoint  # noqa: E402
from vision_checkpoint import write_vision_checkpoint  # noqa: E402


def words(values):
  return " ".join(map(str, values))


def write_lines(path, lines):
  path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def run(*command):
  return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True,
                        stderr=subprocess.DEVNULL).stdout


class Preparation:
  def __init__(self, bin_folder, out):
    self.bin, self.out = bin_folder, out
    self.checkpoints = out / "checkpoints"
    shutil.rmtree(self.checkpoints, ignore_errors=True)
    self.checkpoints.mkdir(parents=True)

  def convert(self, folder, name):
    run(self.bin / "arenite-convert", folder, "-o", self.out / f"{name}.arn", "--weights", "f32")

  def texts(self):
    """text|vector, and after a line with the query text|score."""
    for name, golden in (("vectors", "prompts"), ("scores", "pairs")):
      folder = self.checkpoints / name
      case = write_pooled_checkpoint(folder, golden)
      self.convert(folder, name)
      rows = [f"{text}|{words(row)}" for text, row in zip(case["texts"], case["logits"])]
      write_lines(self.out / f"{name}.txt", ([case["query"]] if name == "scores" else []) + rows)

  def images(self):
    """Sizes; ids of the prompt; greedy ids; then every fifth float of each embedding."""
    folder = self.checkpoints / "images"
    case = write_vision_checkpoint(folder)
    self.convert(folder, "images")
    write_lines(self.out / "images.txt",
                [words(n for size in case["images"] for n in size), words(case["prompt"]),
                 words(case["greedy"])] + [words(row) for row in case["embeddings"]])

  def speech(self):
    """samples|given|language|translate|timestamps|windows|start end ids;start end ids .., then the
    segments' texts in base64 as the command writes them; and the samples as floats."""
    folder = self.checkpoints / "speech"
    case = json.loads((ROOT / "tests/golden/data/speech/multilingual.json").read_text())
    write_checkpoint(case, folder)
    shutil.copy(ROOT / "tests/unit/text/data/byte_level_added/tokenizer.json", folder)
    self.convert(folder, "speech")
    samples = signal(max(run["samples"] for run in case["runs"]))
    (self.out / "samples.raw").write_bytes(samples.tobytes())
    lines = []
    for given in case["runs"]:
      segments = ";".join(words([s["start"], s["end"], *s["ids"]]) for s in given["segments"])
      lines.append("|".join([str(given["samples"]), given["given"], given["language"],
                             str(given["translate"]).lower(), str(given["timestamps"]).lower(),
                             str(given["windows"]), segments]))
    sound = self.checkpoints / "sound.wav"
    sound.write_bytes(wav(samples))
    written = json.loads(run(self.bin / "arenite", "transcribe", self.out / "speech.arn", sound,
                             "--format", "json", "--quiet"))
    texts = [base64.b64encode(s["text"].encode()).decode() for s in written["segments"]]
    write_lines(self.out / "speech.txt", [*lines, words(texts)])


def main():
  parser = argparse.ArgumentParser()
  for name in ("bin", "out"):
    parser.add_argument("--" + name, type=pathlib.Path, required=True)
  parser.add_argument("--without", nargs="*", default=[], choices=["images", "speech"])
  given = parser.parse_args()
  preparation = Preparation(given.bin, given.out)
  preparation.texts()
  for name in ("images", "speech"):
    if name not in given.without:
      getattr(preparation, name)()


if __name__ == "__main__":
  main()
