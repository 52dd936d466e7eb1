#!/usr/bin/env python3
"""Writes beams.json: naive beam searches over small tables of logits.

  make_beams.py [--check]

A "model" is a formula for the logits given the step and the last token (also in
beam_search_test.cc), so a search needs nothing else. Every continuation of every beam is a whole
list of tokens, and all are sorted; no code is shared with the library. The seeds avoid decisions
close to a tie. Standard library only.
"""

import argparse
import itertools
import json
import math
import pathlib
import random

OUT = pathlib.Path(__file__).with_name("beams.json")
MIN_GAP = 2e-4  # between neighbours in any list that is cut or sorted
NO_TOKEN = -1  # before the first token


def logits(model, step, last):
  row = []
  for token in range(model["vocab"]):
    h = (model["seed"] * 97 + step * 7919 + (last + 1) * 104729 + token * 1299709) % 2**32
    for _ in range(2):
      h = (h ^ (h >> 16)) * 0x45D9F3B % 2**32
    # Multiples of 2^-20: exact in float and in double.
    value = ((h ^ (h >> 16)) >> 8) / 2**20
    row.append(value * 0.5 + (model["end_bias"] if token in model["ends"] else 0.0))
  return row


class Tie(Exception):
  pass


def ordered(entries, what):
  """Sorts best first; entries are (score, ...)."""
  entries = sorted(entries, key=lambda e: -e[0])
  for a, b in itertools.pairwise(entries[:what]):
    if abs(a[0] - b[0]) < MIN_GAP:
      raise Tie
  return entries


class Group:
  def __init__(self, size):
    self.size = size
    self.running = [(0.0, [])]
    self.finished = []
    self.is_done = False

  def step(self, model, options, n_steps, penalties):
    ends = [] if options["ignore_eos"] else model["ends"]
    everything = []
    for score, tokens in self.running:
      row = logits(model, n_steps - 1, tokens[-1] if tokens else NO_TOKEN)
      top = max(row)
      norm = top + math.log(math.fsum(math.exp(x - top) for x in row))
      for token, x in enumerate(row):
        everything.append((score + x - norm - penalties.get(token, 0.0), tokens + [token]))
    n_candidates = max(2, 1 + len(ends)) * self.size
    best = ordered(everything, n_candidates + 1)[:n_candidates]

    is_last = n_steps == options["max_tokens"]
    going_on = []
    for rank, (score, tokens) in enumerate(best):
      if not is_last and tokens[-1] not in ends:
        going_on.append((score, tokens))
      elif rank < self.size:
        self.finished.append((score / n_steps ** options["length_penalty"], tokens))
    self.finished = ordered(self.finished, self.size + 1)[: self.size]
    self.running = going_on[: self.size]
    self.is_done = not self.running or self._has_enough(options, n_steps)
    return [tokens[-1] for _, tokens in self.running]

  def _has_enough(self, options, n_steps):
    if len(self.finished) < self.size:
      return False
    if options["early_stopping"] == "true":
      return True
    reach = n_steps
    if options["early_stopping"] == "never" and options["length_penalty"] > 0:
      reach = options["max_tokens"]
    hope = self.running[0][0] / reach ** options["length_penalty"]
    worst = self.finished[-1][0]
    if abs(hope - worst) < MIN_GAP:
      raise Tie
    return hope <= worst


def search(model, options):
  n_groups = options["groups"]
  groups = [Group(options["beams"] // n_groups) for _ in range(n_groups)]
  n_steps = 0
  while not all(g.is_done for g in groups):
    n_steps += 1
    penalties = {}
    for group in groups:
      if group.is_done:
        continue
      for token in group.step(model, options, n_steps, penalties):
        penalties[token] = penalties.get(token, 0.0) + options["diversity_penalty"]
  found = [f for g in groups for f in g.finished]
  by_score = {}
  for score, tokens in found:  # duplicates between groups are not ties
    if tokens not in by_score.setdefault(score, []):
      by_score[score].append(tokens)
  ordered([(s, t) for s, ts in by_score.items() for t in ts], len(found))
  found.sort(key=lambda f: -f[0])
  return n_steps, found[: options["returns"]]


def option_sets():
  rng = random.Random(20)
  kinds = ("false", "true", "never")
  for beams in range(1, 7):
    for kind in kinds:
      for penalty in (1.0, 0.0, 2.0, -0.7):
        yield dict(beams=beams, groups=1, diversity_penalty=0.0, length_penalty=penalty,
                   early_stopping=kind, returns=rng.randint(1, beams))
  for beams, groups in ((2, 2), (4, 2), (6, 2), (6, 3), (6, 6), (3, 3)):
    for kind in kinds:
      yield dict(beams=beams, groups=groups, diversity_penalty=rng.choice((0.25, 0.75, 2.5)),
                 length_penalty=rng.choice((1.0, 0.0, 1.5)), early_stopping=kind,
                 returns=rng.randint(1, beams))


def models():
  """Vocabulary, stop token ids and their bias."""
  yield 24, [3], 1.0
  yield 24, [3], -2.0
  yield 30, [0, 7, 29], 0.5
  yield 61, [], 0.0
  yield 4200, [4100], 3.0


def make():
  cases = []
  for m, (vocab, ends, bias) in enumerate(models()):
    for i, options in enumerate(option_sets()):
      if vocab > 1000 and i % 9 != 4:
        continue
      options["max_tokens"] = (12, 7, 1, 16)[(i + m) % 4] if vocab < 1000 else 6
      options["ignore_eos"] = i % 11 == 10
      for seed in range(1000 * m + 10 * i, 1000000):
        model = dict(vocab=vocab, ends=ends, end_bias=bias, seed=seed)
        try:
          n_steps, found = search(model, options)
        except Tie:
          continue
        cases.append(dict(model=model, options=options, n_steps=n_steps,
                          sequences=[dict(score=round(s, 6), ids=t) for s, t in found]))
        break
  return cases


def main():
  parser = argparse.ArgumentParser()
  parser.add_argument("--check", action="store_true", help="compare with what is there")
  arguments = parser.parse_args()
  text = "[\n" + ",\n".join(json.dumps(c, sort_keys=True) for c in make()) + "\n]\n"
  if arguments.check:
    if OUT.read_text(encoding="utf-8") != text:
      raise SystemExit(f"{OUT.name} is not what this makes")
  else:
    OUT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
  main()
