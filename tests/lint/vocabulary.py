"""One vocabulary. Checks that comments, messages and documents use the glossary's words
(docs/glossary.md) and that comments are sentences with a verb, not noun clauses.
"""

import re

import source_tree

# A retired word, and the word to use.
RETIRED = {
    "anew": "again, from scratch",
    "seer": "observer, callback",
    "sealed": "quantised (pages), signed (bundles)",
    "spare backend": "fallback",
    "is told": "is notified, called with",
    "are told": "are notified, called with",
    "asks ahead": "prefetches",
    "distance bias": "relative position bias",
    "lone sequence": "single sequence",
}
_WORDS = re.compile(r"\b(" + "|".join(RETIRED) + r")\b", re.IGNORECASE)
# "What a run keeps of its logits" says nothing that a reader can act on.
_NOUN_CLAUSE = re.compile(r"^\s*(//|/\*+|\*|#)\s*(What|Of|Whether|Those|That which|Where there)\s")
# The first line of a comment; later lines go on with a sentence.
_COMMENT = re.compile(r"^\s*(//|/\*+|\*|#)")

FOLDERS = source_tree.PRODUCT + ("toolchains", ".ci")
# Experiments quote old names, and this test names what it looks for.
_SKIPPED = ("docs/experiments.md", "docs/glossary.md", "tests/lint/vocabulary.py")


def _problems(path, text, is_code):
  found, was_comment = [], False
  for number, line in enumerate(text.splitlines(), 1):
    match = _WORDS.search(line)
    if match:
      found.append(f"{path}:{number}: '{match.group(0)}' is retired: "
                   f"{RETIRED[match.group(0).lower()]}.")
    if is_code:
      is_comment = _COMMENT.match(line) is not None
      if is_comment and not was_comment and _NOUN_CLAUSE.match(line):
        found.append(f"{path}:{number}: begin a comment with what the code does (a verb), or with "
                     "the thing's name.")
      was_comment = is_comment
  return found


def check(root):
  problems = []
  for path in source_tree.files(root, FOLDERS, source_tree.CODE):
    problems += _problems(path, source_tree.read(root, path), True)
  for path in source_tree.files(root, ("docs", "bindings"), (".md",)):
    if str(path) not in _SKIPPED:
      problems += _problems(path, source_tree.read(root, path), False)
  return problems


if __name__ == "__main__":
  source_tree.main(check)
