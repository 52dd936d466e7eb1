#!/usr/bin/env python3
"""Writes data/pre_tokenizers.json: how Hugging Face tokenizers splits texts for each
tokenizer.ggml.pre that converter/gguf/pre_tokenizers.cc knows.

  make_pre_tokenizers.py [--out FILE]

Needs tokenizers. The pipelines are those of the models' tokenizer.json files; llama.cpp's
src/llama-vocab.cpp names them and quotes most of the regular expressions. The model is byte-level
BPE whose merges join two neighbouring characters of the texts, so that every split between them
shows in the ids.
"""

import argparse
import json
import pathlib

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

HERE = pathlib.Path(__file__).resolve().parent

ENDINGS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN = ENDINGS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|" + REST
LLAMA = ENDINGS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|" + REST
LOWER, UPPER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"


def by_case(endings, digits):
  start = r"[^\r\n\p{L}\p{N}]?"
  return (f"{start}{UPPER}*{LOWER}+{endings}|{start}{UPPER}+{LOWER}*{endings}|{digits}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")


GPT4O = by_case(ENDINGS + "?", r"\p{N}{1,3}")
DEEPSEEK = [r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
            "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?"
            "[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"]
BLOOM = " ?[^(\\s|[.,!?…。，、।۔،])]+"
JAIS = (ENDINGS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
        r"|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)"
        r"|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}")
EXAONE = (ENDINGS + r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+")
SEED = (ENDINGS + "|[^\r\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\r\n]+|\\s*[\r\n]+"
        "|\\s+(?!\\S)|\\s+")
DEFAULT = [r"[\p{P}\$\+<=>\^~\|]+",
           r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)", r"\p{N}+",
           "[0-9][0-9][0-9]"]
