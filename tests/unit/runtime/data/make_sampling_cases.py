#!/usr/bin/env python3
"""Writes sampling_cases.json: what the logits processors and warpers of transformers 5.12 make of
random logits and histories. Needs torch and transformers:

usage: python3 make_sampling_cases.py
"""

import json
import pathlib
import random

import torch
from transformers.generation import logits_process as lp

OUT = pathlib.Path(__file__).with_name("sampling_cases.json")
VOCAB = 40
EOS = [1, 7]


def flat(sequences):
  ids = []
  for sequence in sequences:
    ids += sequence + [-1]
  return ids[:-1]


def processors(options, n_prompt):
  """Returns the chain for the options, in the order of transformers' _get_logits_processor."""
  made = []
  if "sequence_bias" in options:
    made.append(lp.SequenceBiasLogitsProcessor(
        {tuple(ids): bias for ids, bias in options["sequence_bias"]}))
  if "repetition_penalty" in options:
    made.append(lp.RepetitionPenaltyLogitsProcessor(options["repetition_penalty"]))
  if "no_repeat_ngram_size" in options:
    made.append(lp.NoRepeatNGramLogitsProcessor(options["no_repeat_ngram_size"]))
  if "bad_words" in options:
    made.append(lp.NoBadWordsLogitsProcessor(options["bad_words"], EOS))
  if "min_new_tokens" in options:
    made.append(lp.MinNewTokensLengthLogitsProcessor(n_prompt, options["min_new_tokens"], EOS))
  if "forced_first" in options:
    made.append(lp.ForcedBOSTokenLogitsProcessor(options["forced_first"]))
  if "forced_last" in options:
    made.append(lp.ForcedEOSTokenLogitsProcessor(options["max_length"], options["forced_last"]))
  if "suppress_tokens" in options:
    made.append(lp.SuppressTokensLogitsProcessor(options["suppress_tokens"]))
  if "begin_suppress_tokens" in options:
    made.append(lp.SuppressTokensAtBeginLogitsProcessor(options["begin_suppress_tokens"], n_prompt))
  return made


def warpers(options):
  made = []
  if "temperature" in options:
    made.append(lp.TemperatureLogitsWarper(options["temperature"]))
  if "top_k" in options:
    made.append(lp.TopKLogitsWarper(options["top_k"]))
  if "top_p" in options:
    made.append(lp.TopPLogitsWarper(options["top_p"]))
  if "min_p" in options:
    made.append(lp.MinPLogitsWarper(options["min_p"]))
  if "typical_p" in options:
    made.append(lp.TypicalLogitsWarper(options["typical_p"]))
  return made


def case(options, ids, n_prompt, logits):
  scores = torch.tensor([logits], dtype=torch.float32)
  history = torch.tensor([ids], dtype=torch.long)
  for processor in processors(options, n_prompt):
    scores = processor(history, scores.clone())
  processed = scores[0].tolist()
  made = {"ids": ids, "n_prompt": n_prompt, "logits": logits,
          "processed": [None if x == float("-inf") else x for x in processed]}
  draws = warpers(options)
  for warper in draws:
    scores = warper(history, scores.clone())
  if draws:
    made["probabilities"] = torch.softmax(scores[0].double(), -1).tolist()
  ours = dict(options)
  if pairs := ours.pop("sequence_bias", None):
    ours["bias_ids"] = flat([ids for ids, _ in pairs])
    ours["bias_values"] = [bias for _, bias in pairs]
  if words := ours.pop("bad_words", None):
    ours["bad_words"] = flat(words)
  made["is_last"] = ours.pop("max_length", -1) == len(ids) + 1
  made["options"] = ours
  return made


def main():
  random.seed(20)
  cases = []
  for n in range(4):
    ids = [random.randrange(8) for _ in range(30)]
    logits = [round(random.gauss(0, 3), 4) for _ in range(VOCAB)]

    def add(options, ids=ids, n_prompt=10, logits=logits):
      cases.append(case(options, ids, n_prompt, logits))

    add({"repetition_penalty": random.choice([0.8, 1.05, 1.3, 2.0])})
    add({"no_repeat_ngram_size": 1 + n % 4})
    add({"no_repeat_ngram_size": 3}, ids=ids[:2], n_prompt=1)
    add({"sequence_bias": [[[3], -2.5], [[ids[-1], 5], 4.0], [[ids[-2], ids[-1], 9], -1.0],
                           [[ids[-1] + 1, 11], 7.0], [[12], 1.5]]})
    add({"sequence_bias": [[[ids[0], 5], 4.0], [[9, ids[0], 6], 3.0]]}, ids=ids[:1], n_prompt=1)
    add({"bad_words": [[2], [7], [ids[-1], 4], [ids[-2], ids[-1], 20], [30, 31]]})
    add({"min_new_tokens": 20}), add({"min_new_tokens": 21})
    add({"forced_first": 5}, ids=ids[:1], n_prompt=1)
    add({"forced_first": 5})
    add({"forced_last": 6, "max_length": 31}), add({"forced_last": 6, "max_length": 32})
    add({"suppress_tokens": [0, 3, 39]})
    add({"begin_suppress_tokens": [4, 5]}, n_prompt=30), add({"begin_suppress_tokens": [4, 5]})
    add({"sequence_bias": [[[3], 2.0], [[ids[-1], 8], 1.0]], "repetition_penalty": 1.4,
         "no_repeat_ngram_size": 2, "bad_words": [[11], [ids[-1], 12]], "min_new_tokens": 25,
         "suppress_tokens": [20, 21], "temperature": 0.8, "top_k": 20, "top_p": 0.9})
    for typical in (0.2, 0.5, 0.9, 0.999):
      add({"temperature": 1.0, "typical_p": typical})
      add({"temperature": 0.7, "top_k": 12, "min_p": 0.02, "typical_p": typical})
  OUT.write_text("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n", encoding="utf-8")
  print(f"{len(cases)} cases")


if __name__ == "__main__":
  main()
