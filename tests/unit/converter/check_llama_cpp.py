#!/usr/bin/env python3
"""Checks that GGUF files that llama.cpp's converter makes of small checkpoints give the bundles of
the checkpoints.

  check_llama_cpp.py --conversion FOLDER --convert build/release/bin/arenite-convert [NAME ...]

Needs transformers 5, torch, gguf and llama.cpp's package `conversion`, which is in FOLDER. The
checkpoints are goldens, changed to what llama.cpp supports. They have no tokenizer. Exit status 1:
a bundle differs, or something is refused.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
GOLDEN = HERE.parent.parent / "golden"
sys.path.insert(0, str(GOLDEN))

import safetensors.torch
import torch

import make_goldens

FOUR_LAYER_TYPES = ["full_attention", "sliding_attention", "sliding_attention",
                    "sliding_attention"]


def minicpm3(c):
  c.update(scale_emb=12, scale_depth=1.4, dim_model_base=256)
  c["rope_parameters"]["original_max_position_embeddings"] = c["max_position_embeddings"]


def without_biases(name):
  return not name.endswith(".bias")


def of_first_layer(name):
  return ".layers." not in name or ".layers.0." in name


# Golden, changes of the config for both, for llama.cpp alone, tensors that stay, and pooling.
CASES = {
    "minicpm3": ("latent_depth_factors", minicpm3, {}, None, None),
    "minimax-m2": ("all_head_norms_experts", {}, {"rotary_dim": 12}, None, None),
    "mellum": ("ropes_by_type_experts",
               {"num_hidden_layers": 1, "layer_types": ["full_attention"],
                "mlp_layer_types": ["sparse"]}, {}, of_first_layer, None),
    "laguna": ("head_gates_experts", {"layer_types": FOUR_LAYER_TYPES},
               {"gating": True, "mlp_layer_types": ["dense"] + ["sparse"] * 3}, None, None),
    "cohere2moe": ("experts_parallel", {"attention_bias": False, "expert_selection_fn": "softmax",
                                        "norm_topk_prob": True}, {}, without_biases, None),
    "bert": ("pooled/bert_mean", {}, {}, None, "mean"),
    "roberta": ("pooled/roberta_max", {}, {}, None, "cls"),
    "distilbert": ("pooled/distilbert_sqrt", {}, {}, None, "mean"),
    "modern-bert": ("pooled/modern_bert_windows", {}, {}, None, "cls"),
    "qwen3": ("pooled/qwen3_last", {}, {}, None, "lasttoken"),
}


def write_json(path, content):
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_text(json.dumps(content))


def write_folder(folder, golden, keeps, pooling):
  tensors = {
      name: torch.from_numpy(make_goldens.values(name, math.prod(shape), golden["base_seed"],
                                                 golden["amplitude"]).reshape(shape))
      for name, shape in golden["tensors"].items() if keeps is None or keeps(name)}
  folder.mkdir()
  safetensors.torch.save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
  write_json(folder / "generation_config.json",
             {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0})
  if pooling is not None:
    modules = [("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")]
    write_json(folder / "modules.json",
               [{"type": f"sentence_transformers.models.{kind}", "path": path}
                for kind, path in modules])
    write_json(folder / "1_Pooling" / "config.json",
               {"pooling_mode": pooling, "pooling_mode_mean_tokens": pooling == "mean",
                "pooling_mode_cls_token": pooling == "cls",
                "pooling_mode_lasttoken": pooling == "lasttoken"})


def write_file(folder, path):
  import conversion
  import gguf

  hparams = conversion.ModelBase.load_hparams(folder, False)
  base = conversion.get_model_class(hparams["architectures"][0])

  class WithoutTokenizer(base):
    model_arch = base.model_arch

    def set_vocab(self):
      self.gguf_writer.add_bos_token_id(1)
      self.gguf_writer.add_eos_token_id(2)
      self.gguf_writer.add_pad_token_id(0)

  WithoutTokenizer(folder, gguf.LlamaFileType.ALL_F32, path, eager=True, hparams=hparams).write()


def check(name, convert, scratch):
  golden_name, changes, alone, keeps, pooling = CASES[name]
  golden = json.loads((GOLDEN / "data" / f"{golden_name}.json").read_text())
  config = golden["config"]
  if callable(changes):
    changes(config)
  else:
    config.update(changes)
  folder, path = scratch / "model", scratch / "model.gguf"
  write_folder(folder, golden, keeps, pooling)
  write_json(folder / "config.json", {**config, **alone})
  write_file(folder, path)
  write_json(folder / "config.json", config)
  bundles = []
  for source in (folder, path):
    bundle = scratch / f"{source.suffix or 'folder'}.arn"
    done = subprocess.run([convert, source, "-o", bundle, "--weights", "f32"], text=True,
                          capture_output=True, check=False)
    if done.returncode != 0:
      return done.stderr.strip().splitlines()[-1]
    bundles.append(bundle.read_bytes())
  return "same" if bundles[0] == bundles[1] else "differs"


def main():
  parser = argparse.ArgumentParser(description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--conversion", required=True)
  parser.add_argument("--convert", type=pathlib.Path, required=True)
  parser.add_argument("names", nargs="*", metavar="NAME")
  arguments = parser.parse_args()
  sys.path.insert(1, arguments.conversion)
  results = {}
  for name in arguments.names or CASES:
    with tempfile.TemporaryDirectory() as scratch:
      results[name] = check(name, arguments.convert.resolve(), pathlib.Path(scratch))
    print(f"{name:12s} {results[name]}", flush=True)
  return 0 if all(result == "same" for result in results.values()) else 1


if __name__ == "__main__":
  sys.exit(main())
