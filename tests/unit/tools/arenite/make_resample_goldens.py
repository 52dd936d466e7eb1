#!/usr/bin/env python3
"""Writes data/resample.json: sounds resampled by torchaudio.

usage: make_resample_goldens.py OUT.json      (needs torchaudio, and NumPy for torch)
"""

import array
import json
import math
import sys

import torch
from torchaudio.functional import resample

# Rates from and to, and the number of samples. Common ones, one up, one without a common divisor.
CASES = [(44100, 16000, 700), (48000, 16000, 301), (8000, 16000, 90), (22050, 16000, 250),
         (96000, 16000, 600), (16001, 16000, 120), (44100, 16000, 1)]


def signal(count):
  """Two tones and a click, in f32."""
  out = array.array(
      "f", (0.4 * math.sin(0.11 * i) + 0.2 * math.sin(1.9 * i + 1) for i in range(count)))
  out[count // 2] += 0.5
  return out


def main():
  cases = []
  for before, after, count in CASES:
    # In f64: torchaudio computes its weights in the type of the samples.
    found = resample(torch.tensor(list(signal(count)), dtype=torch.float64), before, after)
    cases.append({"from": before, "to": after, "samples": count,
                  "resampled": [float(f"{x:.8g}") for x in found.tolist()]})
  with open(sys.argv[1], "w", encoding="utf-8") as file:
    json.dump(cases, file, indent=None, separators=(",", ":"))
    file.write("\n")


if __name__ == "__main__":
  main()
