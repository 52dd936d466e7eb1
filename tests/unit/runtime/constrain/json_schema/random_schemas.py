"""Random JSON schemas and instances, judged by the compiled constraint and by json_schema_judge.py.

  random_schemas.py CHECK_SCHEMAS [--schemas N] [--seed N]

CHECK_SCHEMAS is the program of check_schemas.cc. For each schema: every instance is accepted if and
only if it is valid, in a random spelling; a random walk through what the constraint allows never
comes to where nothing may follow, and what it wrote is valid. A schema may be refused, but not most
of them.
"""

import argparse
import json
import random
import subprocess
import sys

import json_schema_judge

NAMES = ["a", "b", "ab", "ä"]
TEXTS = ["", "a", "b", "ab", "ba", "aab", "ä", "\n", "\"", "bb\U0001F600"]
NUMBERS = [0, 1, 2, 3, 5, 10, 12, -1, -3, 0.5, 1.5, 2.25, -0.5, 100]
PATTERNS = ["^a", "b$", "^[ab]*$", "a.?b", "^(ab|b)+$", "ä"]


class Checker:

  def __init__(self, program, *flags):
    self.process = subprocess.Popen([program, *flags], stdin=subprocess.PIPE,
                                    stdout=subprocess.PIPE)

  def ask(self, command, data):
    self.process.stdin.write(b"%s %d\n" % (command, len(data)) + data)
    self.process.stdin.flush()
    return self.process.stdout.readline().decode().rstrip("\n")

  def walk(self, seed):
    self.process.stdin.write(b"W %d\n" % seed)
    self.process.stdin.flush()
    kind, _, digits = self.process.stdout.readline().decode().strip().partition(" ")
    return kind, bytes.fromhex(digits)


