#!/usr/bin/env python3
"""Writes data/log_mel.json: log-mel features of transformers' WhisperFeatureExtractor for the
signal of signal.h, at some frames and bands.

  make_log_mel_goldens.py [--check]
"""

import json
import math
import pathlib
import sys

import numpy as np
from transformers import WhisperFeatureExtractor

FILE = pathlib.Path(__file__).parent / "data" / "log_mel.json"
# name: samples, mel bands, whether padded to 30 s
CASES = {"second": (16000, 80, True), "bands_128": (20800, 128, True), "few": (4000, 23, True),
         "unpadded": (20077, 80, False), "full": (480000, 80, True)}


def signal(count):
  """The formula of signal.h."""
  mask = (1 << 64) - 1
  out = np.zeros(count, np.float32)
  state = 0
  for i in range(count):
    state = (state * 6364136223846793005 + 1442695040888963407) & mask
    noise = (state >> 40) / (1 << 23) - 1.0
    t = i / 16000.0
    tone = math.sin(2 * math.pi * (150.0 * t + 700.0 * t * t % 1.0)) * math.sin(3.0 * t)
    out[i] = np.float32(0.3 * tone + 0.02 * noise)
  return out


def make(samples, mels, is_padded):
  extractor = WhisperFeatureExtractor(feature_size=mels)
  found = extractor(signal(samples), sampling_rate=16000, truncation=False,
                    padding="max_length" if is_padded else "longest").input_features[0]
  frames = sorted({*range(0, 12), *range(12, found.shape[1], max(1, found.shape[1] // 40)),
                   *range(samples // 160 - 3, min(samples // 160 + 4, found.shape[1])),
                   found.shape[1] - 1})
  bands = sorted({0, 1, *range(2, mels, 11), mels - 2, mels - 1})
  return {"samples": samples, "mels": mels, "padded": 480000 if is_padded else 0,
          "n_frames": found.shape[1], "frames": frames, "bands": bands,
          "values": [[round(float(found[b, f]), 5) for b in bands] for f in frames]}


def main():
  text = json.dumps({name: make(*case) for name, case in CASES.items()})
  text = text.replace("], [", "],\n[").replace("}, ", "},\n") + "\n"
  if "--check" not in sys.argv[1:]:
    FILE.write_text(text)
    return 0
  old = json.loads(FILE.read_text())
  new = json.loads(text)
  return 0 if all(
      np.abs(np.array(old[name]["values"]) - np.array(new[name]["values"])).max() < 3e-5
      for name in CASES) else 1


if __name__ == "__main__":
  sys.exit(main())
