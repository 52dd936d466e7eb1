"""Measures tokenizing speed against Hugging Face tokenizers, on one thread.

  python3 tests/bench/tokenizer_speed.py TOOL FOLDER NAME...

TOOL is build/release/bin/tokenizer_compare, FOLDER holds NAME/tokenizer.json. The text is 1 MB of
this repository's stories, documents and sources. Prints a Markdown table: MB/s of both and the
ratio for 1 MB, then Arenite's for 4 MB and for one word of 1 MB.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

from tokenizers import Tokenizer  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
MEGABYTE = 1000000


def project_text():
    files = [ROOT / "models/fable/heldout.txt", *sorted(ROOT.glob("docs/**/*.md")),
             *sorted(ROOT.glob("runtime/**/*.cc")), *sorted(ROOT.glob("tests/unit/**/*.cc")),
             *sorted(ROOT.glob("kernels/**/*.cc"))]
    text = "".join(f.read_text(encoding="utf-8") for f in files)
    while len(text.encode()) < MEGABYTE:
        text += text
    return text.encode()[:MEGABYTE].decode(errors="ignore")


def ours(tool, folder, text):
    with tempfile.NamedTemporaryFile() as file:
        file.write(text.encode())
        file.flush()
        out = subprocess.run([tool, folder, "--time", file.name], check=True, capture_output=True,
                             text=True).stdout
    return float(re.search(r"([\d.]+) MB/s", out)[1])


def theirs(tokenizer, text, rounds=5):
    best = 1e30
    for _ in range(rounds):
        start = time.perf_counter()
        tokenizer.encode(text, add_special_tokens=False)
        best = min(best, time.perf_counter() - start)
    return len(text.encode()) / best / 1e6


def main():
    tool, folder, *names = sys.argv[1:]
    text = project_text()
    word = "".join(c for c in text if c.isalpha())
    word = (word * (MEGABYTE // len(word) + 1))[:MEGABYTE]
    print("| tokenizer | ours, MB/s | tokenizers, MB/s | ratio | ours, 4 MB | ours, one word |")
    print("|---|---|---|---|---|---|")
    for name in names:
        path = str(pathlib.Path(folder) / name)
        own = ours(tool, path, text)
        reference = theirs(Tokenizer.from_file(path + "/tokenizer.json"), text)
        print(f"| {name} | {own:.1f} | {reference:.1f} | {own / reference:.2f} | "
              f"{ours(tool, path, text * 4):.1f} | {ours(tool, path, word):.1f} |", flush=True)


if __name__ == "__main__":
    main()