class Maker:
  """Makes schemas and instances from a small universe, so that they often meet."""

  def __init__(self, seed):
    self.random = random.Random(seed)
    self.pick = self.random.choice

  def value(self, depth):
    kind = self.random.randrange(8 if depth > 0 else 5)
    if kind < 1:
      return self.pick([None, True, False])
    if kind < 3:
      return self.pick(NUMBERS)
    if kind < 5:
      return self.pick(TEXTS)
    count = self.pick([0, 1, 1, 2, 2, 3])
    if kind < 6:
      return [self.value(depth - 1) for _ in range(count)]
    return {self.pick(NAMES): self.value(depth - 1) for _ in range(count)}

  def count(self):
    return self.random.randrange(4)

  def names(self):
    return self.random.sample(NAMES, self.pick([1, 1, 2, 3]))

  def schemas(self, depth):
    return [self.schema(depth - 1) for _ in range(self.pick([1, 2, 2, 3]))]

  def named_schemas(self, depth, names):
    return {name: self.schema(depth - 1) for name in names}

  def keyword(self, depth):
    """Returns keywords that belong together."""
    if depth <= 0 or self.random.randrange(5) < 2:
      return self.pick([
          lambda: {"type": self.pick(["null", "boolean", "number", "integer", "string", "array",
                                      "object"])},
          lambda: {"type": self.random.sample(["null", "integer", "string", "array", "object"],
                                              2)},
          lambda: {"enum": [self.value(1) for _ in range(self.pick([1, 2, 4]))]},
          lambda: {"const": self.value(2)},
          lambda: {self.pick(["minimum", "exclusiveMinimum"]): self.pick(NUMBERS)},
          lambda: {self.pick(["maximum", "exclusiveMaximum"]): self.pick(NUMBERS)},
          lambda: {"multipleOf": self.pick([1, 2, 3, 0.5, 0.25, 1.5, 10])},
          lambda: {"minLength": self.count()},
          lambda: {"maxLength": self.count()},
          lambda: {"pattern": self.pick(PATTERNS)},
          lambda: {self.pick(["minItems", "maxItems"]): self.count()},
          lambda: {self.pick(["minProperties", "maxProperties"]): self.count()},
          lambda: {"required": self.names()},
          lambda: {"dependentRequired": {self.pick(NAMES): self.names()}},
      ])()
    return self.pick([
        lambda: {"type": "object", "properties": self.named_schemas(depth, self.names())},
        lambda: {"properties": self.named_schemas(depth, self.names()),
                 "additionalProperties": self.pick([False, False, self.schema(depth - 1)])},
        lambda: {"patternProperties":
                     self.named_schemas(depth, self.random.sample(PATTERNS, self.pick([1, 2])))},
        lambda: {"propertyNames": self.schema(depth - 1)},
        lambda: {"prefixItems": self.schemas(depth)},
        lambda: {"type": "array", "items": self.schema(depth - 1)},
        lambda: {"contains": self.schema(depth - 1),
                 **({"minContains": self.count()} if self.random.random() < 0.5 else {}),
                 **({"maxContains": self.count()} if self.random.random() < 0.5 else {})},
        lambda: {"uniqueItems": True, "items": {"enum": [self.value(0) for _ in range(3)]}},
        lambda: {"uniqueItems": True, "items": {**self.pick([{}, {"maxLength": 1},
                                                            {"pattern": self.pick(PATTERNS)}]),
                                                "type": "string"}},
        lambda: {self.pick(["allOf", "anyOf", "oneOf"]): self.schemas(depth)},
        lambda: {self.pick(["anyOf", "oneOf"]): self.schemas(depth)},
        lambda: {"not": self.schema(depth - 1)},
        lambda: {"if": self.schema(depth - 1), "then": self.schema(depth - 1),
                 "else": self.schema(depth - 1)},
        lambda: {"dependentSchemas": self.named_schemas(depth, [self.pick(NAMES)])},
        lambda: {"properties": {self.pick(NAMES): {"$ref": self.pick(["#", "#/$defs/x"])}}},
    ])()

  def schema(self, depth):
    if self.random.random() < 0.05:
      return self.pick([True, True, False])
    schema = {}
    for _ in range(self.pick([1, 1, 2, 2, 3])):
      schema.update(self.keyword(depth))
    return schema

  def root(self):
    schema = self.schema(self.pick([0, 1, 1, 2, 2, 3]))
    if not isinstance(schema, dict):
      return schema
    return {**schema, "$defs": {"x": self.schema(1)}}

  def spell(self, value, space):
    """Returns one of the spellings of a value."""
    gap = (lambda: self.pick(["", "", " ", "\n", "\t \r"])) if space else (lambda: "")
    if isinstance(value, str):
      return self.spell_text(value)
    if isinstance(value, list):
      return "[" + gap() + ",".join(
          gap() + self.spell(item, space) + gap() for item in value) + "]"
    if isinstance(value, dict):
      names = list(value)
      self.random.shuffle(names)
      return "{" + gap() + ",".join(
          gap() + self.spell_text(name) + gap() + ":" + gap() + self.spell(value[name], space) +
          gap() for name in names) + "}"
    if json_schema_judge.is_number(value) and value != 0 and self.random.random() < 0.1:
      self.has_exponent = True
      return f"{value:.4e}"
    if json_schema_judge.is_number(value) and self.random.random() < 0.2:
      return repr(value) + ("0" if isinstance(value, float) else ".0")
    return json.dumps(value)

  def spell_text(self, text):
    parts = []
    for character in text:
      if self.random.random() < 0.8:
        parts.append(json.dumps(character, ensure_ascii=False)[1:-1])
      else:
        code = character.encode("utf-16-be").hex()
        parts += ["\\u" + self.pick([code[i:i + 4], code[i:i + 4].upper()])
                  for i in range(0, len(code), 4)]
    return "\"" + "".join(parts) + "\""


