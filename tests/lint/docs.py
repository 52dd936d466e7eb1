"""Documents name files that exist. Checked in README.md, CONTRIBUTING.md, SECURITY.md and docs/:
paths in backticks, relative links, the anchors of links, and lines of prose of at most 100 columns.
Code blocks, tables and generated parts are left alone.
"""

import os
import re

import source_tree

PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md")
GENERATED = ("docs/c-api.md",)  # of their prose, columns are not checked
MAX_COLUMNS = 100
FOLDERS = source_tree.EVERYTHING + ("models",)
# Names with these endings are files of the tree, wherever they lie, or FOREIGN.
SOURCES = (".cc", ".h", ".c", ".fbs", ".py", ".sh", ".comp", ".glsl", ".cmake", ".java")
FOREIGN = ("xnnpack/", "convert_hf_to_gguf.py")
SKIPPED_FOLDERS = ("__pycache__", ".deps", ".git", "build")

_FENCE = re.compile(r"^\s*```")
_BEGIN, _END = "<!-- table: begin -->", "<!-- table: end -->"
_CODE = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?\s*\)")
_HEADING = re.compile(r"^#+\s+(.*?)\s*#*$")


def _pages(root):
  present = [page for page in PAGES if (root / page).is_file()]
  return present + [p.as_posix() for p in source_tree.files(root, ("docs",), (".md",))]


def _all_files(root):
  found = set()
  for directory, subfolders, names in os.walk(root):
    subfolders[:] = [d for d in subfolders if d not in SKIPPED_FOLDERS]
    folder = os.path.relpath(directory, root)
    found.update(name if folder == "." else f"{folder}/{name}" for name in names)
  return found


def _prose(text):
  """(line number, line, whether it is prose) of each line outside code blocks."""
  in_fence = in_table = False
  for number, line in enumerate(text.splitlines(), 1):
    if _FENCE.match(line):
      in_fence = not in_fence
      continue
    in_table = line == _BEGIN or in_table and line != _END
    if not in_fence:
      yield number, line, not in_table and not line.lstrip().startswith("|")


def anchors(text):
  """The anchors that GitHub gives the headings of a page."""
  found = set()
  for _, line, _ in _prose(text):
    heading = _HEADING.match(line)
    if heading is None:
      continue
    title = re.sub(r"\]\([^)]*\)", "", heading.group(1))
    slug = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
    same = 0
    while (f"{slug}-{same}" if same else slug) in found:
      same += 1
    found.add(f"{slug}-{same}" if same else slug)
  return found


def _expanded(word):
  """backend.{h,cc} as its two names."""
  braces = re.search(r"\{([^{}]*)\}", word)
  if braces is None:
    return [word]
  return [name for option in braces.group(1).split(",")
          for name in _expanded(word[:braces.start()] + option + word[braces.end():])]


def _exists(root, files, word):
  """None when the word names no file of the tree."""
  if word.startswith(tuple(f + "/" for f in FOLDERS)):
    path = word.rstrip("/")
    return (root / path).exists() or "*" in path and any(root.glob(path))
  if not word.endswith(SOURCES) or word.startswith(FOREIGN) or "*" in word:
    return None
  if word.startswith(("/", "~", "..", "build/", ".deps/")) or word in SOURCES:
    return None
  return any(file == word or file.endswith("/" + word) for file in files)


def _missing_paths(root, files, line):
  for span in _CODE.findall(line):
    for word in span.split():
      word = word.strip(",;:()\"'").removeprefix("./")
      if re.search(r"[<>$=|\\]|\.\.\.", word):
        continue
      for name in _expanded(word):
        if _exists(root, files, name) is False:
          yield name


def _broken_link(root, page, target):
  """What is wrong with a link, or None."""
  if re.match(r"[a-z]+:", target):
    return None
  path, _, anchor = target.partition("#")
  file = root / page if not path else (root / page).parent / path
  if not file.exists():
    return f"the link {target} leads to no file."
  if anchor and file.suffix == ".md" and anchor not in anchors(source_tree.read(root, file)):
    return f"the link {target} leads to no heading."
  return None


def check(root):
  problems = []
  files = _all_files(root)
  for page in _pages(root):
    for number, line, is_prose in _prose(source_tree.read(root, page)):
      where = f"{page}:{number}: "
      if is_prose and len(line) > MAX_COLUMNS and page not in GENERATED and " " in line.strip():
        problems.append(where + f"{len(line)} columns, at most {MAX_COLUMNS}.")
      problems += [where + f"names {name}, which is not there."
                   for name in _missing_paths(root, files, line)]
      for target in _LINK.findall(_CODE.sub("", line)):
        broken = _broken_link(root, page, target)
        if broken is not None:
          problems.append(where + broken)
  return problems


if __name__ == "__main__":
  source_tree.main(check)
