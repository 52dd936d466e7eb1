#!/usr/bin/env python3
"""Writes data/words.json: how transformers joins tokens to words.

  make_word_goldens.py [--check]

A case has the pieces of a text (each of whole characters, as _split_tokens_on_unicode gives them),
whether its language has spaces, and the words.
"""

import json
import pathlib
import sys

from transformers.models.whisper import tokenization_whisper as whisper

OUT = pathlib.Path(__file__).parent / "data/words.json"
# Language, and a token's text each.
CASES = [
    ("english", " The quick brown fox|,| jump|ed| over| the| lazy| dog|.".split("|")),
    ("english", " \"|Hello|,\"| she| said|;| \"|who| is| it|?|\"".split("|")),
    ("english", ["Un", "believ", "able", "!", "!!", " (", "see", " [", "1", "]", ")", "..."]),
    ("english", [" $", "5", ".", "50", " a", "-", "b", " -", " c", " ", "d", "\n", "e"]),
    ("english", [" don", "'", "t", " '", "tis", "'", " “", "so", "”", " ¿", "qué", "?"]),
    ("german", [" Gr", "ö", "ße", ",", " 3", ".", "000", " €", "."]),
    ("chinese", ["你好", "，", "世", "界", "。", "OK", "、", "好", "！"]),
    ("japanese", [" 「", "こ", "れ", "は", "」", "？", " \"", "x", "\""]),
    ("english", [" (\"", "a", "\")", " [", " {", "b", "}"]),
    ("english", ["."]),
    ("english", [" (", " [", " -"]),
    ("english", [" a ", ".", " b", " .", ".", "."]),
]


class Tokens:
  """A tokenizer whose ids are places in a list of texts."""

  eos_token_id = 1000
  language = None

  def __init__(self, texts):
    self.texts = texts

  def decode(self, ids, **_):
    return "".join(self.texts[i] for i in ids)


def make(language, texts):
  words, _, indices = whisper._combine_tokens_into_words(Tokens(texts), list(range(len(texts))),
                                                         language)
  assert "".join(words) == "".join(texts)
  assert [i for word in indices for i in word] == list(range(len(texts)))
  return {"spaces": language not in ("chinese", "japanese"), "pieces": texts, "words": words}


def main():
  text = "[\n" + ",\n".join(json.dumps(make(*case), ensure_ascii=False) for case in CASES) + "\n]\n"
  if "--check" in sys.argv:
    return int(OUT.read_text() != text)
  OUT.write_text(text)
  return 0


if __name__ == "__main__":
  sys.exit(main())
