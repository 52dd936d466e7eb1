"""Makes more small tokenizers, at least one for each model besides byte-level BPE and for each of
their steps, and model_cases.json: the results of Hugging Face tokenizers (0.23.1) on 500
generated strings, and of SentencePiece (0.2.2) for folders with only its model. All are trained
on this repository's text.

  python3 make_model_cases.py      from this folder; needs the packages tokenizers, sentencepiece
"""

import base64
import io
import json
import pathlib
import random
import tempfile

import sentencepiece
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers,
                        pre_tokenizers, processors, trainers)

from make_cases import BYTES, HERE, corpus, strings

RULES = [("ﬁ", "fi"), ("½", " 1/2"), ("①", "1"), ("Å", "A"), ("e\u0301", "E!"), ("\r", " "),
         ("\t", " "), ("\n", " "), ("\u3000", " "), ("\u200b", ""), ("ａ", "a"), ("Ａ", "A"),
         ("ｶ", "カ"),
         ("ﷺ", "one two three four five"), ("…", "..."), ("ʼ", "'"), ("\ufb2c", "ש"),
         ("\u0301", ""),
         ("\ufffd", " "), ("\u00ad", ""), ("~~", "tilde"), ("café", "coffee")]


def train_pieces(folder, kind, **settings):
    """Trains a SentencePiece model with custom rules."""
    with tempfile.TemporaryDirectory() as work:
        rules = pathlib.Path(work) / "rules.tsv"
        rules.write_text("".join(
            " ".join(f"{ord(c):X}" for c in a) + "\t" + " ".join(f"{ord(c):X}" for c in b) + "\n"
            for a, b in RULES), encoding="utf-8")
        if settings.pop("use_rules", True):
            settings["normalization_rule_tsv"] = str(rules)
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(corpus()), model_writer=model, model_type=kind,
            num_threads=1, minloglevel=2, **settings)
    folder.mkdir(exist_ok=True)
    (folder / "tokenizer.model").write_bytes(model.getvalue())
    return model.getvalue()


def pieces_unigram():
    return {"kind": "unigram", "vocab_size": 420, "character_coverage": 0.98,
            "user_defined_symbols": ["<sep>", "fox"]}


def pieces_unigram_bytes():
    return {"kind": "unigram", "vocab_size": 620, "character_coverage": 0.98,
            "byte_fallback": True, "add_dummy_prefix": False, "use_rules": False,
            "normalization_rule_name": "identity", "remove_extra_whitespaces": False, "bos_id": -1}


def pieces_bpe():
    return {"kind": "bpe", "vocab_size": 560, "character_coverage": 0.98, "byte_fallback": True,
            "use_rules": False, "normalization_rule_name": "identity",
            "remove_extra_whitespaces": False}


# Characters of recent Unicode versions: the reference classifies them by older tables.
LATE = [
    0x1145D, 0x16FE2, 0x2E5B, 0x11AA1, 0x11F48, 0x2E48, 0xC77, 0x11F47, 0x11665, 0x1E95E,
    0x1145B, 0x113D4, 0x11F47, 0x16E9A, 0x1E5FF, 0x11F48, 0x61D, 0x1E95F, 0x119E4, 0x1611F,
    0x1E4ED, 0x1AE7, 0x10F4F, 0x13455, 0x1AE7, 0x1E5EF, 0x11D3A, 0x119DD, 0x1CF16, 0x89D,
    0x1612F, 0x1CF28, 0xD3B, 0x1AEB, 0x7FD, 0x1E6F5, 0x1CF1E, 0x1E945, 0x11D40, 0x8D5, 0x113CE,
    0x1CF29, 0x8CF, 0x1CF41, 0x1E011, 0x10F84, 0x11B63, 0x11D42, 0x1CF0A, 0x1E135, 0x1E017,
    0x11A04, 0x7FD, 0x1E94A, 0x13439, 0x13438, 0x1343E, 0x1343A, 0x13430, 0x13437, 0x110CD,
    0x891, 0x13430, 0x1343B, 0x13432, 0x13434, 0x13439, 0x13435, 0x13439, 0x1343C, 0x890,
    0x1343F, 0x32E78, 0x32D59, 0x33336, 0x32F29, 0x3298E, 0x32CE5, 0x18D95, 0x32B12, 0x32757,
    0x32C90, 0x33375, 0x3346C, 0x33455, 0x32573, 0x328E0, 0x33479, 0x88F, 0x33479, 0x113C8,
    0x11938, 0x11385, 0x11383, 0x16126, 0x16D6A, 0x16126, 0x11383, 0x16122, 0x11383, 0x16124,
    0x1138E, 0x105C9, 0x11938, 0x16124, 0x16124, 0x105C9, 0x16D6A, 0x10798, 0x10784, 0x1E053,
    0x1E056, 0x10784, 0x1CCE3, 0x1FBF1, 0x1E04F, 0x1CCD7, 0x1E046, 0x11938, 0x1E03A, 0x107B7,
    0x10782, 0x16128, 0xA7F1, 0x32FF, 0x1FBF9,
]


