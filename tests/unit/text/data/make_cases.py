"""Makes the small tokenizers of this folder and cases.json: the results of Hugging Face tokenizers
(0.23.1) on 500 generated strings. All are trained on this repository's text.

  python3 make_cases.py            from this folder; needs the package tokenizers
"""

import collections
import json
import pathlib
import random

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers,
                        pre_tokenizers, processors, trainers)

HERE = pathlib.Path(__file__).resolve().parent
MODELS = HERE.parents[3] / "models" / "fable"
BYTES = [f"<0x{i:02X}>" for i in range(256)]

OTHER_TEXT = """\
Der schnelle Fuchs springt über den faulen Hund. Où est la bibliothèque ? ¿Qué hora es?
Быстрая лиса прыгает через собаку. Η γρήγορη αλεπού πηδά. שלום עולם 123. مرحبا بالعالم ٤٥٦.
素早い狐が犬を飛び越える。敏捷的狐狸跳过懒狗。빠른 여우가 개를 뛰어넘는다. नमस्ते दुनिया
for (int i = 0; i < n; ++i) { sum += a[i] * 2; }   # a comment
def double(x):\n    return x * 2\n\nprint("3.14159", 1000000, 'it is')  😀👍🏽👨‍👩‍👧
"""


def corpus():
    lines = (MODELS / "heldout.txt").read_text(encoding="utf-8").splitlines()
    return lines + OTHER_TEXT.splitlines() * 3


def train(tokenizer, vocab_size, special, alphabet=(), limit=1000):
    """Trains on the `limit` commonest characters only: the trainer's choice among equally common
    ones differs from run to run."""
    count = collections.Counter("".join(corpus()))
    known = set(sorted(count, key=lambda c: (-count[c], c))[:limit])
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, special_tokens=special,
                                  initial_alphabet=sorted(alphabet), show_progress=False,
                                  max_token_length=12)
    lines = ("".join(c for c in line if c in known) for line in corpus())
    tokenizer.train_from_iterator(lines, trainer)
    return tokenizer


def sentence_pieces():
    """Normalizers Prepend and Replace, bytes for unknown characters, BOS."""
    t = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(),
                                   decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    train(t, 560, ["<unk>", "<s>", "</s>"] + BYTES, limit=70)
    # The byte tokens belong to the vocabulary and are not matched in the text.
    state = json.loads(t.to_str())
    state["added_tokens"] = state["added_tokens"][:3]
    t = Tokenizer.from_str(json.dumps(state))
    t.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
    return t


def metaspace_first():
    """Metaspace before the input only, no split; some bytes are missing, so <unk> occurs too."""
    t = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    t.pre_tokenizer = pre_tokenizers.Metaspace("▁", "first", split=False)
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(),
                                   decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    train(t, 480, ["<unk>", "<s>", "</s>"] + BYTES[:0xC4] + BYTES[0xE2:0xE4], limit=60)
    state = json.loads(t.to_str())
    state["added_tokens"] = state["added_tokens"][:3]
    t = Tokenizer.from_str(json.dumps(state))
    t.add_tokens([AddedToken("<tool>", rstrip=True, normalized=False)])
    t.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="$A $B", special_tokens=[("<s>", 1), ("</s>", 2)])
    return t


def metaspace_words():
    """Metaspace, split; one <unk> per unknown character."""
    t = Tokenizer(models.BPE(unk_token="[UNK]", fuse_unk=False))
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre_tokenizers.Metaspace("▁", "always", split=True)
    t.decoder = decoders.Metaspace("▁", "always", split=True)
    train(t, 420, ["[UNK]", "[PAD]"], limit=60)
    return t


