#!/usr/bin/env python3
"""Writes data/mtp/*.json: rows of heads that predict one token more (multi-token prediction).

  make_mtp_goldens.py [--check] [--find-seeds] [--out DIR] [NAME ...]

Needs transformers 5, torch and numpy. transformers does not build these heads: Head is an
independent implementation of the published arithmetic (DeepSeek-V3, arXiv:2412.19437, section 2.2,
with the norms and names of Qwen3-Next's checkpoints). NextLayerHead is the same with the names of
DeepSeek's and GLM's checkpoints; its layer is transformers', of a model with one layer more. The
rows of the decoder and the greedy continuation are transformers'. Checkpoints, weights and the
fields of a file are those of make_goldens.py, but logits and argmax are the head's: row i is of the
decoder's row i behind its final norm and of token i + 1.
"""

import math
import sys

import torch
from torch.nn.functional import silu, softmax

from make_goldens import (
    CASES, DEFAULTS, HERE, MIN_DISTINCT, MIN_MARGIN, amplitude_of, fill, greedy, make_model,
    old_config, pick_seed, prompt_of, rounded, run_tool, stored_shapes, values)

# Cases of make_goldens.py whose decoder the head is behind.
NAMES = ("delta_rule", "delta_rule_odd", "delta_rule_fused", "delta_rule_experts",
         "delta_rule_fused_experts", "router_groups", "latent_attention",
         "latent_attention_layer_types", "latent_indexed")


def head_shapes(c, shapes):
  """Those of the head: its layer has the tensors of the decoder's with attention."""
  attention = next(name for name in shapes if name.endswith("self_attn.q_proj.weight"))
  start = attention.removesuffix("self_attn.q_proj.weight")
  width = c["hidden_size"]
  return {
      "mtp.pre_fc_norm_embedding.weight": [width],
      "mtp.pre_fc_norm_hidden.weight": [width],
      "mtp.fc.weight": [width, 2 * width],
      "mtp.norm.weight": [width],
      **{name.replace(start, "mtp.layers.0."): shape for name, shape in shapes.items()
         if name.startswith(start)},
  }


