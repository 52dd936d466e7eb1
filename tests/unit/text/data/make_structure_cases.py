"""Makes structure_cases.json: the tokenizers of this folder with other normalizers, pre-tokenizers
and added tokens, some from published tokenizers and the rest random, and the results of Hugging
Face tokenizers (0.23.1) on a few texts with each.

  python3 make_structure_cases.py                     from this folder; needs the package tokenizers
  python3 make_structure_cases.py SEED COUNT OUT      others, for a single comparison
"""

import json
import pathlib
import random
import sys

from tokenizers import Tokenizer

from make_cases import strings

HERE = pathlib.Path(__file__).resolve().parent
TEXTS = 16  # for each structure

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
              "use_regex": False}
FALCON = [{"type": "Punctuation", "behavior": "Contiguous"}, BYTE_LEVEL | {"use_regex": True},
          {"type": "Digits", "individual_digits": False},
          {"type": "Split", "pattern": {"Regex": "[0-9][0-9][0-9]"}, "behavior": "Isolated",
           "invert": False}]
BLOOM = " ?[^(\\s|[.,!?…。，、।۔،])]+"
KIMI = ("[\\p{Han}]+|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]*"
        "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
        "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]+"
        "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}{1,3}| "
        "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+")
PATTERNS = [{"Regex": p} for p in (
    BLOOM, KIMI, "\\w+|\\s", "\\W", "\\W+", "[\\w]+", "[^\\w\\s]+", "[\\W_]+", "\\b",
    "\\w\\b", "\\d{1,3}", "[a-c[x-z]]", "[^a-z&&[^aeiou]]+",
    "[\\p{L}&&[^\\p{Lu}]&&\\w]+",
    "[^[^a-m]]+", "[ &&[\\s]]", "[\\H]+", "[\\p{N}[^!-\\x{FF}]]", "(?i:[e-g&&[^f]])", "\\p{L}+",
    " ", "\\s+$", "[½²]", "é|\\x{301}", "(?<=a)b", "\\r\\n|\\n", "[\\s\\S]{1,4}")] + [
        {"String": s} for s in (" ", "a", "é", "..", "\n", "Ġ")]
BEHAVIORS = ["Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
CONTENTS = ["fox", "E\u0301", "ÉZ", "the F", "<|x|>", "ñ", "1", "½", "Ab C", "<x>", "  ", "日本",
            "É…"]


def split(pattern, behavior="Isolated", invert=False):
  return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}


def sequence(kind, items):
  return {"type": "Sequence", kind: items}


def added(*tokens):
  """(content, flags): s special, n normalized, l lstrip, r rstrip, w single_word."""
  return [{"content": c, "special": "s" in f, "normalized": "n" in f, "lstrip": "l" in f,
           "rstrip": "r" in f, "single_word": "w" in f} for c, f in tokens]


def known():
  """Yields structures of published tokenizers, and each that once gave a difference."""
  word = split({"Regex": "\\w+|\\s"}, "Contiguous")
  renamed = added(("E\u0301zz", "n"), ("ÉÉÉzz", "n"), ("S T..", "sn"), ("ab", "sn"), ("é~", "n"))
  bytes_ = "byte_level_added"
  yield bytes_, None, sequence("pretokenizers", FALCON), []
  yield bytes_, None, sequence("pretokenizers", [split({"Regex": BLOOM}), BYTE_LEVEL]), []
  yield bytes_, None, sequence("pretokenizers", [split({"Regex": KIMI}), BYTE_LEVEL]), []
  yield bytes_, None, sequence("pretokenizers", [word, BYTE_LEVEL]), []
  yield bytes_, None, sequence("pretokenizers", [{"type": "UnicodeScripts"}, BYTE_LEVEL]), []
  yield "unigram_charsmap", None, {"type": "UnicodeScripts"}, added(("fox", "n"))
  yield bytes_, {"type": "ByteLevel"}, None, [t for t in renamed if not t["special"]]
  yield bytes_, {"type": "ByteLevel"}, split({"Regex": "\\w+|\\s"}), []
  yield bytes_, sequence("normalizers", [{"type": "NFC"}, {"type": "ByteLevel"}]), None, []
  for normalizer in ("Lowercase", "NFD", "NFKC", "StripAccents"):
    yield bytes_, {"type": normalizer}, BYTE_LEVEL, renamed
    yield "sentence_pieces", {"type": normalizer}, None, renamed
  yield bytes_, {"type": "Prepend", "prepend": "_"}, BYTE_LEVEL, renamed
  yield "metaspace_words", {"type": "Lowercase"}, {"type": "WhitespaceSplit"}, renamed
  yield "word_piece", {"type": "BertNormalizer"}, {"type": "BertPreTokenizer"}, renamed


