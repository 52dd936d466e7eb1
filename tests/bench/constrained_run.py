"""Measures what a constraint costs a token, and what forced tokens save.

usage: constrained_run.py TOOL MODEL.arn [ROUNDS]

Generates greedily, in turn: free text, text under a constraint that allows every text, and JSON of
a schema. Prints tokens per second (least, median, most), and of the schema how many tokens came
without being chosen.
"""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import constrain_schemas as schemas

TOKENS = 128
RECORD = schemas.array(schemas.record(
    name=schemas.text(0, 8), age={"type": "integer", "minimum": 0, "maximum": 150},
    status={"enum": ["active", "inactive", "banned"]},
    address=schemas.record(street=schemas.text(0, 8), zip=schemas.pattern("^[0-9]{5}$", "12345")),
    newsletter={"type": "boolean"}), minItems=8, maxItems=8)


def main(tool, model, rounds):
  with tempfile.TemporaryDirectory() as folder:
    schema = pathlib.Path(folder, "schema.json")
    schema.write_text(json.dumps(RECORD), encoding="utf-8")
    cases = {"free": [], "any text": ["--regex", r"(.|\n)*"],
             "schema": ["--json-schema", str(schema)]}
    speeds = {name: [] for name in cases}
    last = {}
    for _ in range(rounds):
      for name, flags in cases.items():
        run = subprocess.run(
            [tool, "run", model, "--prompt", "A list of users:\n", "--max-tokens", str(TOKENS),
             "--temperature", "0", "--ignore-eos", "--json", *flags], stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, check=True)
        last[name] = json.loads(run.stdout)
        if len(last[name]["ids"]) != TOKENS:
          raise SystemExit(f"{name}: {len(last[name]['ids'])} tokens, not {TOKENS}")
        speeds[name].append(last[name]["decode_tokens_per_s"])
  for name, found in speeds.items():
    line = f"{name:9s} {min(found):8.1f} {statistics.median(found):8.1f} {max(found):8.1f} tokens/s"
    stats = last[name].get("constraint")
    if stats:
      ratio = statistics.median(a / b for a, b in zip(found, speeds["free"]))
      line += (f"  {ratio:.3f} of free; {stats['p50_us']:.1f} us p50, {stats['p99_us']:.1f} p99, "
               f"{stats['forced_tokens']} of {stats['steps']} forced")
    print(line)


if __name__ == "__main__":
  if len(sys.argv) not in (3, 4):
    sys.exit(__doc__)
  main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) == 4 else 9)
