#!/usr/bin/env python3
"""Makes vision_cases.json: images as torchvision resizes them, and tiles as transformers' image
processors cut them.

  make_vision_cases.py [OUT]

Needs transformers 5, torch, torchvision and numpy.
"""

import json
import pathlib
import sys

import numpy as np
import torch
import transformers
from torchvision.transforms.v2 import functional as F
from transformers.models.gemma4.image_processing_gemma4 import get_aspect_ratio_preserving_size

FILTERS = {1: F.InterpolationMode.LANCZOS, 2: F.InterpolationMode.BILINEAR,
           3: F.InterpolationMode.BICUBIC}
SHAPES = [((31, 97), (16, 40)), ((200, 133), (64, 64)), ((17, 9), (50, 31)), ((64, 40), (64, 13)),
          ((40, 64), (7, 64)), ((1, 1), (5, 3)), ((300, 2), (10, 8)), ((97, 500), (96, 12)),
          ((640, 480), (37, 29))]
SIZES = [(1, 1), (3, 900), (900, 3), (64, 64), (65, 64), (512, 512), (640, 480), (480, 640),
         (1000, 1000), (1280, 1024), (1920, 1080), (777, 333), (333, 777), (2048, 512), (51, 50),
         (4000, 3000), (123, 457), (2000, 1), (5000, 1200), (96, 33), (2100, 15), (16, 3199)]


def image_of(width, height):
  """The formula of tests/golden/vision_case.h, for the first image."""
  x = np.arange(width, dtype=np.int64)[None, :, None]
  y = np.arange(height, dtype=np.int64)[:, None, None]
  c = np.arange(3, dtype=np.int64)[None, None, :]
  return ((x * (3 + c) + y * (5 - c) + ((x * y) >> 3)) & 255).astype(np.uint8)


def resized(source, size, number):
  image = torch.from_numpy(image_of(*source)).permute(2, 0, 1)
  out = F.resize(image, [size[1], size[0]], interpolation=FILTERS[number], antialias=True)
  return out.permute(1, 2, 0).reshape(-1).tolist()


def longest_edge(edge, tile, size):
  processor = transformers.Idefics3ImageProcessor(
      size={"longest_edge": edge}, max_image_size={"longest_edge": tile}, resample=2)
  made = processor([[np.zeros((size[1], size[0], 3), np.uint8)]], return_row_col_info=True,
                   input_data_format="channels_last")
  return [made["rows"][0][0], made["cols"][0][0]]


def token_budget(size):
  processor = transformers.Lfm2VlImageProcessor()
  made = processor([[np.zeros((size[1], size[0], 3), np.uint8)]], return_row_col_info=True,
                   input_data_format="channels_last", return_tensors="pt")
  h, w = made["image_sizes"][0]
  return [int(made["image_rows"][0]), int(made["image_cols"][0]), int(w), int(h)]


def pixel_budget(size, **budget):
  processor = transformers.Qwen2VLImageProcessor(patch_size=16, **budget)
  made = processor([np.zeros((size[1], size[0], 3), np.uint8)], input_data_format="channels_last",
                   return_tensors="pt")
  _, h, w = made["image_grid_thw"][0]
  return [int(w) * 16, int(h) * 16]


def patch_budget(size, tokens):
  h, w = get_aspect_ratio_preserving_size(size[1], size[0], 16, 9 * tokens, 3)
  return [w, h]


def tilings():
  cases = []
  for size in SIZES:
    case = {"image": size}
    for name, edge, tile in (("smolvlm", 2048, 512), ("idefics3", 4 * 364, 364), ("odd", 71, 32)):
      case[name] = longest_edge(edge, tile, size)
    if max(size) / min(size) < 20:
      case["lfm2_vl"] = token_budget(size)
    if max(size) / min(size) <= 200:
      case["qwen"] = pixel_budget(size, min_pixels=65536, max_pixels=1048576)
      case["qwen_small"] = pixel_budget(size, min_pixels=3000, max_pixels=5000)
    case["gemma4"] = patch_budget(size, 280)
    case["gemma4_small"] = patch_budget(size, 70)
    cases.append(case)
  return cases


def main():
  cases = {"resize": [{"in": s, "out": o, "filter": f, "every": 7,
                       "pixels": resized(s, o, f)[::7]}
                      for s, o in SHAPES for f in FILTERS],
           "tile": tilings()}
  out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else
                     pathlib.Path(__file__).parent / "vision_cases.json")
  lines = [f' "{key}": [\n  ' + ",\n  ".join(json.dumps(c, separators=(",", ":")) for c in rows) +
           "\n ]" for key, rows in cases.items()]
  out.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
  main()
