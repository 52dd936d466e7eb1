"""Measures constraints over a set of realistic schemas, token by token.

usage: constrain_set.py TOOL BUNDLE.arn [NAME ...]
       constrain_set.py xgrammar TOKENIZER_DIR [NAME ...]   (needs xgrammar and transformers)

Prints a line for each schema and the percentiles over all of them, in microseconds of CPU time: to
compile, to fill the mask of all tokens before each token, and to test and take the token that comes
(XGrammar: to take it). A value that Arenite refuses is an error: all of them fit. XGrammar's
refusals are counted.
"""

import functools
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import constrain_schemas

TEXTS = 40
ROWS = ("compile", "first_mask", "mask", "test")
SHARES = ("p50", "p99", "p99.9", "max")


def percentiles(times):
  times = sorted(times)
  return [times[min(int(share * len(times)), len(times) - 1)] for share in (.5, .99, .999, 1)]


def texts_of(schema, name):
  rng = random.Random(name)
  return [json.dumps(constrain_schemas.value(schema, rng), ensure_ascii=False,
                     separators=(",", ":")) for _ in range(TEXTS)]


def measure(tool, bundle, name, folder):
  schema = constrain_schemas.SCHEMAS[name]
  texts = texts_of(schema, name)
  schema_path, texts_path = folder / f"{name}.json", folder / f"{name}.jsonl"
  schema_path.write_text(json.dumps(schema), encoding="utf-8")
  texts_path.write_text("\n".join(texts) + "\n", encoding="utf-8")
  common = ["--json-schema", str(schema_path), "--instances", str(texts_path), "--tokenizer",
            bundle, "--constraint-memory", "1M"]
  checked = subprocess.run([tool, "constrain", "check", *common], stdout=subprocess.PIPE,
                           text=True, check=False)
  if checked.returncode != 0:
    lines = checked.stdout.splitlines()
    bad = [f"{line}: {texts[i]}" for i, line in enumerate(lines[1:]) if line != "accepted"]
    raise SystemExit(f"{name}: {lines[0]}\n" + "\n".join(bad))
  out = subprocess.run([tool, "constrain", "bench", *common, "--json", "--times"],
                       stdout=subprocess.PIPE, check=True)
  return json.loads(out.stdout)


class XGrammar:
  """Measures the same with XGrammar, on one thread."""

  def __init__(self, folder):
    import xgrammar  # pylint: disable=import-outside-toplevel
    from transformers import AutoTokenizer  # pylint: disable=import-outside-toplevel
    self.xgrammar = xgrammar
    self.tokenizer = AutoTokenizer.from_pretrained(folder)
    self.info = xgrammar.TokenizerInfo.from_huggingface(self.tokenizer,
                                                        vocab_size=len(self.tokenizer))
    self.refused = []

  def measure(self, name):
    schema = constrain_schemas.SCHEMAS[name]
    times = {row: [] for row in ROWS}

    def timed(row, call):
      start = time.thread_time()
      result = call()
      times[row].append((time.thread_time() - start) * 1e6)
      return result

    compiler = self.xgrammar.GrammarCompiler(self.info, max_threads=1, cache_enabled=False)
    try:
      grammar = timed("compile", lambda: compiler.compile_json_schema(
          json.dumps(schema), any_whitespace=False, separators=(",", ":"), strict_mode=False))
    except Exception as error:  # pylint: disable=broad-exception-caught
      self.refused.append(f"{name} ({str(error).splitlines()[0][:60]})")
      return None
    matcher = self.xgrammar.GrammarMatcher(grammar)
    bits = self.xgrammar.allocate_token_bitmask(1, self.info.vocab_size)
    n_refused = 0
    for line in texts_of(schema, name):
      matcher.reset()
      for i, token in enumerate(self.tokenizer.encode(line, add_special_tokens=False)):
        timed("mask" if i else "first_mask", lambda: matcher.fill_next_token_bitmask(bits))
        if not timed("test", functools.partial(matcher.accept_token, token)):
          n_refused += 1
          break
    if n_refused:
      self.refused.append(f"{n_refused} values of {name}")
    return {"bytes": 0, **{row: {"times_us": found} for row, found in times.items()}}


def main(tool, bundle, names):
  peer = XGrammar(bundle) if tool == "xgrammar" else None
  everything = {row: [] for row in ROWS}
  print(f"{'':12s} {'bytes':>8s} " + " ".join(f"{row:>12s}{' p50, p99, max':17s}" for row in ROWS))
  with tempfile.TemporaryDirectory() as folder:
    for name in names:
      found = peer.measure(name) if peer else measure(tool, bundle, name, pathlib.Path(folder))
      if found is None:
        continue
      line = f"{name:12s} {found['bytes']:8d} "
      for row in ROWS:
        times = found[row]["times_us"]
        everything[row] += times
        p50, p99, _, most = percentiles(times)
        line += f" {p50:9.1f} {p99:9.1f} {most:8.1f}"
      print(line, flush=True)
  print()
  print(f"{'all, us':12s} {'count':>8s} " + " ".join(f"{share:>9s}" for share in SHARES))
  for row, times in everything.items():
    print(f"{row:12s} {len(times):8d} " + " ".join(f"{t:9.2f}" for t in percentiles(times)))
  if peer:
    print("refused: " + (", ".join(peer.refused) or "nothing"))


if __name__ == "__main__":
  if len(sys.argv) < 3:
    sys.exit(__doc__)
  main(sys.argv[1], sys.argv[2], sys.argv[3:] or list(constrain_schemas.SCHEMAS))
