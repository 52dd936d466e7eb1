#!/usr/bin/env python3
"""Writes data/rope_tables.json: inverse frequencies and amplitudes from transformers.

usage: make_rope_tables.py OUT.json

Needs transformers and torch; the file was made with transformers 5.12.1 and torch 2.14.1.

Each case holds a config fragment in the style of transformers 4 or 5 and its table. The numbers are
float32 with 9 digits, which identify a float32 exactly.
"""
import json
import sys

import torch
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

LLAMA3 = dict(rope_type="llama3", factor=32.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=8192)
YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=128)

CASES = {
    "default": dict(rope_parameters=dict(rope_type="default", rope_theta=10000.0)),
    "default_old_keys": dict(rope_theta=500000.0, rope_scaling=None),
    "default_absent": dict(),
    "default_head_64": dict(head_dim=64, rope_theta=1000000.0),
    "linear": dict(
        rope_parameters=dict(rope_type="linear", rope_theta=10000.0, factor=4.0)),
    "linear_old_type_key": dict(
        rope_theta=10000.0, rope_scaling=dict(type="linear", factor=2.5)),
    "llama3_head_64": dict(
        head_dim=64, max_position_embeddings=131072,
        rope_parameters=dict(LLAMA3, rope_theta=500000.0)),
    "llama3_head_128_factor_8": dict(
        head_dim=128, max_position_embeddings=131072, rope_theta=500000.0,
        rope_scaling=dict(LLAMA3, factor=8.0)),
    "yarn": dict(max_position_embeddings=512, rope_parameters=dict(YARN, rope_theta=10000.0)),
    "yarn_head_128": dict(
        head_dim=128, max_position_embeddings=131072, rope_theta=1000000.0,
        rope_scaling=dict(YARN, original_max_position_embeddings=32768)),
    "yarn_betas_no_truncate": dict(
        head_dim=64, max_position_embeddings=131072, rope_theta=150000.0,
        rope_scaling=dict(YARN, factor=32.0, beta_fast=32.0, beta_slow=1.0, truncate=False,
                          original_max_position_embeddings=4096)),
    "yarn_attention_factor": dict(
        max_position_embeddings=512,
        rope_parameters=dict(YARN, rope_theta=10000.0, attention_factor=0.75)),
    "yarn_mscale": dict(
        head_dim=64, max_position_embeddings=163840,
        rope_parameters=dict(YARN, rope_theta=10000.0, factor=40.0, mscale=1.0,
                             mscale_all_dim=0.7, beta_fast=24, beta_slow=2,
                             original_max_position_embeddings=4096)),
    # As in Llama 4 Scout: the two wavelengths are equal.
    "llama3_equal_factors": dict(
        head_dim=128, max_position_embeddings=10485760, rope_theta=500000.0,
        rope_scaling=dict(LLAMA3, factor=16.0, low_freq_factor=1.0, high_freq_factor=1.0)),
    "dynamic": dict(
        max_position_embeddings=512, rope_theta=10000.0,
        rope_scaling=dict(rope_type="dynamic", factor=4.0)),
    "yarn_original_outside": dict(
        max_position_embeddings=512, original_max_position_embeddings=64, rope_theta=10000.0,
        rope_scaling=dict(rope_type="yarn", factor=8.0)),
}


def main():
    out = {}
    for name, fragment in CASES.items():
        keys = dict(hidden_size=64, num_attention_heads=4, head_dim=16,
                    max_position_embeddings=512)
        keys.update(fragment)
        config = LlamaConfig(**json.loads(json.dumps(keys)))
        rope = LlamaRotaryEmbedding(config)
        assert rope.inv_freq.dtype == torch.float32
        amplitude = torch.tensor(rope.attention_scaling, dtype=torch.float32)
        out[name] = dict(config=keys, amplitude=float("%.9g" % amplitude),
                         inv_freq=[float("%.9g" % v) for v in rope.inv_freq.tolist()])
    with open(sys.argv[1], "w") as file:
        json.dump(out, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
