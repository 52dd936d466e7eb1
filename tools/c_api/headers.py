"""Parses the headers of the C API, which keep to a simple form: declarations, one comment before
each group of them, and comments beside the fields of structs and the names of enums.
"""

import dataclasses
import functools
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "runtime/api/include/arenite"
# In the order for readers.
_FIRST = ["status.h", "model.h", "sampling.h", "reply.h", "session.h", "state.h"]


def _parts():
  """Returns the headers that arenite.h includes; profile.h and observe.h are experimental."""
  text = (FOLDER / "arenite.h").read_text(encoding="utf-8")
  named = re.findall(r"^#include <arenite/(\w+\.h)>", text, re.MULTILINE)
  return sorted(named, key=lambda n: (_FIRST.index(n) if n in _FIRST else len(_FIRST), n))


PARTS = _parts()


@dataclasses.dataclass
class Variable:
  """A field or a parameter; `type` as in C, with one space between words: "const char*"."""
  type: str  # of an array: of its elements
  name: str
  elements: str = ""  # of an array: a number or a constant's name; "": not an array
  comment: str = ""  # of a field: the comment before it or beside it
  # For a function pointer: its declaration, whose name is the type: arn_reader_read.
  callback: "Declaration | None" = None


@dataclasses.dataclass
class Declaration:
  kind: str  # "opaque", "alias", "struct", "enum", "init", "define", "callback", "function"
  name: str  # of an enum: of its first value
  text: str  # as in the header, comments included
  variables: list[Variable] = dataclasses.field(default_factory=list)  # fields or parameters
  returns: str = ""
  values: dict[str, int] = dataclasses.field(default_factory=dict)  # of an enum
  initial: list[str] = dataclasses.field(default_factory=list)  # of an INIT: after struct_size


@dataclasses.dataclass
class Group:
  """Declarations with the comment before them; a comment alone has no declarations."""
  comment: str
  declarations: list[Declaration]


_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_LIMITS = {"INT32_MIN": -2**31, "INT32_MAX": 2**31 - 1, "UINT32_MAX": 2**32 - 1}
_FRAME = re.compile(r"#(ifndef|ifdef|endif|include|if |else)|extern \"C\"|\}$|#define \w+_H_$")


def without_comments(text):
  return _COMMENT.sub(" ", text)


def comment_text(comment):
  """Returns the text of a comment without its frame; keeps the line breaks."""
  lines = [re.sub(r"^\s*\*? ?", "", line) for line in comment[2:-2].split("\n")]
  return "\n".join(line.rstrip() for line in lines).strip()


def _variable(text):
  text = " ".join(text.split())
  if text == "void":
    return []
  match = re.fullmatch(r"(.*?)(\w+)(?:\[(\w+)\])?", text)
  return [Variable(match[1].strip().replace(" *", "*"), match[2], match[3] or "")]


def _callback(struct, statement):
  """Returns a field that is a function pointer as a variable; None for any other field."""
  match = re.fullmatch(r"(.+?) ?\(\*(\w+)\)\((.*)\)", " ".join(statement.split()))
  if match is None:
    return None
  name = f"{struct}_{match[2]}"
  declared = Declaration("callback", name, statement, _parameters(match[3]), match[1])
  return Variable(name, match[2], callback=declared)


def _fields(struct, body):
  found, before = [], ""
  for piece in re.finditer(r"/\*.*?\*/|[^;/]+;", body, re.DOTALL):
    text = piece[0]
    if not text.startswith("/*"):
      variable, rest = _callback(struct, text.strip()[:-1]), []
      if variable is None:
        first, *rest = text.strip()[:-1].split(",")
        (variable,) = _variable(first)
      found += [variable] + [Variable(variable.type, name.strip()) for name in rest]
      variable.comment, before = before, ""
    elif found and "\n" not in body[body.rindex(";", 0, piece.start()):piece.start()]:
      found[-1].comment = " ".join((found[-1].comment + " " + comment_text(text)).split())
    else:
      before = " ".join(comment_text(text).split())
  return found


def _parameters(text):
  return [v for part in without_comments(text).split(",") for v in _variable(part)]


