#!/usr/bin/env python3
"""Makes data/vision/*.json: small checkpoints of models that see, and what transformers computes
with them of images.

  make_vision_goldens.py [--check] [--find-seeds] [--out DIR] [NAME ...]

As make_tower_goldens.py. Each file also has the image processor's config, the sizes of images whose
pixels are those of image_of (the formula of tests/golden/vision_case.h), the text that a prompt has
for each, some columns of their embeddings, and logits of a prompt that holds them.
"""

import pathlib
import sys
import types

import numpy as np
import torch
import transformers
from transformers.models.idefics3.processing_idefics3 import Idefics3Processor
from transformers.models.lfm2_vl.processing_lfm2_vl import Lfm2VlProcessor

from golden_cases import rope
from make_goldens import DEFAULTS, amplitude_of, make_model, rounded, run_tool
from make_tower_goldens import GEMMA, filled, published_shapes, text, whole

HERE = pathlib.Path(__file__).parent
IMAGE = 500  # token id of an image
NEW_TOKENS = 12
QWEN = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe", "qwen3_5")
TOKENS = {"gemma3": "<image_soft_token>", "gemma4": "<|image|>",
          **dict.fromkeys(QWEN, "<|image_pad|>")}
MIN_MARGIN = 0.01
MIN_DISTINCT = 5

TOWER = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2,
         "num_attention_heads": 3, "patch_size": 4}
PIXELS = {"do_resize": True, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True,
          "image_mean": [0.5, 0.4, 0.45], "image_std": [0.5, 0.3, 0.25]}


def idefics3(**changes):
  return {"image_processor_type": "Idefics3ImageProcessor", **PIXELS, "resample": 1,
          "do_image_splitting": True, "size": {"longest_edge": 72},
          "max_image_size": {"longest_edge": 32}, "do_pad": True, **changes}


def lfm2_vl(**changes):
  return {"image_processor_type": "Lfm2VlImageProcessor", **PIXELS, "resample": 2,
          "do_image_splitting": True, "min_tiles": 2, "max_tiles": 6, "use_thumbnail": True,
          "min_image_tokens": 4, "max_image_tokens": 16, "encoder_patch_size": 4,
          "downsample_factor": 2, "tile_size": 32, "max_pixels_tolerance": 2.0, **changes}


def lfm2_text():
  c = text("lfm2", layer_types=["conv", "full_attention"], conv_L_cache=3,
           block_auto_adjust_ff_dim=False, norm_eps=1e-5)
  del c["rms_norm_eps"], c["hidden_act"]
  return c


def qwen2_vl(**changes):
  return {"image_processor_type": "Qwen2VLImageProcessor", **PIXELS, "resample": 3,
          "size": {"shortest_edge": 256, "longest_edge": 1024}, "patch_size": 4,
          "temporal_patch_size": 2, "merge_size": 2, **changes}


def qwen3_5(layer_types, sections, n_positions):
  tower = {"model_type": "qwen3_5_vision", "depth": 2, "hidden_size": 24, "intermediate_size": 40,
           "num_heads": 3, "in_channels": 3, "patch_size": 4, "temporal_patch_size": 2,
           "spatial_merge_size": 2, "out_hidden_size": 64, "num_position_embeddings": n_positions}
  decoder = text("qwen3_5_text", head_dim=24, linear_num_key_heads=2, linear_num_value_heads=4,
                 linear_key_head_dim=8, linear_value_head_dim=12, linear_conv_kernel_dim=4,
                 layer_types=layer_types,
                 rope_parameters=rope(10000.0, partial_rotary_factor=0.5, mrope_interleaved=True,
                                      mrope_section=sections))
  return whole("Qwen3_5ForConditionalGeneration", "qwen3_5", decoder, tower, image_token_id=IMAGE,
               video_token_id=501, vision_start_token_id=502, vision_end_token_id=503)


