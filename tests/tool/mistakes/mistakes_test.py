#!/usr/bin/env python3
"""Makes common mistakes on the command line and compares the messages with mistakes.json, from
which docs/mistakes.md is made.

usage: mistakes_test.py ARENITE CONVERTER CHECKPOINT [--update]

mistakes.json has for each mistake its title, the command line, the message and a score from 1 to 5:
does it say what is wrong, where, and what to do next? --update writes the messages that the
programs print now; scores are a reader's and stay.
"""

import json
import os
import pathlib
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
DATA = HERE / "mistakes.json"
PAGE = ROOT / "docs/mistakes.md"
LEAST_MEAN = 4.5
LEAST_CASES = 80

HEAD = """\
# Mistakes and their messages

What the programs answer to {n} common mistakes. Each message is scored from 1 to 5: does it say
what is wrong, where, and what to do next? The mean is {mean:.2f}.

Written by `tests/tool/mistakes/mistakes_test.py --update`, which makes each of them.
"""


def quantise(path):
  """Makes the first matrix of a layer FP8, with one scale; its values do not matter."""
  file = path.read_bytes()
  (size,) = struct.unpack("<Q", file[:8])
  header, data = json.loads(file[8:8 + size]), file[8 + size:]
  name = next(n for n in header if n.endswith("_proj.weight"))
  tensors = {name + "_scale_inv": ("F32", [1], bytes(4))}
  for key, tensor in header.items():
    if key != "__metadata__":
      tensors[key] = (tensor["dtype"], tensor["shape"], data[slice(*tensor["data_offsets"])])
  _, shape, values = tensors.pop(name)
  tensors[name] = ("F8_E4M3", shape, values[::2])
  header, data = {}, b""
  for key, (dtype, shape, values) in tensors.items():
    header[key] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data),
                                                                    len(data) + len(values)]}
    data += values
  text = json.dumps(header).encode()
  path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def prepare(folder, converter, checkpoint):
  """Makes the files that the command lines name."""
  subprocess.run([converter, checkpoint, "-o", folder / "story.arn", "--weights", "int8", "--name",
                  "story", "--quiet"], check=True, timeout=300)
  subprocess.run([converter, checkpoint, "-o", folder / "ids.arn", "--no-tokenizer", "--name",
                  "ids", "--quiet"], check=True, timeout=300, stderr=subprocess.DEVNULL)
  bundle = (folder / "story.arn").read_bytes()
  (folder / "cut.arn").write_bytes(bundle[:100000])
  (folder / "tiny.arn").write_bytes(bundle[:6])
  damaged = bytearray(bundle)
  damaged[len(bundle) // 2] ^= 1
  (folder / "damaged.arn").write_bytes(damaged)
  (folder / "empty.arn").write_bytes(b"")
  (folder / "page.arn").write_text("<!DOCTYPE html><html><title>Sign in</title></html>")
  (folder / "pointer.arn").write_text(
      "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
  (folder / "model.gguf").write_bytes(b"GGUF\3\0\0\0" + bytes(56))
  (folder / "notes.txt").write_text(
      "Not a model, only a text that is long enough to be a header.\n")
  (folder / "key.pem").write_text("not a key\n")
  (folder / "tools.json").write_text("[{]")
  (folder / "nothing.txt").write_text("")
  (folder / "photos").mkdir()
  shutil.copytree(checkpoint, folder / "fable")
  subprocess.run([converter, checkpoint, "-o", folder / "parts.arn", "--split", "1M", "-q"],
                 check=True, timeout=300)
  (folder / "parts-00002-of-00003.arn").unlink()
  (folder / "pickle").mkdir()
  shutil.copy(checkpoint / "config.json", folder / "pickle")
  with zipfile.ZipFile(folder / "pickle/pytorch_model.bin", "w") as archive:
    archive.writestr("archive/data.pkl", b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00true\x85R.")
  shutil.copytree(folder / "pickle", folder / "cut")
  with open(folder / "cut/pytorch_model.bin", "rb+") as file:
    file.truncate(60)
  config = json.loads((checkpoint / "config.json").read_text())
  for name, change in {
      "unheard": {"architectures": ["UnheardForCausalLM"], "model_type": "unheard"},
      "packed": {"quantization_config": {"quant_method": "fp8"}},
      "quantised": {"quantization_config": {"quant_method": "quanto"}},
      "odd": {"rope_scaling": {"rope_type": "strange", "factor": 2.0}},
  }.items():
    shutil.copytree(checkpoint, folder / name)
    (folder / name / "config.json").write_text(json.dumps({**config, **change}))
  quantise(folder / "packed/model.safetensors")
  shutil.copytree(checkpoint, folder / "broken")
  (folder / "broken/config.json").write_text('{"hidden_size": 64,\n "layers": }\n')
  shutil.copytree(checkpoint, folder / "half")
  tensors = (checkpoint / "model.safetensors").read_bytes()
  (folder / "half/model.safetensors").write_bytes(tensors[:len(tensors) // 2])
  shutil.copytree(checkpoint, folder / "wordless")
  (folder / "wordless/tokenizer.json").unlink()


def run(case, programs, folder):
  """Returns the exit code and the last line on stderr."""
  words = shlex.split(case["call"])
  stdin = case.get("stdin", "").encode()
  environment = {k: v for k, v in os.environ.items() if k not in ("TERM", "NO_COLOR")}
  environment.update(COLUMNS="100", HOME=str(folder))
  result = subprocess.run([programs[words[0]], *words[1:]], cwd=folder, input=stdin, timeout=120,
                          env=environment, capture_output=True)
  lines = result.stderr.decode().strip().splitlines()
  return result.returncode, lines[-1] if lines else ""


def shape(message):
  """The message without numbers, hashes and tensors, which change with formats and machines."""
  message = re.sub(r"\b[0-9a-f]{12,}\b", "#", message)
  message = re.sub(r"\blayers\.\d+\.[a-z_.]+", "TENSOR", message)
  return re.sub(r"\d+(\.\d+)?( [kMGT]?B\b)?", "#", message)


def page(cases):
  mean = sum(case["score"] for case in cases) / len(cases)
  text = HEAD.format(n=len(cases), mean=mean)
  for group in dict.fromkeys(case["group"] for case in cases):
    text += f"\n## {group}\n"
    for case in cases:
      if case["group"] != group:
        continue
      call = case["call"]
      if "stdin" in case:
        call = "printf %s | %s" % (shlex.quote(case["stdin"].replace("\n", "\\n")), call)
      text += f"\n{case['title']} ({case['score']}):\n\n```\n$ {call}\n{case['message']}\n```\n"
  return text


def main():
  arguments = [a for a in sys.argv[1:] if a != "--update"]
  programs = {"arenite": arguments[0], "arenite-convert": arguments[1]}
  cases = json.loads(DATA.read_text())
  update, problems = "--update" in sys.argv, []
  with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    prepare(folder, arguments[1], pathlib.Path(arguments[2]).resolve())
    for case in cases:
      code, message = run(case, programs, folder)
      if code == 0 and not case.get("succeeds"):
        problems.append(f"{case['call']}: succeeds")
      if update:
        case["message"] = message
        case.setdefault("score", 0)
      elif shape(message) != shape(case["message"]):
        problems.append(f"{case['call']}\n  expected: {case['message']}\n  found:    {message}")
  if update:
    DATA.write_text(json.dumps(cases, indent=1, ensure_ascii=False) + "\n")
    PAGE.write_text(page(cases))
  elif PAGE.read_text() != page(cases):
    problems.append(f"{PAGE}: is out of date: run mistakes_test.py --update")
  mean = sum(case["score"] for case in cases) / len(cases)
  if len(cases) < LEAST_CASES:
    problems.append(f"{len(cases)} mistakes, expected {LEAST_CASES}")
  if not update and mean < LEAST_MEAN:
    problems.append(f"the mean score is {mean:.2f}, expected {LEAST_MEAN}")
  print("\n".join(problems))
  return 1 if problems else 0


if __name__ == "__main__":
  sys.exit(main())