def _enum_values(body):
  values, following = {}, 0
  for part in without_comments(body).split(","):
    if not part.strip():
      continue
    name, _, value = (word.strip() for word in part.partition("="))
    following = int(value, 0) if value else following
    values[name] = following
    following += 1
  return values


def _initial_values(text):
  """Returns the values of an initialiser; a nested one counts as one value."""
  text = re.sub(r"\{[^{}]*\}", "{}", text.replace("\\", " "))
  return [word.strip() for word in text.split(",")]


def _declaration(text):
  code = " ".join(without_comments(text).split())
  if match := re.match(r"#define (\w+)_INIT[ \\]*\{(.*)\}", code):
    words = _initial_values(match[2])
    return Declaration("init", re.search(r"sizeof\((\w+)\)", words[0])[1], text, initial=words[1:])
  if match := re.match(r"#define (\w+) \(?(-?\w+)\)?$", code):
    value = _LIMITS[match[2]] if match[2] in _LIMITS else int(match[2], 0)
    return Declaration("define", match[1], text, values={match[1]: value})
  if match := re.fullmatch(r"typedef struct (\w+) (\w+);", code):
    return Declaration("opaque", match[1], text)
  if match := re.match(r"typedef struct (\w+) \{", code):
    body = text[text.index("{") + 1:text.rindex("}")]
    return Declaration("struct", match[1], text, variables=_fields(match[1], body))
  if code.startswith("enum {"):
    values = _enum_values(text[text.index("{") + 1:text.rindex("}")])
    return Declaration("enum", next(iter(values)), text, values=values)
  if match := re.fullmatch(r"typedef (.+?) ?\(\*(\w+)\)\((.*)\);", code):
    return Declaration("callback", match[2], text, _parameters(match[3]), match[1])
  if match := re.fullmatch(r"ARN_API (.+?) ?(arn_\w+)\((.*)\);", code):
    returns = match[1].replace(" *", "*")
    return Declaration("function", match[2], text, _parameters(match[3]), returns)
  if match := re.fullmatch(r"typedef (\w+) (\w+);", code):
    return Declaration("alias", match[2], text, returns=match[1])
  raise ValueError(f"unsupported declaration: {code}")


def _statements(text):
  """Yields top-level items (comments, whole directives, declarations) with the blank lines before:
  (is a comment, has a blank line before, text)."""
  at = 0
  while at < len(text):
    start = re.compile(r"\s*").match(text, at).end()
    blank = text.count("\n", at, start) > 1
    if start == len(text):
      return
    if text.startswith("/*", start):
      end = text.index("*/", start) + 2
      yield True, blank, text[start:end]
    elif text.startswith("#", start):
      end = re.compile(r"(?:[^\n]*\\\n)*[^\n]*").match(text, start).end()
      yield False, blank, text[start:end]
    elif _FRAME.match(text[start:].split("\n", 1)[0]):
      end = text.find("\n", start)
      yield False, blank, text[start:end]
    else:
      depth, end = 0, start
      while text[end] != ";" or depth:
        if text.startswith("/*", end):
          end = text.index("*/", end) + 1
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        end += 1
      end += 1
      beside = re.compile(r"[ \t]*/\*.*?\*/[ \t]*(?=\n)", re.DOTALL).match(text, end)
      if beside and "\n" not in text[end:beside.start() + 1]:
        end = beside.end()
      yield False, blank, text[start:end]
    at = end


@functools.cache
def read(part):
  """Returns the groups of one header, in order. The first is the header's own comment."""
  groups, inside = [], False
  for is_comment, blank, text in _statements((FOLDER / part).read_text(encoding="utf-8")):
    if is_comment:
      groups.append(Group(comment_text(text), []))
      inside = True
      continue
    if _FRAME.match(text) or text.startswith("#define ARN_API"):
      inside = False
      continue
    if not inside or (blank and not groups[-1].declarations) or (
        blank and groups[-1].declarations):
      groups.append(Group("", []))
      inside = True
    groups[-1].declarations.append(_declaration(text))
  return [g for g in groups if g.comment or g.declarations]


def declarations(parts=PARTS):
  return [d for part in parts for group in read(part) for d in group.declarations]


def constants(found):
  """Returns the values of all enum names and numeric defines."""
  return {name: value for d in found for name, value in d.values.items()}