class Head:
  """The head's tensors, and what they make of rows and tokens."""

  def __init__(self, c, shapes, model, seed, amplitude):
    self.c, self.model = c, model
    self.w = {name: torch.from_numpy(values(name, math.prod(shape), seed, amplitude)).reshape(shape)
              for name, shape in shapes.items() if name.startswith("mtp.")}

  def __getitem__(self, name):
    return self.w[f"mtp.{name}.weight"]

  def norm(self, x, name):
    scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.c["rms_norm_eps"])
    return x * scale * (1 + self[name])

  def linear(self, x, name):
    bias = self.w.get(f"mtp.{name}.bias")
    y = x @ self[name].T
    return y if bias is None else y + bias

  def rotate(self, x):
    """x: [tokens, heads, head_dim]; the first part of a head turns, its halves are the pairs."""
    rope = self.c["rope_parameters"]
    n = int(x.shape[-1] * rope.get("partial_rotary_factor", 1.0))
    frequencies = rope["rope_theta"] ** (-torch.arange(0, n, 2).float() / n)
    angles = torch.arange(x.shape[0]).float()[:, None, None] * frequencies
    cos, sin = angles.cos(), angles.sin()
    a, b = x[..., :n // 2], x[..., n // 2:n]
    return torch.cat([a * cos - b * sin, b * cos + a * sin, x[..., n:]], -1)

  def attention(self, x):
    p = "layers.0.self_attn."
    n, dim = x.shape[0], self.c["head_dim"]
    heads, kv_heads = self.c["num_attention_heads"], self.c["num_key_value_heads"]
    q, gate = self.linear(x, p + "q_proj").view(n, heads, 2 * dim).chunk(2, -1)
    k = self.linear(x, p + "k_proj").view(n, kv_heads, dim)
    v = self.linear(x, p + "v_proj").view(n, kv_heads, dim)
    q = self.rotate(self.norm(q, p + "q_norm"))
    k = self.rotate(self.norm(k, p + "k_norm"))
    k, v = (t.repeat_interleave(heads // kv_heads, 1) for t in (k, v))
    scores = torch.einsum("qhd,khd->hqk", q, k) / math.sqrt(dim)
    scores = scores.masked_fill(torch.ones(n, n).triu(1).bool(), -math.inf)
    y = torch.einsum("hqk,khd->qhd", softmax(scores, -1), v) * torch.sigmoid(gate)
    return self.linear(y.reshape(n, heads * dim), p + "o_proj")

  def block(self, x, p):
    return self.linear(silu(self.linear(x, p + "gate_proj")) * self.linear(x, p + "up_proj"),
                       p + "down_proj")

  def experts(self, x):
    p = "layers.0.mlp."
    weights = softmax(self.linear(x, p + "gate"), -1)
    top, chosen = weights.topk(self.c["num_experts_per_tok"], -1)
    if self.c.get("norm_topk_prob", True):
      top = top / top.sum(-1, keepdim=True)
    y = torch.zeros_like(x)
    for row in range(x.shape[0]):
      for weight, e in zip(top[row], chosen[row].tolist()):
        y[row] += weight * self.expert(x[row], p + "experts.", e)
    shared = self.block(x, p + "shared_expert.")
    return y + torch.sigmoid(self.linear(x, p + "shared_expert_gate")) * shared

  def expert(self, x, p, e):
    stacked = self.w.get(f"mtp.{p}gate_up_proj")
    if stacked is None:
      return self.block(x, f"{p}{e}.")
    gate, up = (stacked[e] @ x).chunk(2)
    return self.w[f"mtp.{p}down_proj"][e] @ (silu(gate) * up)

  def rows(self, hidden, ids):
    """hidden: [n, width] of the decoder, or of this head; ids: [n], each the next token."""
    embedded = self.model.model.embed_tokens(torch.tensor(ids))
    both = torch.cat([self.norm(embedded, "pre_fc_norm_embedding"),
                      self.norm(hidden, "pre_fc_norm_hidden")], -1)
    x = self.linear(both, "fc")
    x = x + self.attention(self.norm(x, "layers.0.input_layernorm"))
    normed = self.norm(x, "layers.0.post_attention_layernorm")
    has_experts = "mtp.layers.0.mlp.gate.weight" in self.w
    x = x + (self.experts(normed) if has_experts else self.block(normed, "layers.0.mlp."))
    return self.norm(x, "norm")

  def logits(self, rows):
    return self.model.lm_head(rows)


class NextLayerHead:
  """The layer behind the last; its own rows are those before its norm."""

  def __init__(self, c, shapes, model, seed, amplitude):
    self.c, self.model, self.n = c, model, c["num_hidden_layers"]
    deeper = make_model(one_layer_more(c))
    fill(deeper, {"amplitude": amplitude, "dtype": "F32"}, seed)
    self.layer, self.rotary = deeper.model.layers[self.n], deeper.model.rotary_emb
    self.w = {name: torch.from_numpy(values(name, math.prod(shape), seed, amplitude)).reshape(shape)
              for name, shape in shapes.items() if name.startswith(f"model.layers.{self.n}.")}

  def __getitem__(self, name):
    return self.w[f"model.layers.{self.n}.{name}.weight"]

  def norm(self, x, name):
    scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.c["rms_norm_eps"])
    return x * scale * self[name]

  def rows(self, hidden, ids):
    """As Head.rows()."""
    embedded = self.model.model.embed_tokens(torch.tensor(ids))
    x = torch.cat([self.norm(embedded, "enorm"), self.norm(hidden, "hnorm")], -1)
    x = (x @ self["eh_proj"].T)[None]
    positions = torch.arange(len(ids))[None]
    mask = torch.full((len(ids), len(ids)), -math.inf).triu(1)[None, None]
    made = self.layer(x, attention_mask=mask, position_ids=positions,
                      position_embeddings=self.rotary(x, positions))
    return (made[0] if isinstance(made, tuple) else made)[0]

  def logits(self, rows):
    return self.model.lm_head(self.norm(rows, "shared_head.norm"))


def one_layer_more(c):
  by_layer = {key: [*value, value[-1]] for key, value in c.items()
              if key in ("layer_types", "mlp_layer_types", "indexer_types")}
  return {**c, **by_layer, "num_hidden_layers": c["num_hidden_layers"] + 1}


def next_layer_shapes(c):
  width, n = c["hidden_size"], c["num_hidden_layers"]
  start = f"model.layers.{n}."
  return {
      **{name: shape for name, shape in stored_shapes(make_model(one_layer_more(c))).items()
         if name.startswith(start)},
      f"{start}enorm.weight": [width],
      f"{start}hnorm.weight": [width],
      f"{start}eh_proj.weight": [width, 2 * width],
      f"{start}shared_head.norm.weight": [width],
  }


@torch.no_grad()
def make(name, find_seeds):
  c, seed, changes = CASES[name]
  if "n_routed_experts" in c:
    c = {**c, "num_nextn_predict_layers": 1}
  changes = {k: v for k, v in changes.items() if k in DEFAULTS}
  case = {"name": name, "config": c, "old_config": old_config(c), **DEFAULTS, **changes,
          "base_seed": seed, "amplitude": amplitude_of(c)}
  model = make_model(c)
  shapes = stored_shapes(model)
  is_next_layer = "n_routed_experts" in c
  added = next_layer_shapes(c) if is_next_layer else head_shapes(c, shapes)
  case["tensors"] = {**shapes, **added}
  prompt = prompt_of(c, len(name))
  if find_seeds:
    case["base_seed"] = pick_seed(model, case, prompt)
  fill(model, case, case["base_seed"])
  ids, margin = greedy(model, prompt)
  if margin < MIN_MARGIN or len(set(ids[len(prompt):])) < MIN_DISTINCT:
    raise SystemExit(f"{name}: margin {margin:.4f}: use --find-seeds")
  head = (NextLayerHead if is_next_layer else Head)(
      c, case["tensors"], model, case["base_seed"], case["amplitude"])
  hidden = model.model(input_ids=torch.tensor([ids]), use_cache=False).last_hidden_state[0]
  # Row n: the head's own row in place of the decoder's, behind its own guess.
  rows = head.rows(hidden[:-1], ids[1:])
  guess = int(head.logits(rows[-1]).argmax())
  again = head.rows(torch.cat([hidden[:-1], rows[-1:]]), [*ids[1:], guess])
  logits = head.logits(again).double()
  stride = 7
  positions = sorted({0, 1, 7, 8, 15, len(prompt) - 1, len(ids) - 2, len(ids) - 1})
  case |= {
      "prompt": prompt,
      "greedy": ids[len(prompt):],
      "guess": guess,
      "log_sum_exp": [rounded(x) for x in torch.logsumexp(logits, -1)],
      "argmax": logits.argmax(-1).tolist(),
      "positions": positions,
      "stride": stride,
      "logits": [[rounded(x) for x in logits[p, ::stride]] for p in positions],
  }
  top = logits.topk(2).values
  print(f"{name:26s} seed {case['base_seed']} least margin of the head "
        f"{float((top[:, 0] - top[:, 1]).min()):.4f}", flush=True)
  return case


if __name__ == "__main__":
  sys.exit(run_tool(__doc__, NAMES, make, HERE / "data" / "mtp"))
