"""Renders chat templates with transformers, for tests/unit/chat/chat_goldens_test.cc.

  make_chat_goldens.py [--shared FOLDER]      needs transformers and jinja2

Reads data/chat/conversations.json and data/chat/templates/*.jinja, which belong to this
repository, and writes data/chat/expected.json. Renders each "template" of
data/chat/features.json over data/chat/features_input.json and stores the text next to it.
Renders every operation of data/chat/kinds_input.json over values of every kind, with the same
input, into data/chat/kinds.json.
--shared reads third-party templates from FOLDER and stores only lengths and XXH64 of their
output in data/chat/shared.json.
"""

import argparse
import datetime
import json
import pathlib

from transformers.utils import chat_template_utils

DATA = pathlib.Path(__file__).parent / "data" / "chat"
NOW = datetime.datetime(2025, 3, 9, 14, 5, 6, 7)
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}


class FixedClock:

  @staticmethod
  def now():
    return NOW


chat_template_utils.datetime = FixedClock

MASK = (1 << 64) - 1
P1, P2, P3, P4, P5 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9,
                      0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)


def _rotate(x, n):
  return ((x << n) | (x >> (64 - n))) & MASK


def _round(lane, word):
  return _rotate((lane + word * P2) & MASK, 31) * P1 & MASK


def xxh64(data):
  """XXH64 with seed 0."""
  at, n = 0, len(data)
  if n >= 32:
    lanes = [(P1 + P2) & MASK, P2, 0, -P1 & MASK]
    while at + 32 <= n:
      for i in range(4):
        lanes[i] = _round(lanes[i], int.from_bytes(data[at + 8 * i:at + 8 * i + 8], "little"))
      at += 32
    h = sum(_rotate(lane, r) for lane, r in zip(lanes, (1, 7, 12, 18))) & MASK
    for lane in lanes:
      h = ((h ^ _round(0, lane)) * P1 + P4) & MASK
  else:
    h = P5
  h = (h + n) & MASK
  while at + 8 <= n:
    h = (_rotate(h ^ _round(0, int.from_bytes(data[at:at + 8], "little")), 27) * P1 + P4) & MASK
    at += 8
  if at + 4 <= n:
    h = (_rotate(h ^ int.from_bytes(data[at:at + 4], "little") * P1 & MASK, 23) * P2 + P3) & MASK
    at += 4
  for byte in data[at:]:
    h = _rotate(h ^ byte * P5 & MASK, 11) * P1 & MASK
  h = (h ^ h >> 33) * P2 & MASK
  h = (h ^ h >> 29) * P3 & MASK
  return h ^ h >> 32


def render(template, conversation, environment=None):
  """Returns {"text": ...}, {"raised": message} for raise_exception, or {"failed": true}."""
  variables = dict(TOKENS)
  variables.update(conversation.get("variables", {}))
  try:
    compiled = (environment.from_string(template) if environment is not None else
                chat_template_utils._compile_jinja_template(template))
    # As render_jinja_template() does, which rejects a list without messages.
    text = compiled.render(
        **{"documents": None, **variables},
        messages=conversation["messages"],
        tools=conversation.get("tools"),
        add_generation_prompt=conversation.get("add_generation_prompt", False))
  except Exception as error:
    if type(error).__name__ == "TemplateError":
      return {"raised": str(error)}
    return {"failed": True}
  return {"text": text}


def hashed(result):
  for key in ("text", "raised"):
    if key in result:
      data = result[key].encode()
      return {key: [len(data), f"{xxh64(data):016x}"]}
  return result


# What Python says of values that have no text of their own.
NAMELESS = ("<generator", "<function", "<built-in", "<bound method", "<Macro", "<LoopContext",
            "<class", "dict_items(", "dict_keys(", "object at 0x")


def kinds(lists, conversation):
  """Returns {operation: outcomes, one a value or a pair}: a text, False (an error), or None
  where the text is Python's own business."""

  environment = chat_template_utils._compile_jinja_template("").environment

  def outcome(operation, a, b):
    template = operation.replace("A", a).replace("B", b) if b else operation.replace("A", a)
    result = render(lists["before"] + template + lists["after"], conversation, environment)
    text = result.get("text", False)
    return None if text and any(name in text for name in NAMELESS) else text

  values, seconds = lists["values"], lists["seconds"]
  found = {}
  for operation in lists["of_one"]:
    found[operation] = [outcome(operation, a, "") for a in values]
  for operation in lists["of_two"]:
    found[operation] = [outcome(operation, a, b) for a in values for b in seconds]
  for operation in lists["of_argument"]:
    found[operation] = [outcome(operation, "A", b) for b in seconds]
  return found


def write(name, value):
  text = json.dumps(value, ensure_ascii=False, indent=1)
  (DATA / name).write_text(text + "\n", encoding="utf-8")


def main():
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("--shared", type=pathlib.Path)
  arguments = parser.parse_args()
  assert xxh64(b"") == 0xEF46DB3751D8E999 and xxh64(b"abc") == 0x44BC2CF5AD770999
  conversations = json.loads((DATA / "conversations.json").read_text(encoding="utf-8"))
  own = {}
  for path in sorted((DATA / "templates").glob("*.jinja")):
    template = path.read_text(encoding="utf-8")
    own[path.name] = {name: render(template, c) for name, c in conversations.items()}
  write("expected.json", own)
  features_input = json.loads((DATA / "features_input.json").read_text(encoding="utf-8"))
  features = json.loads((DATA / "features.json").read_text(encoding="utf-8"))
  write("features.json", [
      {"template": f["template"], **render(f["template"], features_input)} for f in features
  ])
  lists = json.loads((DATA / "kinds_input.json").read_text(encoding="utf-8"))
  # A line an operation.
  lines = [f"{json.dumps(operation)}: {json.dumps(outcomes, ensure_ascii=False)}"
           for operation, outcomes in kinds(lists, features_input).items()]
  (DATA / "kinds.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
  if arguments.shared is not None:
    shared = {}
    for path in sorted(arguments.shared.glob("*.jinja")):
      template = path.read_text(encoding="utf-8")
      shared[path.name] = {name: hashed(render(template, c)) for name, c in conversations.items()}
    write("shared.json", shared)


if __name__ == "__main__":
  main()
