"""Generates texts of random JSON schemas with the model in models/ and checks each against its
schema.

usage: constrain_schemas_test.py [N] (ARN_TOOL and ARN_CONVERTER name the programs)
"""

import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

MODEL = pathlib.Path(__file__).resolve().parents[2] / "models/fable/fable-2m"
NAMES = ["name", "age", "kind", "x", "a long name", "quote\"d", "umlaut ü", "back\\slash", ""]


def scalar(rng):
  """Returns a schema whose texts are short."""
  kind = rng.randrange(7)
  if kind == 0:
    return {"type": "boolean"}
  if kind == 1:
    return {"type": "null"}
  if kind == 2:
    low = rng.randint(-1000, 1000)
    return {"type": "integer", "minimum": low, "maximum": low + rng.randint(0, 10000)}
  if kind == 3:
    low = rng.randint(0, 3)
    return {"type": "string", "minLength": low, "maxLength": low + rng.randint(0, 12)}
  if kind == 4:
    return {"enum": rng.sample([1, "one", "two words", None, True, [1, 2], {"k": "v"}, -3.5, "ä"],
                               rng.randint(1, 4))}
  if kind == 5:
    return {"const": rng.choice(["yes", 42, {"a": [1, {"b": None}]}, "line\nfeed"])}
  return {"type": "string", "pattern": rng.choice(["^[a-z]{1,5}$", "^(on|off)$", "^[0-9]+-[a-f]$"]),
          "maxLength": 10}


def schema(rng, depth):
  kind = rng.randrange(4) if depth > 0 else 3
  if kind == 0:
    names = rng.sample(NAMES, rng.randint(1, 4))
    return {"type": "object", "properties": {name: schema(rng, depth - 1) for name in names},
            "required": rng.sample(names, rng.randint(0, len(names))),
            "additionalProperties": False}
  if kind == 1:
    low = rng.randint(0, 2)
    return {"type": "array", "items": schema(rng, depth - 1), "minItems": low,
            "maxItems": low + rng.randint(0, 2)}
  if kind == 2:
    return {"anyOf": [schema(rng, depth - 1) for _ in range(rng.randint(1, 3))]}
  return scalar(rng)


def same(a, b):
  """True if two JSON values are equal: 1.0 is 1, and True is not."""
  if isinstance(a, bool) or isinstance(b, bool):
    return a is b
  if isinstance(a, list) and isinstance(b, list):
    return len(a) == len(b) and all(map(same, a, b))
  if isinstance(a, dict) and isinstance(b, dict):
    return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
  return a == b


def fits(value, rule):
  """Checks a value against a schema of schema(), keyword by keyword."""
  if "anyOf" in rule:
    return any(fits(value, part) for part in rule["anyOf"])
  if "enum" in rule:
    return any(same(value, choice) for choice in rule["enum"])
  if "const" in rule:
    return same(value, rule["const"])
  kind = rule["type"]
  if kind == "object":
    return (isinstance(value, dict) and set(rule["required"]) <= set(value) and
            all(key in rule["properties"] and fits(item, rule["properties"][key])
                for key, item in value.items()))
  if kind == "array":
    return (isinstance(value, list) and rule["minItems"] <= len(value) <= rule["maxItems"] and
            all(fits(item, rule["items"]) for item in value))
  if kind == "integer":
    return (isinstance(value, (int, float)) and not isinstance(value, bool) and
            value == int(value) and rule["minimum"] <= value <= rule["maximum"])
  if kind == "string":
    return (isinstance(value, str) and
            rule.get("minLength", 0) <= len(value) <= rule["maxLength"] and
            re.search(rule.get("pattern", ""), value) is not None)
  return value is None if kind == "null" else isinstance(value, bool)


def main():
  n = int(sys.argv[1]) if len(sys.argv) > 1 else 200
  tool, converter = os.environ["ARN_TOOL"], os.environ["ARN_CONVERTER"]
  rng = random.Random(20)
  wrong = unfinished = 0
  with tempfile.TemporaryDirectory() as folder:
    bundle, file = os.path.join(folder, "fable.arn"), os.path.join(folder, "schema.json")
    subprocess.run([converter, str(MODEL), "-o", bundle, "--weights", "int8"], check=True,
                   capture_output=True)
    for i in range(n):
      rule = schema(rng, 3)
      pathlib.Path(file).write_text(json.dumps(rule, ensure_ascii=i % 2 == 0), encoding="utf-8")
      sampling = [["--temperature", "0"], ["--temperature", "1.5"],
                  ["--temperature", "1", "--top-p", "0.9"], ["--temperature", "1", "--top-k", "40"],
                  ][i % 4]
      command = [tool, "run", bundle, "--prompt", "Once upon a time", "--json-schema", file,
                 "--json", "--max-tokens", "0", "--seed", str(i), *sampling]
      result = subprocess.run(command, capture_output=True, check=False)
      try:
        out = json.loads(result.stdout)
        if out["finish"] == "context":  # zeros behind a decimal point may go on for ever
          unfinished += 1
          continue
        is_right = out["finish"] == "eos" and fits(json.loads(out["text"]), rule)
        text = out["text"]
      except ValueError:
        is_right, text = False, result.stdout.decode(errors="replace")
      if not is_right:
        wrong += 1
        print(f"schema {i}: {json.dumps(rule)}\n  text: {text}\n  {result.stderr.decode()}")
  print(f"{n} schemas, {wrong} wrong, {unfinished} unfinished")
  return 1 if wrong or unfinished > n / 5 else 0


if __name__ == "__main__":
  sys.exit(main())