def byte_level_added():
    """Added token flags, digits, ignore_merges, a prefix space, normalizers that lengthen."""
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex("~+"), "  "),
                                         normalizers.Replace("...", "…")])
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=False),
        pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=True)])
    t.decoder = decoders.ByteLevel()
    train(t, 480, ["<|end|>"], pre_tokenizers.ByteLevel.alphabet())
    # Vocabulary words that no merges produce match as a whole.
    state = json.loads(t.to_str())
    state["model"]["ignore_merges"] = True
    state["model"]["merges"] = [m for m in state["model"]["merges"] if m[0] != "Ġ"]
    t = Tokenizer.from_str(json.dumps(state))
    t.add_special_tokens([AddedToken("<|left|>", lstrip=True, special=True),
                          AddedToken("<|right|>", rstrip=True, special=True),
                          AddedToken("<|both|>", lstrip=True, rstrip=True, special=True)])
    t.add_tokens([AddedToken("fox", single_word=True, normalized=False),
                  AddedToken("foxes", single_word=True, normalized=True),
                  AddedToken("é...", normalized=True),
                  AddedToken("   ", normalized=True), AddedToken("  ", normalized=False),
                  AddedToken("<x>", lstrip=True, rstrip=True, single_word=True),
                  AddedToken("ñ", normalized=False)])
    t.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single="$A <|end|>", pair="$A $B",
                                      special_tokens=[("<|end|>", 0)])])
    return t


def splits():
    """Every behaviour of Split; unknown characters are dropped; no decoder."""
    t = Tokenizer(models.BPE())
    split = pre_tokenizers.Split
    t.pre_tokenizer = pre_tokenizers.Sequence([
        split(Regex(r"\r\n|\n"), "removed"),
        split(" ", "merged_with_next"),
        split(Regex(r"[\p{P}\p{S}]"), "contiguous"),
        split(Regex(r"(?i:e)\b|\h{3}"), "merged_with_previous"),
        split(Regex(r"\p{L}{1,3}+|\w|^[^\S\x20]+"), "isolated", invert=True),
        split(Regex(r"(?<=a)(?=b)|\p{Cyrillic}{2}"), "isolated"),
        pre_tokenizers.Digits(individual_digits=True)])
    train(t, 400, ["<e>"], limit=80)
    state = json.loads(t.to_str())
    # The format of older files.
    merges = state["model"]["merges"]
    state["model"]["merges"] = [" ".join(m) for m in merges if " " not in "".join(m)]
    for key in ("ignore_merges", "byte_fallback"):
        del state["model"][key]
    return Tokenizer.from_str(json.dumps(state))


WORDS = ("the fox foxes of a I'm you're DON'T we'll 'tis 's foo_bar 123 4567 3.14 0x1F Hello "
         "if(x){y++;} </div> // # \\n https://a.b/c?d=1 naïve café Straße ΑΒΓ лиса 狐 여우 日本語 "
         "שלום مرحبا नमस्ते ñandú e\u0301 é... ~~ ... <x> fable hen mouse").split(" ")
SPACES = (" " * 8) + (
    "\t\n\r\x0b\x0c\x85\xa0\u1680\u180e\u2003\u200a\u200b\u2028\u2029\u202f\u205f\u3000\ufeff")