def fields(message):
    """Yields the length-delimited fields of a protocol buffer: (number, bytes)."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        tag = varint()
        if tag & 7 == 2:
            size = varint()
            yield tag >> 3, message[at:at + size]
            at += size
        elif tag & 7 == 0:
            varint()
        else:
            at += 4 if tag & 7 == 5 else 8


def charsmap():
    """Returns precompiled_charsmap of the custom rules, from a SentencePiece model."""
    with tempfile.TemporaryDirectory() as work:
        data = train_pieces(pathlib.Path(work) / "m", "unigram", vocab_size=420)
    normalizer = [value for number, value in fields(data) if number == 3][0]
    return [value for number, value in fields(normalizer) if number == 2][0]


def unigram(byte_fallback=False):
    t = Tokenizer(models.Unigram())
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<pad>", "</s>", "<unk>"] + (BYTES if byte_fallback else [])
    t.train_from_iterator(corpus(), trainers.UnigramTrainer(
        vocab_size=500 + 256 * byte_fallback, special_tokens=special, unk_token="<unk>",
        show_progress=False, initial_alphabet=list("abcdefghij▁")))
    state = json.loads(t.to_str())
    state["added_tokens"] = state["added_tokens"][:3]
    # Makes rare characters unknown.
    keep = set("▁abcdefghijklmnopqrstuvwxyzABDEFGHILMNOSTW.,!?'\"0123")
    vocab = state["model"]["vocab"]
    state["model"]["vocab"] = vocab[:len(special)] + [
        p for p in vocab[len(special):] if set(p[0]) <= keep]
    state["model"]["byte_fallback"] = byte_fallback
    return state


def unigram_charsmap():
    """As T5: Precompiled, WhitespaceSplit, Metaspace; an unknown token."""
    state = unigram()
    state["normalizer"] = {"type": "Precompiled", "precompiled_charsmap":
                           base64.b64encode(charsmap()).decode()}
    t = Tokenizer.from_str(json.dumps(state))
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(),
                                               pre_tokenizers.Metaspace()])
    t.decoder = decoders.Metaspace()
    t.add_special_tokens([AddedToken("<extra_id_0>", lstrip=True, rstrip=True, special=True)])
    t.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>",
                                                     special_tokens=[("</s>", 1)])
    return t


def unigram_bytes():
    """Unigram with byte fallback; NFKC, Strip, merged spaces; no split."""
    t = Tokenizer.from_str(json.dumps(unigram(byte_fallback=True)))
    t.normalizer = normalizers.Sequence([
        normalizers.Nmt(), normalizers.NFKC(), normalizers.Strip(left=False, right=True),
        normalizers.Replace(Regex(" {2,}"), "▁")])
    t.pre_tokenizer = pre_tokenizers.Metaspace("▁", "first", split=False)
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(),
                                   decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    t.add_tokens([AddedToken("Hello", single_word=True), AddedToken("ñandú", normalized=True)])
    t.post_processor = processors.RobertaProcessing(("</s>", 1), ("<pad>", 0))
    return t


def word_piece():
    """As BERT, lower case."""
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer()
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    t.train_from_iterator(corpus(), trainers.WordPieceTrainer(
        vocab_size=400, special_tokens=special, show_progress=False, limit_alphabet=70))
    t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    t.add_special_tokens([AddedToken("[X]", lstrip=True, single_word=True)])
    t.add_tokens([AddedToken("Café", normalized=True)])
    return t


def word_piece_cased():
    """A custom prefix and word length, and every BertNormalizer option inverted."""
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.Sequence([
        normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False,
                                   strip_accents=True, lowercase=False),
        normalizers.Replace("fox", "FOX")])
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation("merged_with_previous")])
    t.train_from_iterator(corpus(), trainers.WordPieceTrainer(
        vocab_size=300, special_tokens=["[UNK]"], show_progress=False, limit_alphabet=60,
        continuing_subword_prefix="@@"))
    state = json.loads(t.to_str())
    state["model"]["max_input_chars_per_word"] = 12
    state["model"]["continuing_subword_prefix"] = "@@"
    t = Tokenizer.from_str(json.dumps(state))
    t.decoder = decoders.WordPiece(prefix="@@", cleanup=False)
    return t


def word_level():
    """Words; NFKD, StripAccents and Lowercase; tokens joined by spaces."""
    t = Tokenizer(models.WordLevel(unk_token="<unk>"))
    t.normalizer = normalizers.Sequence([
        normalizers.Strip(), normalizers.NFKD(), normalizers.StripAccents(),
        normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.CharDelimiterSplit("_"), pre_tokenizers.Whitespace(),
        pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.Digits(individual_digits=True)])
    t.train_from_iterator(corpus(), trainers.WordLevelTrainer(
        vocab_size=300, special_tokens=["<unk>", "<s>"], show_progress=False))
    t.post_processor = processors.Sequence([
        processors.ByteLevel(),
        processors.TemplateProcessing(single="<s> <s> $A <unk>", pair="<s> $A $B",
                                      special_tokens=[("<s>", 1), ("<unk>", 0)])])
    return t


def bpe_word_end():
    """The original BPE: a word end suffix, NFD."""
    t = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    t.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.BPEDecoder()
    t.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<unk>"], show_progress=False, limit_alphabet=70,
        end_of_word_suffix="</w>"))
    return t


def bpe_byte_word_end():
    """As CLIP: bytes and a word end suffix."""
    t = Tokenizer(models.BPE(unk_token="<end>", end_of_word_suffix="</w>", fuse_unk=False))
    t.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "),
                                         normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"'s|'t|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed",
                             invert=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=600, special_tokens=["<end>"], show_progress=False, end_of_word_suffix="</w>",
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return t


def bpe_subword_prefix():
    """A prefix on subwords that do not begin a word."""
    t = Tokenizer(models.BPE(unk_token="<unk>", continuing_subword_prefix="##", fuse_unk=True))
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("merged_with_next")])
    t.decoder = decoders.WordPiece()
    t.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<unk>"], show_progress=False, limit_alphabet=60,
        continuing_subword_prefix="##"))
    return t


PIECES = (pieces_unigram, pieces_unigram_bytes, pieces_bpe)
MODELS = (unigram_charsmap, unigram_bytes, word_piece, word_piece_cased, word_level, bpe_word_end,
          bpe_byte_word_end, bpe_subword_prefix)


def decoded(tokenizer, texts, r):
    # 0.23 decodes added tokens that match normalized text to the normalized text.
    renamed = {i for i, t in tokenizer.get_added_tokens_decoder().items()
               if tokenizer.id_to_token(i) != t.content}
    any_id = sorted(set(tokenizer.get_vocab().values()) - renamed)
    sequences = [[r.choice(any_id) for _ in range(r.randint(1, 9))] for _ in range(120)]
    sequences += [[i for i in tokenizer.encode(t).ids if i not in renamed] for t in texts[::20]]
    return [[ids, tokenizer.decode(ids, skip_special_tokens=False),
             tokenizer.decode(ids, skip_special_tokens=True)] for ids in sequences]


def main():
    r = random.Random(11)
    tokenizers = {}
    for make in MODELS:
        folder = HERE / make.__name__
        folder.mkdir(exist_ok=True)
        path = folder / "tokenizer.json"
        state = json.loads(make().to_str())
        path.write_text(json.dumps(state, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
        tokenizers[make.__name__] = Tokenizer.from_file(str(path))
    special = sorted({t.content for tokenizer in tokenizers.values()
                      for t in tokenizer.get_added_tokens_decoder().values()})
    texts = strings(438, 20240301, special) + [
        "ab " * 300, "a" * 500, "▁" * 30, "x" * 11 + " " + "x" * 12 + " " + "x" * 13, "İI ǅ ΑΣ ẞ",
        "ﬁve ½ ① ｆｕｌｌ ㎏ ﷺ Ⅻ", "e\u0301e\u0301 a\u0301 ａ\u0308 \r\n\r\u0301", "中文abc日本",
        "don't do not I 'm n't .", "a.b,c!d?e", "a_b__c", "  lead and trail  ", "fox Café CAFÉ",
        "\u0344\u0301a\u0344 \u1e9b\u0323", "\U0001d15e\u0301", "한국어 \u1112\u1161\u11ab",
        "e\u0301" * 60, "~~~ ~~", "<0x41> <0xFF>", "\ufdfa\ufdfa"]
    texts += ["".join(f"the{chr(c)}fox a{chr(c)}\u0301 " for c in LATE[i:i + 3])
              for i in range(0, len(LATE), 3)]
    result = {"texts": texts, "tokenizers": {}}
    for name, tokenizer in tokenizers.items():
        result["tokenizers"][name] = {
            "ids": [tokenizer.encode(t, add_special_tokens=False).ids for t in texts],
            "with_special": [tokenizer.encode(t).ids for t in texts[:20]],
            "decode": decoded(tokenizer, texts, r)}
    for make in PIECES:
        settings = make()
        folder = HERE / make.__name__
        train_pieces(folder, settings.pop("kind"), **settings)
        model = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
        # BOS, EOS and added tokens come from another file.
        bos = [model.bos_id()] if model.bos_id() >= 0 else []
        eos = [] if bos else [model.eos_id()]
        plain = [t if not any(s in t for s in ("<s>", "</s>", "<unk>", "<sep>", "fox")) else ""
                 for t in texts]
        result["tokenizers"][make.__name__] = {
            "texts": plain,
            "ids": [model.encode(t) for t in plain],
            "with_special": [bos + model.encode(t) + eos for t in plain[:20]],
            "decode": [[ids, model.decode(ids), model.decode(ids)]
                       for ids in (model.encode(t) for t in plain[::2])
                       if model.unk_id() not in ids]}  # decodes to another sign
    (HERE / "model_cases.json").write_text(
        json.dumps(result, ensure_ascii=True, separators=(",", ":")).replace("],[", "],\n[") + "\n",
        encoding="utf-8")


if __name__ == "__main__":
    main()