def qwen2_vl_model():
  tower = {"model_type": "qwen2_vl", "depth": 2, "embed_dim": 24, "hidden_size": 64,
           "mlp_ratio": 2, "num_heads": 3, "in_channels": 3, "patch_size": 4,
           "spatial_merge_size": 2, "temporal_patch_size": 2}
  decoder = text("qwen2_vl_text", rope_parameters=rope(
      10000.0, rope_type="default", mrope_section=[2, 3, 3]))
  return whole("Qwen2VLForConditionalGeneration", "qwen2_vl", decoder, tower, tied=True,
               image_token_id=IMAGE, video_token_id=501, vision_start_token_id=502,
               vision_end_token_id=503)


def qwen2_5_vl_model():
  tower = {"model_type": "qwen2_5_vl", "depth": 3, "hidden_size": 24, "intermediate_size": 40,
           "num_heads": 3, "in_channels": 3, "patch_size": 4, "spatial_merge_size": 2,
           "temporal_patch_size": 2, "window_size": 20, "out_hidden_size": 64,
           "fullatt_block_indexes": [1], "tokens_per_second": 2}
  decoder = text("qwen2_5_vl_text", rope_parameters=rope(
      10000.0, rope_type="default", mrope_section=[4, 2, 2]))
  return whole("Qwen2_5_VLForConditionalGeneration", "qwen2_5_vl", decoder, tower, tied=True,
               image_token_id=IMAGE, video_token_id=501, vision_start_token_id=502,
               vision_end_token_id=503)


def qwen3_vl(architecture, model_type, deepstack, **decoder):
  tower = {"model_type": f"{model_type}_vision" if model_type == "qwen3_vl" else model_type,
           "depth": 3, "hidden_size": 24, "intermediate_size": 40, "num_heads": 3,
           "in_channels": 3, "patch_size": 4, "temporal_patch_size": 2, "spatial_merge_size": 2,
           "out_hidden_size": 64, "num_position_embeddings": 25,
           "deepstack_visual_indexes": deepstack}
  decoder = text(f"{model_type}_text", rope_parameters=rope(
      10000.0, rope_type="default", mrope_interleaved=True, mrope_section=[4, 2, 2]), **decoder)
  return whole(architecture, model_type, decoder, tower, tied=model_type == "qwen3_vl",
               image_token_id=IMAGE, video_token_id=501, vision_start_token_id=502,
               vision_end_token_id=503)


def gemma4(decoder, tower, tied=True):
  rotations = {"full_attention": rope(1000000.0, rope_type="proportional",
                                      partial_rotary_factor=0.25),
               "sliding_attention": rope(10000.0)}
  inner = {**text("gemma4_text", hidden_activation="gelu_pytorch_tanh", head_dim=16,
                  global_head_dim=24, intermediate_size=84, final_logit_softcapping=12.0,
                  rope_parameters=rotations), **decoder}
  return whole("Gemma4ForConditionalGeneration", "gemma4", inner,
               {"model_type": "gemma4_vision", "hidden_size": 24, "intermediate_size": 40,
                "num_hidden_layers": 2, "num_attention_heads": 3, "patch_size": 4,
                "pooling_kernel_size": 2, "rope_parameters": rope(100.0), **tower}, tied=tied,
               image_token_id=IMAGE, boi_token_id=498, eoi_token_id=499, audio_token_id=497,
               video_token_id=496)


def gemma4_pixels(**changes):
  return {"image_processor_type": "Gemma4ImageProcessor", "do_resize": True, "do_rescale": True,
          "rescale_factor": 1 / 255, "do_normalize": False, "resample": 3, "patch_size": 4,
          "max_soft_tokens": 70, "pooling_kernel_size": 2, "image_mean": [0.0, 0.0, 0.0],
          "image_std": [1.0, 1.0, 1.0], **changes}


