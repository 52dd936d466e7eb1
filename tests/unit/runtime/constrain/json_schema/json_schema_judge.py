"""A validator of JSON Schema, written from the specification alone (draft 2020-12 validation and
core), as the other opinion in the tests of constraints. Plain and slow; Python's standard library.
Numbers are Fractions, so that nothing is rounded. References: "#", "#/$defs/NAME".
"""

import fractions
import json
import re


def matches(pattern, text):
  # Python's $ also matches before a line end.
  return re.search(pattern.replace("$", r"\Z"), text) is not None


def parse_number(text):
  mantissa, _, exponent = text.lower().partition("e")
  # Beyond 10^999 the exact value does not matter to any schema of the tests.
  return fractions.Fraction(f"{mantissa}e{max(-999, min(999, int(exponent or 0)))}")


def parse(text):
  """Parses JSON with exact numbers. Duplicate keys: the last one counts."""
  return json.loads(text, parse_float=parse_number, parse_int=parse_number)


def is_number(value):
  return isinstance(value, (int, float, fractions.Fraction)) and not isinstance(value, bool)


def equal(a, b):
  if is_number(a) and is_number(b):
    return fractions.Fraction(a) == fractions.Fraction(b)
  if type(a) is not type(b):
    return False
  if isinstance(a, list):
    return len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b))
  if isinstance(a, dict):
    return a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
  return a == b


def has_type(value, name):
  if name == "integer":
    return is_number(value) and fractions.Fraction(value).denominator == 1
  if name == "number":
    return is_number(value)
  return isinstance(value, {"null": type(None), "boolean": bool, "string": str, "array": list,
                            "object": dict}[name])


class Judge:

  def __init__(self, root):
    self.root = root

  def valid(self, schema, value):
    if isinstance(schema, bool):
      return schema
    return all(getattr(self, "check_" + name.replace("$", "_"), self.annotation)(
        schema, argument, value) for name, argument in schema.items())

  def annotation(self, schema, argument, value):
    return True

  def check__ref(self, schema, argument, value):
    if argument == "#":
      return self.valid(self.root, value)
    return self.valid(self.root["$defs"][argument.removeprefix("#/$defs/")], value)

  def check_type(self, schema, argument, value):
    names = argument if isinstance(argument, list) else [argument]
    return any(has_type(value, name) for name in names)

  def check_enum(self, schema, argument, value):
    return any(equal(value, other) for other in argument)

  def check_const(self, schema, argument, value):
    return equal(value, argument)

  def check_allOf(self, schema, argument, value):
    return all(self.valid(part, value) for part in argument)

  def check_anyOf(self, schema, argument, value):
    return any(self.valid(part, value) for part in argument)

  def check_oneOf(self, schema, argument, value):
    return sum(self.valid(part, value) for part in argument) == 1

  def check_not(self, schema, argument, value):
    return not self.valid(argument, value)

  def check_if(self, schema, argument, value):
    part = "then" if self.valid(argument, value) else "else"
    return self.valid(schema.get(part, True), value)

  def check_minimum(self, schema, argument, value):
    return not is_number(value) or value >= fractions.Fraction(str(argument))

  def check_maximum(self, schema, argument, value):
    return not is_number(value) or value <= fractions.Fraction(str(argument))

  def check_exclusiveMinimum(self, schema, argument, value):
    return not is_number(value) or value > fractions.Fraction(str(argument))

  def check_exclusiveMaximum(self, schema, argument, value):
    return not is_number(value) or value < fractions.Fraction(str(argument))

  def check_multipleOf(self, schema, argument, value):
    return (not is_number(value) or
            (fractions.Fraction(value) / fractions.Fraction(str(argument))).denominator == 1)

  def check_minLength(self, schema, argument, value):
    return not isinstance(value, str) or len(value) >= argument

  def check_maxLength(self, schema, argument, value):
    return not isinstance(value, str) or len(value) <= argument

  def check_pattern(self, schema, argument, value):
    return not isinstance(value, str) or matches(argument, value)

  def check_minItems(self, schema, argument, value):
    return not isinstance(value, list) or len(value) >= argument

  def check_maxItems(self, schema, argument, value):
    return not isinstance(value, list) or len(value) <= argument

  def check_uniqueItems(self, schema, argument, value):
    return (not argument or not isinstance(value, list) or
            not any(equal(value[i], value[k]) for i in range(len(value)) for k in range(i)))

  def check_prefixItems(self, schema, argument, value):
    return not isinstance(value, list) or all(
        self.valid(part, item) for part, item in zip(argument, value))

  def check_items(self, schema, argument, value):
    first = len(schema.get("prefixItems", []))
    return not isinstance(value, list) or all(self.valid(argument, item) for item in value[first:])

  def check_contains(self, schema, argument, value):
    if not isinstance(value, list):
      return True
    count = sum(self.valid(argument, item) for item in value)
    return schema.get("minContains", 1) <= count <= schema.get("maxContains", len(value))

  def check_minProperties(self, schema, argument, value):
    return not isinstance(value, dict) or len(value) >= argument

  def check_maxProperties(self, schema, argument, value):
    return not isinstance(value, dict) or len(value) <= argument

  def check_required(self, schema, argument, value):
    return not isinstance(value, dict) or all(name in value for name in argument)

  def check_properties(self, schema, argument, value):
    return not isinstance(value, dict) or all(
        self.valid(part, value[name]) for name, part in argument.items() if name in value)

  def check_patternProperties(self, schema, argument, value):
    return not isinstance(value, dict) or all(
        self.valid(part, item) for pattern, part in argument.items()
        for name, item in value.items() if matches(pattern, name))

  def check_additionalProperties(self, schema, argument, value):
    return not isinstance(value, dict) or all(
        self.valid(argument, item) for name, item in value.items()
        if name not in schema.get("properties", {}) and
        not any(matches(pattern, name) for pattern in schema.get("patternProperties", {})))

  def check_propertyNames(self, schema, argument, value):
    return not isinstance(value, dict) or all(self.valid(argument, name) for name in value)

  def check_dependentRequired(self, schema, argument, value):
    return not isinstance(value, dict) or all(
        other in value for name, others in argument.items() if name in value for other in others)

  def check_dependentSchemas(self, schema, argument, value):
    return not isinstance(value, dict) or all(
        self.valid(part, value) for name, part in argument.items() if name in value)
