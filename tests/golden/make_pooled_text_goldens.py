#!/usr/bin/env python3
"""Writes data/pooled_text/*.json: what small checkpoints with tokenizers make of texts and pairs.

  make_pooled_text_goldens.py [--check] [--out DIR] [NAME ...]

As make_pooled_goldens.py, but the ids come from transformers' tokenizer of the named file: special
tokens, token types, truncation (longest_first for pairs), prompts, and the pair text of a decoder
whose score is the probability of one of two tokens.
"""

import sys

import torch
import transformers

from make_goldens import DEFAULTS, HERE, amplitude_of, fill, make_model, rounded, run_tool, \
    stored_shapes
from make_pooled_goldens import BERT, ONE_LABEL, QWEN, files_of, pool

ROOT = HERE.parent.parent
WORD_PIECE = "tests/unit/text/data/word_piece/tokenizer.json"
FABLE = "models/fable/fable-2m/tokenizer.json"
TEXTS = ["the fox", "", "A fox and a hen met in the wood; the hen was old, and the fox was young.",
         "hen " * 60, "Caf\u00e9 \u2014 3 foxes!"]
TEMPLATE = "Task: {instruction}\nAsked: {query}\nText: {document}\nAnswer:"
INSTRUCTION = "say if the text is about it"
QUERY = "where is the old hen?"
PROMPTS = {"query": "query: ", "passage": "passage: "}


def cases():
  vocab = len(transformers.PreTrainedTokenizerFast(tokenizer_file=str(ROOT / WORD_PIECE)))
  bert = {**BERT, "vocab_size": vocab, "max_position_embeddings": 40}
  fable = len(transformers.PreTrainedTokenizerFast(tokenizer_file=str(ROOT / FABLE)))
  return {
      "pairs": ({**bert, "architectures": ["BertForSequenceClassification"],
                 "id2label": ONE_LABEL, "sentence_transformers": {
                     "activation_fn": "torch.nn.modules.linear.Identity"}},
                WORD_PIECE, None, [], False, {}),
      "prompts": ({**bert, "architectures": ["BertModel"]}, WORD_PIECE, "mean_tokens", [], True,
                  PROMPTS),
      "two_tokens": ({**QWEN, "architectures": ["Qwen3ForCausalLM"], "vocab_size": fable}, FABLE,
                     "two", [], False, {}),
  }


@torch.no_grad()
def results_of(name, model, tokenizer, spec, tokens):
  _, _, mode, _, _, prompts = spec
  most = model.config.max_position_embeddings
  out = []
  for text in TEXTS:
    if name == "pairs":
      # A list, as CrossEncoder has: a lone empty text would count as no second text.
      ids = tokenizer([QUERY], [text], truncation="longest_first", max_length=most,
                      return_tensors="pt", return_token_type_ids=True)
      out.append(model(**ids).logits[0].double())
    elif name == "prompts":
      ids = tokenizer(prompts["passage"] + text, truncation=True, max_length=most,
                      return_tensors="pt")
      vector = pool(model(**ids).last_hidden_state[0].double(), mode)
      out.append(vector / vector.norm())
    else:
      head, tail = TEMPLATE.split("{document}")
      head = head.format(instruction=INSTRUCTION, query=QUERY) + text
      tail = tokenizer(tail, add_special_tokens=False)["input_ids"]
      ids = tokenizer(head, add_special_tokens=False)["input_ids"][:most - len(tail)] + tail
      logits = model(torch.tensor([ids])).logits[0, -1].double()
      out.append(torch.softmax(logits[tokens], -1)[:1])
  return out


def make(name, find_seeds):
  del find_seeds  # there are no tokens to choose
  spec = cases()[name]
  c, file = spec[:2]
  tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(ROOT / file))
  case = {"name": name, "config": c, **DEFAULTS, "base_seed": 9,
          "amplitude": amplitude_of(c)}
  model = make_model(c)
  fill(model, case, case["base_seed"])
  case["tensors"] = stored_shapes(model)
  tokens = [tokenizer.get_vocab()[text] for text in ("yes", "No")] if name == "two_tokens" else []
  files = {}
  if name == "prompts":
    files = files_of((c, *spec[2:]), c["hidden_size"])
    files["config_sentence_transformers.json"]["default_prompt_name"] = "passage"
  results = results_of(name, model, tokenizer, spec, tokens)
  case |= {"tokenizer": file, "files": files, "pair_template": TEMPLATE,
           "instruction": INSTRUCTION, "query": QUERY, "texts": TEXTS,
           "logits": [[rounded(float(x)) for x in result] for result in results]}
  print(f"{name:12s}", [round(float(r[0]), 4) for r in results], flush=True)
  return case


if __name__ == "__main__":
  sys.exit(run_tool(__doc__, ["pairs", "prompts", "two_tokens"], make,
                    HERE / "data" / "pooled_text"))