# name: (config, image processor, images as (width, height), seed)
CASES = {
    "squares_and_whole": (
        whole("SmolVLMForConditionalGeneration", "smolvlm", text("llama"),
              {"model_type": "smolvlm_vision", **TOWER, "image_size": 32}, scale_factor=2,
              image_token_id=IMAGE),
        idefics3(), [(64, 40), (31, 97)], 1),
    "whole": (
        whole("Idefics3ForConditionalGeneration", "idefics3", text("llama"),
              {"model_type": "idefics3_vision", **TOWER, "image_size": 32, "hidden_size": 40,
               "num_attention_heads": 5, "hidden_act": "gelu"}, scale_factor=4,
              image_token_id=IMAGE),
        idefics3(do_image_splitting=False), [(32, 32), (57, 90)], 1),
    "mean_both_ways": (
        whole("Gemma3ForConditionalGeneration", "gemma3",
              text("gemma3_text", **{**GEMMA, "sliding_window": 18},
                   layer_types=["sliding_attention", "full_attention"],
                   rope_parameters={
                       "full_attention": rope(1000000.0, rope_type="linear", factor=8.0),
                       "sliding_attention": rope(10000.0)}),
              {"model_type": "siglip_vision_model", **TOWER, "image_size": 48,
               "vision_use_head": False}, tied=True, mm_tokens_per_image=16,
              image_token_index=IMAGE, boi_token_index=498, eoi_token_index=499),
        {"image_processor_type": "Gemma3ImageProcessor", **PIXELS, "resample": 2,
         "size": {"height": 48, "width": 48}}, [(48, 48), (100, 37)], 30),
    "token_budget": (
        whole("Lfm2VlForConditionalGeneration", "lfm2_vl",
              lfm2_text(),
              {"model_type": "siglip2_vision_model", **TOWER, "num_patches": 36,
               "vision_use_head": False}, tied=True, image_token_id=IMAGE, downsample_factor=2,
              projector_hidden_size=56, projector_use_layernorm=True),
        lfm2_vl(), [(40, 24), (130, 61), (9, 7)], 2),
    "token_budget_plain": (
        whole("Lfm2VlForConditionalGeneration", "lfm2_vl",
              lfm2_text(),
              {"model_type": "siglip2_vision_model", **TOWER, "num_patches": 16,
               "vision_use_head": False}, tied=True, image_token_id=IMAGE, downsample_factor=2,
              projector_hidden_size=56, projector_use_layernorm=False, projector_bias=False,
              projector_hidden_act="silu"),
        lfm2_vl(use_thumbnail=False, resample=3), [(32, 32), (95, 60)], 1),
    "pixel_budget": (
        qwen3_5(["linear_attention", "full_attention"], [2, 2, 2], 36), qwen2_vl(),
        [(40, 24), (130, 61), (9, 7)], 1),
    "pixel_budget_chunks": (qwen2_vl_model(), qwen2_vl(), [(50, 30), (9, 33)], 1),
    "pixel_budget_windows": (qwen2_5_vl_model(), qwen2_vl(), [(60, 30), (9, 33)], 2),
    "pixel_budget_attention": (
        qwen3_5(["full_attention", "full_attention"], [3, 1, 2], 16), qwen2_vl(),
        [(32, 32), (17, 90)], 5),
    "pixel_budget_deepstack": (
        qwen3_vl("Qwen3VLForConditionalGeneration", "qwen3_vl", [2, 0]), qwen2_vl(),
        [(50, 30), (9, 33)], 1),
    "pixel_budget_deepstack_experts": (
        qwen3_vl("Qwen3VLMoeForConditionalGeneration", "qwen3_vl_moe", [1], num_experts=4,
                 num_experts_per_tok=2, moe_intermediate_size=52), qwen2_vl(),
        [(40, 24)], 1),
    "patch_budget_clamps": (
        gemma4({"num_hidden_layers": 4, "num_kv_shared_layers": 2, "sliding_window": 8,
                "hidden_size_per_layer_input": 10, "vocab_size_per_layer_input": 509,
                "layer_types": ["sliding_attention", "full_attention"] * 2},
               {"num_key_value_heads": 3, "head_dim": 8, "position_embedding_size": 160,
                "use_clipped_linears": True}),
        gemma4_pixels(), [(64, 40), (300, 9)], 1),
    "patch_budget_both_ways": (
        gemma4({"num_global_key_value_heads": 1, "attention_k_eq_v": True, "sliding_window": 80,
                "hidden_size_per_layer_input": 0, "use_bidirectional_attention": "vision",
                "layer_types": ["sliding_attention", "full_attention"]},
               {"num_key_value_heads": 1, "head_dim": 12, "position_embedding_size": 140,
                "standardize": True}, tied=False),
        gemma4_pixels(do_normalize=True, image_mean=[0.1, 0.0, -0.2],
                      image_std=[0.9, 1.0, 1.1]), [(64, 40), (41, 62)], 1),
}


