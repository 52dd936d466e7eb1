"""Encodes generated strings with Hugging Face tokenizers, for tokenizer_compare.

  python3 make_tokenizer_cases.py FOLDER_OF_TOKENIZERS OUT_FOLDER [--count 10000] [NAME ...]

FOLDER_OF_TOKENIZERS holds NAME/tokenizer.json. Writes OUT_FOLDER/NAME.cases for each name, with
for every string: u32 bytes of the text, the text, u32 n, n ids without special tokens (all little
endian). If a folder has only a tokenizer.model, SentencePiece provides the ids. All names get the
same strings, except for the texts of added tokens in them.
"""

import argparse
import pathlib
import random
import struct

WORDS = ("the quick brown fox of a I'm you're DON'T we'll 'tis 's foo_bar 123 4567 3.14 0x1F Hello "
         "if(x){y++;} </div> // # \\n https://a.b/c?d=1 naïve café Straße ΑΒΓ лиса 狐 여우 日本語 "
         "שלום مرحبا नमस्ते ñandú e\u0301 é... ~~ ... <x> return None; std::vector<int> "
         "İstanbul ﬁne Ⅻ ½ ㎏ ﷺ ｆｕｌｌ ǅ ẞ ﬀ ㍿ "
         "e.g. don't U.S.A. $1,234.56 50% a@b.co #tag __init__").split(" ")
SPACES = (" " * 8) + (
    "\t\n\r\x0b\x0c\x85\xa0\u1680\u180e\u2003\u200a\u200b\u2028\u2029\u202f\u205f\u3000\ufeff")
MARKS = ("\u0300\u0301\u0308\u0323\u0327\u0338\u0345\u05b0\u05bc\u064b\u093c\u3099\u20d7\ufe0f"
         "\u200d\u0903\u0e33\u0600\u1160\u11a8")
DIGITS = "0\u0660\u0966\uff10\U0001d7ce\u2070\u2460\u2160"
EMOJI = ["😀", "👍🏽", "👨‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "🇩🇪🇫", "❤️", "1️⃣", "☃", "👩‍🚀"]
BLOCKS = [(0x21, 0x7E), (0xA0, 0x24F), (0x370, 0x3FF), (0x400, 0x4FF), (0x590, 0x5FF),
          (0x600, 0x6FF), (0x900, 0x97F), (0xE00, 0xE7F), (0x1100, 0x11FF), (0x1E00, 0x1FFF),
          (0x2000, 0x206F), (0x2100, 0x214F), (0x2190, 0x27BF), (0x3040, 0x30FF), (0x3200, 0x33FF),
          (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xF900, 0xFAFF), (0xFB00, 0xFB4F),
          (0xFE70, 0xFEFC), (0xFF01, 0xFFEE), (0x1D15E, 0x1D1FF), (0x1D400, 0x1D7FF),
          (0x1F300, 0x1F6FF), (0x20000, 0x2A6DF), (1, 31), (0xE000, 0xE100), (0xFFF9, 0xFFFF),
          (0x10FFF0, 0x10FFFF), (0x300, 0x36F)]


def strings(count, seed, special):
    r = random.Random(seed)

    def some(characters, most):
        return "".join(r.choice(characters) for _ in range(r.randint(1, most)))

    def block():
        low, high = r.choice(BLOCKS)
        return "".join(chr(r.randint(low, high)) for _ in range(r.randint(1, 4)))

    def marked():
        base = r.choice("aeoAqかクक가\u1100\u1161\u0390\u1f82\ufb2cÅ\u0958ａｶ½\r")
        return base + some(MARKS, r.choice([1, 1, 2, 4, 20]))

    def any_character():
        c = r.randrange(0x110000)
        return "a" if 0xD800 <= c < 0xE000 else chr(c)

    def token():
        text = r.choice(special)
        return r.choice([text, " " + text, text + " ", f" \t{text}\n", text[:-1], f"x{text}y",
                         text + text])

    makers = [lambda: r.choice(WORDS)] * 8 + [
        lambda: some(SPACES, 4), lambda: some(SPACES, 4), block, block, block, marked, marked,
        any_character, lambda: chr(ord(r.choice(DIGITS)) + r.randint(0, 8)) * r.randint(1, 5),
        lambda: r.choice([" ", "\n", "a", "=", ".", "\r\n", "é", "▁", "~", "ab", "漢"]) *
        r.choice([2, 3, 5, 9, 40, 200]),
        lambda: some(EMOJI, 2),
        lambda: r.choice(["<0x41>", "▁", "Ġ", "\ufffd", "\ufffe", "\x00", "\x7f", "##", "</w>"])]
    if special:
        makers += [token, token]
    out = [""]
    while len(out) < count:
        n = r.choice([1, 1, 2, 3, 5, 12])
        out.append("".join(r.choice(makers)() + r.choice(["", " "]) for _ in range(n)))
    return out


def reference(folder):
    """Returns (texts of added tokens, text -> ids)."""
    if (folder / "tokenizer.json").exists():
        from tokenizers import Tokenizer
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        special = sorted(t.content for t in tokenizer.get_added_tokens_decoder().values())
        return special, lambda text: tokenizer.encode(text, add_special_tokens=False).ids
    from sentencepiece import SentencePieceProcessor
    model = SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
    return [], model.encode


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--count", type=int, default=10000)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    names = options.names or sorted(p.parent.name for p in options.folder.glob("*/tokenizer.json"))
    for name in names:
        special, encode = reference(options.folder / name)
        with open(options.out / f"{name}.cases", "wb") as file:
            for text in strings(options.count, 20240229, special):
                data = text.encode("utf-8")
                ids = encode(text)
                file.write(struct.pack("<I", len(data)) + data)
                file.write(struct.pack(f"<I{len(ids)}I", len(ids), *ids))
        print(f"{name}: {options.count} strings")


if __name__ == "__main__":
    main()
