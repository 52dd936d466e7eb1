"""Generates docs/c-api.md: reference.in.md with the examples, the error table and the reference."""

import re

import headers

TEMPLATE = headers.ROOT / "tools/c_api/reference.in.md"
EXAMPLES = headers.ROOT / "tools/example/c_api_examples.c"
COLUMNS = 130

# Meaning of each status and the remedy. Must list every status.
STATUSES = {
    "ARN_OK": ("done", ""),
    "ARN_INTERNAL": ("a mistake in Arenite", "report it, with the sentence"),
    "ARN_BAD_STATE": (
        "the call makes no sense now: no logits yet, a sequence that is not empty, another save "
        "under way, a call from the session's own callback",
        "see the call's rule in the reference"),
    "ARN_CANCELLED": (
        "`arn_session_cancel` ended the call", "go on, with the rest of the prompt or generating: "
        "what was finished is kept; ask `arn_session_length`"),
    "ARN_BAD_ARGUMENT": ("a value is out of its range", "the sentence names it"),
    "ARN_UNSUPPORTED": (
        "the option, model and build do not go together; never ignored silently",
        "choose another; for `ARN_BACKEND_VULKAN`, the CPU"),
    "ARN_BAD_TOKEN": ("a token id that the vocabulary has not", "nothing has changed"),
    "ARN_BUFFER_TOO_SMALL": ("the caller's buffer", "the needed size is in the `out_` count"),
    "ARN_TEMPLATE_ERROR": (
        "the chat template refused the messages, or failed on them",
        "show the message: templates speak to people"),
    "ARN_CONTEXT_FULL": (
        "more tokens than the session has room for",
        "fewer tokens, `arn_session_rewind`, `ARN_OVERFLOW_SHIFT`, or a larger context"),
    "ARN_OUT_OF_MEMORY": (
        "the block is too small, or the system has not the memory",
        "a smaller context or KV type: `arn_session_plan` says the bytes"),
    "ARN_NOT_FOUND": ("no such file, or nothing of the kind in the bundle", ""),
    "ARN_IO": ("reading or writing failed", "the sentence has the system's reason"),
    "ARN_DISK_FULL": ("no room on the disk; nothing is left behind", "free some, try again"),
    "ARN_BAD_BUNDLE": ("no bundle, or one that contradicts itself", "get the file again"),
    "ARN_BUNDLE_VERSION": ("a bundle of another version", "convert the checkpoint again"),
    "ARN_BUNDLE_TRUNCATED": ("the file ends too early", "get it again: the download was cut"),
    "ARN_HASH_MISMATCH": ("the bytes are not those that were written", "get the file again"),
    "ARN_BAD_SAVE": ("not a saved session, or a damaged one; nothing has changed", "start over"),
    "ARN_SAVE_MISMATCH": (
        "saved with another model, KV type or page size; nothing has changed", "start over"),
    "ARN_BAD_SIGNATURE": (
        "a bundle that is not signed, or not with the key that was asked for",
        "get the file again, from where it is signed"),
    "ARN_DEVICE": ("the GPU or its driver", "another backend"),
    "ARN_DEVICE_LOST": ("the GPU was reset", "destroy the session; make another"),
}


def _code_words(text):
  text = text.replace("<", "&lt;")
  names = r"(?:arn|ARN)_\w+(?:\.\w+)*(?:\.\.\.)?|\*?out_\w+|struct_size"
  return re.sub(rf"(?<![\w`.])({names})", r"`\1`", text)


def _paragraph(text):
  """Reflows a comment as prose; keeps paragraphs and marks identifiers as code."""
  made = []
  for paragraph in re.split(r"\n\s*\n", text):
    words, lines, line = _code_words(" ".join(paragraph.split())).split(" "), [], ""
    for word in words:
      if line and len(line) + 1 + len(word) > COLUMNS:
        lines.append(line)
        line = ""
      line += (" " if line else "") + word
    made.append("\n".join(lines + [line]))
  return "\n\n".join(made)


def _title(group):
  """Returns the title of a group: its functions, else its types."""
  names = [d.name for d in group.declarations if d.kind == "function"]
  names = names or [d.name for d in group.declarations if d.kind in ("struct", "callback")]
  names = names or [d.name for d in group.declarations if d.kind == "opaque"]
  if not names:
    values = [v for d in group.declarations for v in d.values]
    prefix = re.match(r"ARN_(?:[A-Z]+_)?", values[0])[0] if values else "ARN_VERSION_"
    names = [prefix + "..."]
    if values and values[0] == "ARN_OK":
      names = ["arn_status"]
  return ", ".join(f"`{name}`" for name in names)


def _shown(declaration):
  """Returns a declaration without the export macro and the extra indentation of its other lines."""
  text = declaration.text
  return text.replace("\n" + 8 * " ", "\n").replace("ARN_API ", "") if "ARN_API" in text else text


def _reference():
  parts = []
  for part in headers.PARTS:
    about, *groups = headers.read(part)
    comment = " ".join(about.comment.split()).split(" Written by ")[0]
    what = re.sub(r"^Part of arenite\.h: |\.$", "", comment)
    parts.append(f"## {part}: {what}")
    for group in groups:
      if group.comment.startswith("----"):
        name, _, rest = re.sub(r"-{4,}", "", group.comment).strip().partition("\n")
        parts.append("### " + name[0].upper() + name[1:])
        if rest.strip():
          parts.append(_paragraph(rest.strip()))
        continue
      if group.declarations:
        parts.append("#### " + _title(group))
      if group.comment:
        parts.append(_paragraph(group.comment))
      if group.declarations:
        code = "\n".join(_shown(d) for d in group.declarations)
        parts.append(f"```c\n{code}\n```")
  return "\n\n".join(parts)


def _statuses():
  enum = next(d for d in headers.declarations(["status.h"]) if d.kind == "enum")
  if set(enum.values) != set(STATUSES):
    raise SystemExit("tools/c_api/reference.py: STATUSES and status.h differ in: "
                     f"{sorted(set(enum.values) ^ set(STATUSES))}")
  rows = [f"| `{name}` | {value:#04x} | {STATUSES[name][0]} | {STATUSES[name][1]} |"
          for name, value in enum.values.items()]
  return "\n".join(["| status | | what happened | what to do |", "|---|---|---|---|"] + rows)


def make():
  examples = dict(re.findall(r"/\* \[(\w+)\] \*/\n(.*?)/\* \[end\] \*/",
                             EXAMPLES.read_text(encoding="utf-8"), re.DOTALL))
  text = TEMPLATE.read_text(encoding="utf-8")
  text = re.sub(r"<!-- example: (\w+) -->", lambda m: f"```c\n{examples[m[1]].rstrip()}\n```", text)
  text = text.replace("<!-- statuses -->", _statuses())
  text = text.replace("<!-- reference -->", _reference())
  first, rest = text.split("\n", 1)
  return (f"{first}\n<!-- Written by tools/c_api/generate.py from arenite.h and "
          f"tools/c_api/reference.in.md: do not edit it. -->\n{rest}")
