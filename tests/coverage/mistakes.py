"""What mutate.py plants: the mistakes that each line of a source may have.

A mistake is one changed token or one lost statement: < for <=, == for !=, && for ||, + for -, a
number and one more, a negated condition, an assignment or a call left out.
"""

import collections
import pathlib
import re
import sys

from coverage import MODULES, ROOT

EQUIVALENT = pathlib.Path(__file__).with_name("equivalent.txt")

# (What is looked for, what takes its place.)
CHANGES = [
    (r"(?<=\s)<=(?=\s)", "<"), (r"(?<=\s)<(?=\s)", "<="), (r"(?<=\s)>=(?=\s)", ">"),
    (r"(?<=\s)>(?=\s)", ">="), (r"(?<=\s)==(?=\s)", "!="), (r"(?<=\s)!=(?=\s)", "=="),
    (r"(?<=\s)&&(?=\s)", "||"), (r"(?<=\s)\|\|(?=\s)", "&&"), (r"(?<=\s)\+(?=\s)", "-"),
    (r"(?<=\s)-(?=\s)", "+"), (r"(?<=\s)\*(?=\s)", "+"), (r"(?<=\s)\+=(?=\s)", "-="),
    (r"(?<=[\s(])\d+(?=[;,)\s])", lambda number: str(int(number) + 1)),
    (r"(?<=[\s(])true(?=[;,)\s])", "false"), (r"(?<=[\s(])false(?=[;,)\s])", "true"),
]
STATEMENT = re.compile(r"^\s+[\w.>\-\[\]*()]+(\([^{}]*\)| [-+|&^]?= [^{}]+);$")
NOT_STATEMENT = re.compile(r"^\s+(return|using|const|auto|static|constexpr|break|continue|case|"
                           r"template|friend|delete|namespace|typename|goto)\b")
CONDITION = re.compile(r"^(\s+(?:\} else )?if )\((?!constexpr)(.+)\)( \{| return .*;| break;|"
                       r" continue;|)$")

Mistake = collections.namedtuple("Mistake", "file number before after")


def code_of(line):
  """Returns the line with strings, characters and comments blanked, of the same length."""
  blank = lambda match: " " * len(match.group())
  line = re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])+\'', blank, line)
  return re.sub(r"//.*", blank, line)


def is_balanced(text):
  depth = 0
  for c in text:
    depth += (c == "(") - (c == ")")
    if depth < 0:
      return False
  return depth == 0


def changed_lines(line):
  """Yields what mistakes make of a line."""
  code = code_of(line)
  if not code.strip() or code.lstrip().startswith(("#", "*", "static_assert", "template")):
    return
  for pattern, instead in CHANGES:
    for match in re.finditer(pattern, code):
      token = instead(match.group()) if callable(instead) else instead
      yield line[:match.start()] + token + line[match.end():]
  condition = CONDITION.match(code)
  if condition and is_balanced(condition.group(2)):
    start, end = condition.span(2)
    yield f"{line[:start]}!({line[start:end]}){line[end:]}"
  if STATEMENT.match(code) and not NOT_STATEMENT.match(code) and is_balanced(code):
    yield re.match(r"\s*", line).group() + ";"


def sources_of(module):
  return sorted(str(f.relative_to(ROOT)) for pattern in MODULES[module]
                for f in ROOT.glob(pattern + ("**/*.cc" if pattern.endswith("/") else "*"))
                if f.suffix == ".cc")


def mistakes_of(module):
  return [Mistake(name, number, line, after)
          for name in sources_of(module)
          for number, line in enumerate((ROOT / name).read_text().splitlines(), 1)
          for after in changed_lines(line)]


def key_of(mistake):
  """Returns how equivalent.txt names a mistake: without the line's number, which changes."""
  return mistake.file, mistake.before.strip(), mistake.after.strip()


def read_equivalent(mistakes):
  """Returns the keys in equivalent.txt that are of these mistakes; a line of theirs that is no
  mistake any more is an error."""
  known = {key_of(m) for m in mistakes}
  files = {m.file for m in mistakes}
  found = set()
  for number, line in enumerate(EQUIVALENT.read_text().splitlines(), 1):
    if not line.strip() or line.startswith("#"):
      continue
    match = re.fullmatch(r"(\S+): (.+?) => (.+?) # (.+)", line)
    if match is None:
      sys.exit(f"{EQUIVALENT}:{number}: expected 'FILE: LINE => CHANGED LINE # REASON'")
    key = match.groups()[:3]
    if key[0] not in files:
      continue
    if key not in known:
      sys.exit(f"{EQUIVALENT}:{number}: no such mistake")
    found.add(key)
  return found