def image_of(width, height, index):
  """The formula of tests/golden/vision_case.h: uint8 [height, width, 3]."""
  x = np.arange(width, dtype=np.int64)[None, :, None]
  y = np.arange(height, dtype=np.int64)[:, None, None]
  c = np.arange(3, dtype=np.int64)[None, None, :]
  return ((x * (3 + c) + y * (5 - c) + ((x * y) >> 3) * (index + 1)) & 255).astype(np.uint8)


def processor_of(config):
  return getattr(transformers, config["image_processor_type"])(**config)


def prepared(c, config, images):
  """What the image processor makes of the images, as arguments of the model, and what of each."""
  processor = processor_of(config)
  if c["model_type"] in (*QWEN, "gemma4"):
    return processor(images, return_tensors="pt")
  nested = c["model_type"] != "gemma3"
  options = {"return_row_col_info": True} if nested else {}
  return processor([[i] for i in images] if nested else list(images), return_tensors="pt",
                   **options)


def text_of(c, made, index, n_tokens):
  """The text of an image, as the processor of the whole model writes it; n_tokens: of a tile."""
  if c["model_type"] == "gemma3":
    return "\n\n<start_of_image>" + "<image_soft_token>" * n_tokens + "<end_of_image>\n\n"
  if c["model_type"] == "lfm2_vl":
    names = types.SimpleNamespace(image_start_token="<|image_start|>", image_token="<image>",
                                  image_end_token="<|image_end|>",
                                  image_thumbnail_token="<|img_thumbnail|>")
    per_tile, whole_tokens, use_thumbnail = n_tokens
    return Lfm2VlProcessor._build_image_tokens(
        names, int(made["image_rows"][index]), int(made["image_cols"][index]), per_tile,
        whole_tokens, use_thumbnail, True)
  names = types.SimpleNamespace(fake_image_token="<fake_token_around_image>",
                                global_image_tag="<global-img>", image_token="<image>",
                                image_seq_len=n_tokens)
  flat = {key: [[int(n)] for row in made[key] for n in row] for key in ("rows", "cols")}
  return Idefics3Processor.replace_image_token(names, flat, index)


