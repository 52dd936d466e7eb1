"""Measures constraints over a set of realistic schemas, token by token.

usage: constrain_set.py TOOL BUNDLE.arn [NAME ...]

Prints a line for each schema and the percentiles over all of them, in microseconds: to compile, to
fill the mask of all tokens before each token, and to test and take the token that comes. A value
that the constraint refuses is an error: all of them fit.
"""

import json
import pathlib
import random
import subprocess
import sys
import tempfile

import constrain_schemas

TEXTS = 40
ROWS = ("compile", "first_mask", "mask", "test")
SHARES = ("p50", "p99", "p99.9", "max")


def percentiles(times):
  times = sorted(times)
  return [times[min(int(share * len(times)), len(times) - 1)] for share in (.5, .99, .999, 1)]


def measure(tool, bundle, name, folder):
  schema = constrain_schemas.SCHEMAS[name]
  rng = random.Random(name)
  texts = [json.dumps(constrain_schemas.value(schema, rng), ensure_ascii=False,
                      separators=(",", ":")) for _ in range(TEXTS)]
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


def main(tool, bundle, names):
  everything = {row: [] for row in ROWS}
  print(f"{'':12s} {'bytes':>8s} " + " ".join(f"{row:>12s}{' p50, p99, max':17s}" for row in ROWS))
  with tempfile.TemporaryDirectory() as folder:
    for name in names:
      found = measure(tool, bundle, name, pathlib.Path(folder))
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


if __name__ == "__main__":
  if len(sys.argv) < 3:
    sys.exit(__doc__)
  main(sys.argv[1], sys.argv[2], sys.argv[3:] or list(constrain_schemas.SCHEMAS))
