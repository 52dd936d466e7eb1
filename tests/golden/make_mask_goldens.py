#!/usr/bin/env python3
"""Writes data/mask/*.json: transformers' logits of checkpoints of data/ with positions and masks.

  make_mask_goldens.py [--check] [--out DIR] [NAME ...]

As make_goldens.py. Each file names a case of data/ (its config, weights and tokens), how many of
its tokens come before the masked ones, the masked tokens' positions (null: those in the sequence),
a row of 0 and 1 for each of them from position `first` on (null: causal), and every n-th logit of
each.
"""

import sys

import torch

import make_goldens
from make_goldens import CASES, HERE, fill, make_model, rounded, run_tool

STRIDE = 7


def tree(n_before):
  """Two guesses of what comes next, each with two of what comes then."""
  parents = [None, None, 0, 0, 1, 1]
  depths, rows = [], []
  for i, parent in enumerate(parents):
    depths.append(0 if parent is None else depths[parent] + 1)
    row = [0] * len(parents) if parent is None else list(rows[parent])
    row[i] = 1
    rows.append(row)
  return [n_before + depth for depth in depths], rows, n_before


def prefix(n_before):
  """Tokens that see each other both ways, and all before them."""
  n = 17
  return None, [[1] * n for _ in range(n)], n_before


def holes(n_before):
  """Tokens that do not see some of those before them."""
  n, first = 9, 3
  cells = [[int(p <= n_before + r and (p % 3 != r % 3 or p == n_before + r))
            for p in range(first, n_before + n)] for r in range(n)]
  return None, cells, first


def gaps(n_before):
  """Positions with gaps, the mask a causal one."""
  return [n_before + 2 * i + 5 for i in range(8)], None, 0


# name: (case of data/, tokens before, mask)
MASKS = {
    "tree": ("tied", 20, tree),
    "tree_first": ("tied", 0, tree),
    "tree_norms": ("qk_norm", 33, tree),
    "tree_softcap": ("sandwich_softcap", 20, tree),
    "tree_learned_positions": ("learned_positions", 20, tree),
    "tree_latent": ("latent_attention", 20, tree),
    "prefix": ("multi_query", 0, prefix),
    "prefix_after": ("sinks", 11, prefix),
    "holes": ("tied", 30, holes),
    "holes_alibi": ("alibi_clipped", 30, holes),
    "gaps": ("tied", 16, gaps),
}


@torch.no_grad()
def make(name, _):
  base, n_before, shape = MASKS[name]
  positions, cells, first = shape(n_before)
  n = len(cells if cells is not None else positions)
  case = make_goldens.json.loads((HERE / "data" / f"{base}.json").read_text())
  model = make_model(CASES[base][0])
  fill(model, case, case["base_seed"])
  end = n_before + n
  ids = (case["prompt"] + case["greedy"])[:end]
  seen = torch.tril(torch.ones(end, end, dtype=torch.bool))
  if cells is not None:
    seen[n_before:] = True
    seen[n_before:, first:] = torch.tensor(cells, dtype=torch.bool)
  mask = torch.zeros(1, 1, end, end).masked_fill(~seen, torch.finfo(torch.float32).min)
  text = getattr(model.config, "text_config", model.config)
  layers = set(getattr(text, "layer_types", None) or [])
  if layers > {"full_attention"}:
    # Windows hide what they always hide.
    near = torch.arange(end)[:, None] - torch.arange(end)[None, :] < text.sliding_window
    narrow = mask.masked_fill(~near, torch.finfo(torch.float32).min)
    mask = {"full_attention": mask, "sliding_attention": narrow}
  extra = {}
  if positions is not None:
    extra["position_ids"] = torch.tensor([list(range(n_before)) + positions])
  logits = model(input_ids=torch.tensor([ids]), attention_mask=mask, use_cache=False,
                 **extra).logits[0].double()
  plain = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].double()
  difference = float((logits - plain)[n_before:].abs().max())
  print(f"{name:24s} {n_before} + {n} tokens, {difference:.2f} from plain text", flush=True)
  if difference < 0.01:
    raise SystemExit(f"{name}: the mask changes nothing")
  return {"name": name, "golden": base, "n_before": n_before, "positions": positions,
          "first": first, "visible": cells, "stride": STRIDE,
          "logits": [[rounded(x) for x in logits[n_before + r, ::STRIDE]] for r in range(n)]}


if __name__ == "__main__":
  sys.exit(run_tool(__doc__, MASKS, make, HERE / "data" / "mask"))