def texts_of(c, config, made, n):
  if c["model_type"] in QWEN:
    merged = config["merge_size"] ** 2
    return ["<|image_pad|>" * (int(grid.prod()) // merged) for grid in made["image_grid_thw"]]
  if c["model_type"] == "gemma4":
    return ["<|image>" + "<|image|>" * int(n_tokens) + "<image|>"
            for n_tokens in made["num_soft_tokens_per_image"]]
  if c["model_type"] == "gemma3":
    return [text_of(c, made, i, c["mm_tokens_per_image"]) for i in range(n)]
  if c["model_type"] == "lfm2_vl":
    side = config["tile_size"] // 8
    tokens = [(side * side, int(h) // 8 * (int(w) // 8), config["use_thumbnail"])
              for h, w in made["image_sizes"]]
    return [text_of(c, made, i, tokens[i]) for i in range(n)]
  side = config["max_image_size"]["longest_edge"] // 4 // c["scale_factor"]
  return [text_of(c, made, i, side * side) for i in range(n)]


def model_inputs(c, made):
  if c["model_type"] == "lfm2_vl":
    return {key: made[key] for key in ("pixel_values", "spatial_shapes", "pixel_attention_mask")}
  if c["model_type"] in QWEN:
    return {key: made[key] for key in ("pixel_values", "image_grid_thw")}
  if c["model_type"] == "gemma4":
    return {key: made[key] for key in ("pixel_values", "image_position_ids")}
  if c["model_type"] == "gemma3":
    return {"pixel_values": made["pixel_values"]}
  # One sample that holds the tiles of all images.
  tiles = [tile for sample, n in zip(made["pixel_values"], made["n_tiles"]) for tile in sample[:n]]
  return {"pixel_values": torch.stack(tiles)[None]}


def embeddings_of(c, model, inputs):
  features = model.model.get_image_features(**inputs)
  features = getattr(features, "pooler_output", features)
  if isinstance(features, (list, tuple)):
    features = torch.cat(list(features))
  return features.reshape(-1, features.shape[-1])


def logits_of(c, model, ids, inputs):
  extra = {}
  if c["model_type"] == "gemma3":
    extra["token_type_ids"] = torch.tensor([[int(i == IMAGE) for i in ids]])
  if c["model_type"] in (*QWEN, "gemma4"):
    extra["mm_token_type_ids"] = torch.tensor([[int(i == IMAGE) for i in ids]])
  return model(input_ids=torch.tensor([ids]), use_cache=False, **inputs, **extra).logits[0].double()


def greedy_with(c, model, prompt, inputs):
  ids, margin = list(prompt), float("inf")
  for _ in range(NEW_TOKENS):
    logits = logits_of(c, model, ids, inputs)[-1]
    logits[IMAGE] = -float("inf")  # a further one would want an embedding
    top = torch.topk(logits, 2)
    margin = min(margin, float(top.values[0] - top.values[1]))
    ids.append(int(top.indices[0]))
  return ids, margin


@torch.no_grad()
def make(name, find_seeds):
  c, config, sizes, seed = CASES[name]
  empty = make_model(c)
  case = {"name": name, "config": c, "old_config": c, **DEFAULTS, "base_seed": seed,
          "amplitude": amplitude_of(c["text_config"]), "tensors": published_shapes(empty),
          "preprocessor": config, "images": [list(size) for size in sizes]}
  images = [image_of(w, h, i) for i, (w, h) in enumerate(sizes)]
  made = prepared(c, config, images)
  if "rows" in made:
    made["n_tiles"] = [int(r[0]) * int(k[0]) + 1 for r, k in zip(made["rows"], made["cols"])]
  texts = texts_of(c, config, made, len(sizes))
  token = TOKENS.get(c["model_type"], "<image>")
  counts = [t.count(token) for t in texts]
  prompt = []
  for i, n in enumerate(counts):
    prompt += [7 + i, 21 * (i + 1), *[IMAGE] * n, 90 + i]
  prompt += [33, 4]
  inputs = model_inputs(c, made)
  for seed in range(1, 200) if find_seeds else [seed]:
    model = filled(empty, case, seed)
    ids, margin = greedy_with(c, model, prompt, inputs)
    distinct = len(set(ids[len(prompt):]))
    if margin >= MIN_MARGIN and distinct >= MIN_DISTINCT:
      break
  else:
    raise SystemExit(f"{name}: margin {margin:.4f}, {distinct} distinct: use --find-seeds")
  case["base_seed"] = seed
  embeddings = embeddings_of(c, model, inputs)
  logits = logits_of(c, model, ids, inputs)
  stride = 7
  positions = sorted({len(prompt) - 1, len(prompt), len(ids) - 1})
  case |= {
      "texts": texts, "prompt": prompt, "greedy": ids[len(prompt):], "margin": rounded(margin),
      "embeddings": [[rounded(x) for x in row[::5]] for row in embeddings],
      "log_sum_exp": [rounded(x) for x in torch.logsumexp(logits, -1)],
      "argmax": logits.argmax(-1).tolist(), "positions": positions, "stride": stride,
      "logits": [[rounded(x) for x in logits[p, ::stride]] for p in positions]}
  print(f"{name:18s} seed {seed:3d} margin {margin:.4f} distinct {distinct:2d} tokens {counts} "
        f"embeddings {float(embeddings.abs().max()):.2f}", flush=True)
  return case


if __name__ == "__main__":
  sys.exit(run_tool(__doc__, CASES, make, HERE / "data" / "vision"))