def constants(schema):
  """Yields values that the schema mentions, as they are likely to be near its borders."""
  if isinstance(schema, list):
    for part in schema:
      yield from constants(part)
  if not isinstance(schema, dict):
    return
  for name, argument in schema.items():
    if name == "const":
      yield argument
    elif name == "enum":
      yield from argument
    else:
      yield from constants(argument)


def main():
  parser = argparse.ArgumentParser()
  parser.add_argument("program")
  parser.add_argument("--schemas", type=int, default=1000)
  parser.add_argument("--seed", type=int, default=1)
  parser.add_argument("--verbose", action="store_true")
  arguments = parser.parse_args()
  block = ["--block", str(4 << 20)]
  checkers = [
      (Checker(arguments.program, *block, "--any-order"), True, False),
      (Checker(arguments.program, *block, "--any-order", "--any-whitespace"), True, True),
      (Checker(arguments.program, *block), False, False),
  ]
  counts = dict.fromkeys(
      ["compiled", "no value", "refused", "accepted", "invalid", "walks", "long walks"], 0)
  refusals = {}
  failures = 0

  def fail(*parts):
    nonlocal failures
    failures += 1
    print("FAILED", *parts)

  for number in range(arguments.schemas):
    maker = Maker(arguments.seed * 1_000_003 + number)
    schema = maker.root()
    text = json.dumps(schema, ensure_ascii=False)
    judge = json_schema_judge.Judge(schema)
    values = [maker.value(2) for _ in range(25)] + list(constants(schema))
    verdicts = [judge.valid(schema, value) for value in values]
    checker, any_order, any_space = checkers[number % len(checkers)]
    answer = checker.ask(b"S", text.encode())
    if not answer.startswith("compiled"):
      if "no value satisfies" in answer:
        counts["no value"] += 1
        for value, is_valid in zip(values, verdicts):
          if is_valid:
            fail("no value, but", json.dumps(value), "under", text)
      else:
        counts["refused"] += 1
        why = answer.split(": ", 2)[-1].split(": ", 1)[-1]
        refusals[why] = refusals.get(why, 0) + 1
        if "unsupported" not in answer:
          fail("schema", text, answer)
      continue
    counts["compiled"] += 1
    for value, is_valid in zip(values, verdicts):
      maker.has_exponent = False
      spelling = maker.spell(value, any_space)
      is_accepted = checker.ask(b"T", spelling.encode()) == "accepted"
      # In the schema's order, a valid value may be written in another. Constants and multiples of
      # much have no exponents.
      is_whole = any_order and not maker.has_exponent
      is_wrong = is_accepted != is_valid if is_whole else is_accepted and not is_valid
      if is_wrong:
        fail(spelling, "is", "accepted" if is_accepted else "refused", "under", text)
      counts["accepted" if is_accepted else "invalid"] += 1
    for walk in range(4):
      kind, data = checker.walk(number * 4 + walk)
      counts["walks"] += kind == "text"
      counts["long walks"] += kind == "long"
      if kind == "dead":
        fail("nothing may follow", data, "under", text)
      if kind != "text":
        continue
      try:
        is_valid = judge.valid(schema, json_schema_judge.parse(data.decode()))
      except ValueError as error:
        fail("no JSON:", data, error, "under", text)
        continue
      if not is_valid:
        fail("the walk wrote", data, "under", text)
    if failures > 20:
      break
  print(counts)
  if arguments.verbose:
    for why, count in sorted(refusals.items(), key=lambda item: -item[1]):
      print(f"{count:6} {why}")
  if counts["compiled"] < (counts["compiled"] + counts["refused"]) * 0.75:
    fail("most schemas are refused")
  if min(counts["accepted"], counts["invalid"], counts["walks"]) < arguments.schemas / 4:
    fail("the instances do not show anything")
  if counts["long walks"] * 20 > counts["walks"]:
    fail("many walks do not end")
  return 1 if failures else 0


if __name__ == "__main__":
  sys.exit(main())