MARKS = "\u0300\u0301\u0308\u0323\u0327\u0338\u0345\u05b0\u05bc\u064b\u093c\u3099\u20d7\ufe0f\u200d"
DIGITS = "0\u0660\u0966\uff10\U0001d7ce\u2070\u2460\u2160"
EMOJI = ["😀", "👍🏽", "👨‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "❤️", "1️⃣", "☃"]
BLOCKS = [(0xC0, 0x24F), (0x370, 0x3FF), (0x400, 0x4FF), (0x590, 0x5FF), (0x600, 0x6FF),
          (0x900, 0x97F), (0xE00, 0xE7F), (0x1100, 0x11FF), (0x1E00, 0x1FFF), (0x2000, 0x206F),
          (0x2190, 0x27BF), (0x3040, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xF900, 0xFAFF),
          (0xFB00, 0xFB4F), (0x1D15E, 0x1D1FF), (0x1F300, 0x1F6FF), (0x20000, 0x2A6DF), (1, 31)]


def strings(count, seed, special):
    r = random.Random(seed)

    def some(characters, most):
        return "".join(r.choice(characters) for _ in range(r.randint(1, most)))

    def block():
        low, high = r.choice(BLOCKS)
        return "".join(chr(r.randint(low, high)) for _ in range(r.randint(1, 4)))

    def marked():
        base = r.choice("aeoAqかクक가\u1100\u1161\u0390\u1f82\ufb2cÅ\u0958")
        return base + some(MARKS, r.choice([1, 2, 4, 20]))

    def token():
        text = r.choice(special)
        return r.choice([text, " " + text, text + " ", f" \t{text}\n", text[:-1], f"x{text}y",
                         text + text])

    makers = [lambda: r.choice(WORDS)] * 6 + [
        lambda: some(SPACES, 4), lambda: some(SPACES, 4), block, block, marked, token, token,
        lambda: chr(ord(r.choice(DIGITS)) + r.randint(0, 8)) * r.randint(1, 5),
        lambda: r.choice([" ", "\n", "a", "=", ".", "\r\n", "é", "▁", "~"]) * r.randint(2, 40),
        lambda: some(EMOJI, 2), lambda: r.choice(["<0x41>", "▁", "Ġ", "\ufffd", "\x00", "\x7f"])]
    out = [""]
    while len(out) < count:
        n = r.choice([1, 1, 2, 3, 5])
        out.append("".join(r.choice(makers)() + r.choice(["", " "]) for _ in range(n)))
    return out


def main():
    made = {f.__name__: f() for f in (sentence_pieces, metaspace_first, metaspace_words,
                                      byte_level_added, splits)}
    for name, tokenizer in made.items():
        folder = HERE / name
        folder.mkdir(exist_ok=True)
        state = json.loads(tokenizer.to_str())
        (folder / "tokenizer.json").write_text(
            json.dumps(state, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
    tokenizers = {name: HERE / name for name in made}
    tokenizers["fable"] = MODELS / "fable-2m"
    tokenizers = {name: Tokenizer.from_file(str(folder / "tokenizer.json"))
                  for name, folder in tokenizers.items()}
    special = sorted({t.content for tokenizer in tokenizers.values()
                      for t in tokenizer.get_added_tokens_decoder().values()})
    texts = strings(500, 20240229, special)
    r = random.Random(7)
    result = {"texts": texts, "tokenizers": {}}
    for name, tokenizer in tokenizers.items():
        vocab = tokenizer.get_vocab()
        # 0.23 decodes added tokens that match normalized text to the normalized text.
        renamed = {i for i, t in tokenizer.get_added_tokens_decoder().items()
                   if tokenizer.id_to_token(i) != t.content}
        any_id = sorted(set(vocab.values()) - renamed)
        bytes_id = [vocab[b] for b in BYTES if b in vocab] or any_id
        sequences = []
        for i in range(120):
            pool = any_id if i % 3 == 0 else bytes_id
            sequences.append([r.choice(pool if r.random() < 0.7 else any_id)
                              for _ in range(r.randint(1, 9))])
        sequences += [[i for i in tokenizer.encode(t).ids if i not in renamed] for t in texts[::20]]
        result["tokenizers"][name] = {
            "ids": [tokenizer.encode(t, add_special_tokens=False).ids for t in texts],
            "with_special": [tokenizer.encode(t).ids for t in texts[:20]],
            "decode": [[ids, tokenizer.decode(ids, skip_special_tokens=False),
                        tokenizer.decode(ids, skip_special_tokens=True)] for ids in sequences],
        }
    (HERE / "cases.json").write_text(
        json.dumps(result, ensure_ascii=True, separators=(",", ":")).replace("],[", "],\n[") + "\n",
        encoding="utf-8")


if __name__ == "__main__":
    main()
