"""Measures constraints next to XGrammar: the same schema and texts, token by token.

usage: constrain_compare.py arenite TOOL BUNDLE.arn
       constrain_compare.py xgrammar TOKENIZER_DIR   (needs xgrammar and transformers)

Both print microseconds: to compile the schema, to fill the mask of all tokens before each token,
and to test (arenite) and accept the token that comes.
"""

import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time

TEXT = {"type": "string"}
SCHEMA = {
    "type": "object",
    "properties": {
        "name": TEXT,
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "email": TEXT,
        "tags": {"type": "array", "items": TEXT, "maxItems": 10},
        "address": {
            "type": "object",
            "properties": {"street": TEXT, "city": TEXT,
                           "zip": {"type": "string", "pattern": "^[0-9]{5}$"}},
            "required": ["street", "city", "zip"],
            "additionalProperties": False,
        },
        "status": {"enum": ["active", "inactive", "banned"]},
    },
    "required": ["name", "age", "email", "tags", "address", "status"],
    "additionalProperties": False,
}
WORDS = ("the quick brown fox jumps over lazy dogs München Zürich señor 東京 data-base user_name "
         "hello world test 12345 \"quoted\" back\\slash 😀 street avenue").split(" ")


def texts(n=200):
  rng = random.Random(5)
  words = lambda count: " ".join(rng.choice(WORDS) for _ in range(count))
  for _ in range(n):
    value = {"name": words(2), "age": rng.randint(0, 150), "email": words(1) + "@example.com",
             "tags": [words(rng.randint(1, 3)) for _ in range(rng.randint(0, 6))],
             "address": {"street": words(3), "city": words(1),
                         "zip": f"{rng.randint(0, 99999):05d}"},
             "status": rng.choice(["active", "inactive", "banned"])}
    yield json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def percentiles(times):
  times.sort()
  at = lambda share: times[min(int(share * len(times)), len(times) - 1)] * 1e6
  return f"p50 {at(.5):.2f}  p99 {at(.99):.2f}  p99.9 {at(.999):.2f}  max {at(1):.2f}"


def run_xgrammar(folder):
  import xgrammar  # pylint: disable=import-outside-toplevel
  from transformers import AutoTokenizer  # pylint: disable=import-outside-toplevel
  tokenizer = AutoTokenizer.from_pretrained(folder)
  info = xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=len(tokenizer))
  compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
  start = time.thread_time()
  grammar = compiler.compile_json_schema(json.dumps(SCHEMA), any_whitespace=False,
                                         separators=(",", ":"), strict_mode=False)
  print(f"compile    {(time.thread_time() - start) * 1e6:.0f}")
  matcher = xgrammar.GrammarMatcher(grammar)
  bits = xgrammar.allocate_token_bitmask(1, info.vocab_size)
  mask, accept = [], []
  for text in texts():
    matcher.reset()
    for token in tokenizer.encode(text, add_special_tokens=False):
      times = [time.thread_time()]
      matcher.fill_next_token_bitmask(bits)
      times.append(time.thread_time())
      if not matcher.accept_token(token):
        raise SystemExit(f"refused: {text}")
      times.append(time.thread_time())
      mask.append(times[1] - times[0])
      accept.append(times[2] - times[1])
  print(f"mask       {percentiles(mask)}\naccept     {percentiles(accept)}")


def run_arenite(tool, bundle):
  with tempfile.TemporaryDirectory() as folder:
    schema, instances = pathlib.Path(folder, "schema.json"), pathlib.Path(folder, "texts.jsonl")
    schema.write_text(json.dumps(SCHEMA), encoding="utf-8")
    instances.write_text("\n".join(texts()) + "\n", encoding="utf-8")
    common = ["--json-schema", str(schema), "--instances", str(instances), "--tokenizer", bundle,
              "--constraint-memory", "1M"]
    subprocess.run([tool, "constrain", "check", *common], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([tool, "constrain", "bench", *common], check=True)


if __name__ == "__main__":
  if len(sys.argv) == 4 and sys.argv[1] == "arenite":
    run_arenite(sys.argv[2], sys.argv[3])
  elif len(sys.argv) == 3 and sys.argv[1] == "xgrammar":
    run_xgrammar(sys.argv[2])
  else:
    sys.exit(__doc__)