QWEN35 = (ENDINGS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
YOUTU = ["[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+",
         by_case(ENDINGS + "?", r"\p{N}")]

CASED = ("A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚ"
         "Ḁ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\u1f7dᾀ-ᾴᾶ-ᾼ\u1fbeῂ-ῄῆ-ῌῐ-\u1fd3ῖ-\u1fdbῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\u2126ℨ"
         "\u212a-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲"
         "𑢠-𑣟𞤀-𞥃")
DEEPSEEK_LLM = ["[\r\n]", f"\\s?[{CASED}]+", "\\s?[!-/:-~！-／：-～‘-‟　-。]+", "\\s+$",
                "[一-龥ࠀ-一가-퟿]+", r"\p{N}"]

# Regular expressions of splits, or ByteLevel's own: None, behind single digits: "digits", between
# punctuation and digits: "falcon".
GROUPS = [
    (DEFAULT, "default"),
    (None, "gpt-2 phi-2 exaone4 trillion granite-docling gigachat a.x-4.0 mellum roberta-bpe olmo "
           "mpt modern-bert"),
    ("digits", "smollm starcoder refact codeshell minerva-7b mellum2 command-r"),
    ([LLAMA], "llama-bpe llama3 llama-v3 lfm2 falcon3 falcon-h1 pixtral midm-2.0 smaug-bpe dbrx "
              "glm4 chatglm-bpe"),
    ([JAIS], "jais-2"),
    ([QWEN], "hunyuan solar-open stablelm2 qwen2 deepseek-r1-qwen"),
    ([QWEN35], "qwen35"),
    ([r"\p{N}{1,3}", ENDINGS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+|" + REST], "minicpm5"),
    ([r"[^\n]+|[\n]+", QWEN], "laguna"),
    ([SEED], "seed-coder"),
    ([EXAONE], "exaone-moe"),
    (["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+", r"\p{N}"], "deepseek-coder"),
    (DEEPSEEK_LLM, "deepseek-llm"),
    ("falcon", "falcon"),
    (DEEPSEEK, "deepseek-v3 hunyuan-dense joyai-llm"),
    (YOUTU, "youtu"),
    ([by_case("", r"\p{N}")], "tekken"),
    ([GPT4O], "gpt-4o kanana2 minimax-m2 llama4"),
    ([r"\d{1,3}(?=(?:\d{3})*\b)", GPT4O], "tiny_aya cohere2moe"),
    ([BLOOM], "bloom poro-chat gpt3-finnish"),
    ([BLOOM, r"\p{N}"], "viking"),
]
COMPOSE = "olmo mpt modern-bert command-r qwen2 deepseek-r1-qwen qwen35".split()
IGNORE_MERGES = ("llama-bpe llama3 llama-v3 lfm2 falcon3 falcon-h1 pixtral midm-2.0 minicpm5 youtu "
                 "tekken llama4").split()
TEXTS = [
    "I'm you're DON'T we'Ll 'tis 's it's IT'S", "1 12 123 1234 12345 1234567 3.14159 v12a345",
    "helloWorld HTTPServer aB ABc naïveÉcole", "a  b   c    d\t\te \n f\r\n\r\n  g\n\n\nh   ",
    "if (x) {\n    y += 1; // done\n}\n\n\treturn /* z */ None;\r\n",
    "!!! ... --- #tag @user $5 <x> a/b\n/c /\n// $$\n+=\n=",
    "日本語 ひらがな カタカナ 中文，标点。「引用」",
    "한국어 조사 ㄱㄴㄷ ㅏ 가나다", "ㄅㄆㄇ 注音", "Привет, мир! Ελλάδα שלום مرحبا، नमस्ते। ไทย",
    "e\u0301a\u0308 o\u0323\u0302x", "a b c d e f", "½ Ⅻ ٣٤٥ ²³ ①②", "x…y—z “q” ‘r’：；！",
    " " * 13 + "x" + " " * 6 + "\n" + " " * 3, "\u00a0\u3000x\u2003y\u200bz",
    "_a_b __c__ .d ,e ;f (g)", "x  12   345", "#a $b %c &d *e +f -g .h /i :j", "😀 👍🏽 x😀y",
    "ǅabc ʰabc ªº", "", " ", "\n", "a\r\rb\n\r c",
]


def alphabet():
  return sorted(pre_tokenizers.ByteLevel.alphabet())


def pipeline(group):
  own_regex = not isinstance(group, list)
  byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=own_regex)
  if group is None:
    return byte_level
  if group == "digits":
    return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level])
  if group == "falcon":
    return pre_tokenizers.Sequence(
        [pre_tokenizers.Punctuation("contiguous"), byte_level, pre_tokenizers.Digits(False),
         pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")])
  return pre_tokenizers.Sequence(
      [pre_tokenizers.Split(Regex(regex), "isolated") for regex in group] + [byte_level])


def merges():
  """Merges of two bytes that are neighbours in a text, then of such pairs with what follows."""
  whole = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
  pairs, threes, fours = {}, {}, {}
  for text in TEXTS:
    for form in (text, normalizers.NFC().normalize_str(text)):
      for piece, _ in whole.pre_tokenize_str(form):
        for i in range(len(piece) - 1):
          pairs[piece[i], piece[i + 1]] = True
        for i in range(len(piece) - 2):
          threes[piece[i:i + 2], piece[i + 2]] = True
        for i in range(len(piece) - 3):
          fours[piece[i:i + 2], piece[i + 2:i + 4]] = True
  return [*pairs, *threes, *fours]


def main():
  parser = argparse.ArgumentParser(description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--out", type=pathlib.Path, default=HERE / "data" / "pre_tokenizers.json")
  arguments = parser.parse_args()
  pairs = merges()
  tokens = alphabet() + list(dict.fromkeys(a + b for a, b in pairs))
  vocabulary = {token: i for i, token in enumerate(tokens)}
  rows = []
  for group, names in GROUPS:
    for name in names.split():
      model = models.BPE(vocabulary, pairs, ignore_merges=name in IGNORE_MERGES)
      tokenizer = Tokenizer(model)
      tokenizer.pre_tokenizer = pipeline(group)
      if name in COMPOSE:
        tokenizer.normalizer = normalizers.NFC()
      ids = [tokenizer.encode(text, add_special_tokens=False).ids for text in TEXTS]
      same = next((row for row in rows if row["ids"] == ids), None)
      if same is None:
        rows.append({"names": [name], "ids": ids})
      else:
        same["names"].append(name)
  lines = [json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows]
  head = [f'"{key}": {json.dumps(value, ensure_ascii=True)}'
          for key, value in (("texts", TEXTS), ("tokens", tokens), ("merges", pairs))]
  arguments.out.write_text("{" + ",\n".join(head) + ',\n"rows": [\n' + ",\n".join(lines) + "]}\n")


if __name__ == "__main__":
  main()