class Maker:
  def __init__(self, seed):
    self.r = random.Random(seed)

  def flag(self):
    return self.r.random() < 0.5

  def normalizer(self, depth=0):
    r = self.r
    kinds = ["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt", "Strip", "Replace",
             "Prepend", "BertNormalizer", "ByteLevel", "Sequence"]
    kind = r.choice(kinds if depth == 0 else kinds[:-1])
    made = {"type": kind}
    if kind == "Strip":
      made |= {"strip_left": self.flag(), "strip_right": self.flag()}
    elif kind == "Replace":
      made |= {"pattern": r.choice(PATTERNS), "content": r.choice(["", " ", "_", "ab", "é"])}
    elif kind == "Prepend":
      made["prepend"] = r.choice(["▁", "_", " "])
    elif kind == "BertNormalizer":
      made |= {"clean_text": self.flag(), "handle_chinese_chars": self.flag(),
               "strip_accents": r.choice([None, True, False]), "lowercase": self.flag()}
    elif kind == "Sequence":
      made["normalizers"] = [self.normalizer(1) for _ in range(r.randint(0, 3))]
    return made

  def pre_tokenizer(self, depth=0):
    r = self.r
    kinds = ["Split", "Split", "Split", "ByteLevel", "Metaspace", "Whitespace", "WhitespaceSplit",
             "Punctuation", "Digits", "BertPreTokenizer", "CharDelimiterSplit", "Sequence",
             "Sequence"]
    kind = r.choice(kinds if depth == 0 else kinds[:-2])
    made = {"type": kind}
    if kind == "Split":
      return split(r.choice(PATTERNS), r.choice(BEHAVIORS), r.random() < 0.2)
    if kind == "ByteLevel":
      made |= {"add_prefix_space": self.flag(), "trim_offsets": True, "use_regex": self.flag()}
    elif kind == "Metaspace":
      made |= {"replacement": "▁", "prepend_scheme": r.choice(["always", "first", "never"]),
               "split": self.flag()}
    elif kind == "Punctuation":
      made["behavior"] = r.choice(BEHAVIORS)
    elif kind == "Digits":
      made["individual_digits"] = self.flag()
    elif kind == "CharDelimiterSplit":
      made["delimiter"] = r.choice([" ", "e", "é"])
    elif kind == "Sequence":
      made["pretokenizers"] = [self.pre_tokenizer(1) for _ in range(r.randint(0, 4))]
      if r.random() < 0.5:
        made["pretokenizers"].insert(r.randint(0, len(made["pretokenizers"])),
                                     dict(BYTE_LEVEL))
    return made

  def mended(self, base, pre_tokenizer):
    """Adds ByteLevel mostly if the base has it, and never otherwise: other combinations are
    refused."""
    parts = (pre_tokenizer or {}).get("pretokenizers", [pre_tokenizer] if pre_tokenizer else [])
    if self.r.random() < 0.1:
      return pre_tokenizer
    levels = [p for p in parts if p["type"] == "ByteLevel"]
    others = [p for p in parts if p["type"] not in ("ByteLevel", "Metaspace")]
    if base == "byte_level_added":
      others.insert(self.r.randint(0, len(others)), levels[0] if levels else dict(BYTE_LEVEL))
    return sequence("pretokenizers", others)

  def structure(self):
    r = self.r
    base = r.choice(["byte_level_added"] * 4 + ["sentence_pieces", "metaspace_words", "word_piece",
                                                "unigram_charsmap"])
    tokens = [(c, "".join(f for f in "snlrw" if r.random() < 0.4))
              for c in r.sample(CONTENTS, r.randint(0, 4))]
    return (base, self.normalizer() if r.random() < 0.7 else None,
            self.mended(base, self.pre_tokenizer() if r.random() < 0.9 else None),
            added(*tokens))


def apply(state, normalizer, pre_tokenizer, tokens):
  """Returns the whole tokenizer.json; the test does the same."""
  state["normalizer"], state["pre_tokenizer"] = normalizer, pre_tokenizer
  state["post_processor"] = None
  vocab = state["model"]["vocab"]
  ids = vocab if isinstance(vocab, dict) else {t[0]: i for i, t in enumerate(vocab)}
  following = len(ids)
  state["added_tokens"] = []
  for token in tokens:
    known_id = ids.get(token["content"])
    state["added_tokens"].append(
        dict(token, id=following if known_id is None else known_id))
    following += known_id is None
  return state


def cases(structure, r):
  base, normalizer, pre_tokenizer, tokens = structure
  state = json.loads((HERE / base / "tokenizer.json").read_text(encoding="utf-8"))
  made = {"base": base, "normalizer": normalizer, "pre_tokenizer": pre_tokenizer,
          "added_tokens": tokens}
  t = Tokenizer.from_str(json.dumps(apply(state, normalizer, pre_tokenizer, tokens)))
  names = [t.id_to_token(token["id"]) for token in json.loads(t.to_str())["added_tokens"]]
  if len(set(names)) < len(names):
    return None  # the choice of the token differs from run to run
  words = [t["content"] for t in tokens] or ["fox"]
  made["texts"] = [" ½ ²x ½", "Ab\u0301c ⅓¼ 1²3 a12345b"]
  made["texts"] += strings(TEXTS - 1, r.random(), words)[1:]
  made["ids"] = [t.encode(text, add_special_tokens=False).ids for text in made["texts"]]
  t.encode_special_tokens = True
  made["plain_ids"] = [t.encode(text, add_special_tokens=False).ids for text in made["texts"]]
  size = t.get_vocab_size()
  sequences = made["ids"][:4] + [[i] for i in range(size - len(tokens), size)]
  sequences += [[r.randrange(size) for _ in range(6)] for _ in range(2)]
  made["decode"] = [[ids, t.decode(ids, skip_special_tokens=False),
                     t.decode(ids, skip_special_tokens=True)] for ids in sequences]
  return made


def cases_or_none(structure, r):
  """Returns None if the library refuses the structure or panics on a text."""
  try:
    return cases(structure, r)
  except KeyboardInterrupt:
    raise
  except BaseException:  # pylint: disable=broad-except  # its panics are no Exceptions
    return None


def main():
  seed, count, out = 20261123, 120, HERE / "structure_cases.json"
  structures = list(known())
  if len(sys.argv) > 1:
    seed, count, out, structures = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], []
  maker = Maker(seed)
  structures += [maker.structure() for _ in range(count)]
  found = [c for c in (cases_or_none(s, maker.r) for s in structures) if c is not None]
  pathlib.Path(out).write_text(
      "[" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in found) + "]\n",
      encoding="utf-8")
  print(f"{len(found)} structures of {len(structures)}")


if __name__ == "__main__":
  main()
