"""Forbidden words and constructs. The library (platform, kernels, runtime) does not throw, end the
process, allocate from the heap, print, or read the environment. No file has signs of unfinished
work.

A line that must break a rule states the reason: `// lint:allow heap: <reason>`.
"""

import re

import source_tree

# rule -> (pattern for the code, with comments and strings blanked; the alternative)
LIBRARY_RULES = {
    "exceptions": (
        r"\b(throw|dynamic_cast|typeid)\b|\btry\s*\{|\bcatch\s*\(",
        "return a Status"),
    "exit": (
        r"(?<![\w.>])(abort|exit|_exit|quick_exit|_Exit|terminate|raise)\s*\(",
        "the library never ends the process: return a Status"),
    "heap": (
        r"\bstd::(pmr::)?(vector|string|map|multimap|unordered_map|set|unordered_set|deque|list"
        r"|function|any|make_unique|make_shared|unique_ptr|shared_ptr|\w*stringstream)\b"
        r"|\bnew\b(?!\s*[(>])|(?<![\w.>])(malloc|calloc|realloc|free|aligned_alloc|posix_memalign"
        r"|strdup)\s*\(|\bdelete\b(?!\s*[;,)])",
        "memory comes from the arena"),
    "print": (
        r"\bstd::(cout|cerr|clog|print)\b"
        r"|(?<!\w)(printf|vprintf|fprintf|vfprintf|puts|fputs|putchar|perror)\s*\(",
        "the library says what it has to say through its error text"),
    "environment": (
        r"\b(secure_)?getenv\b|\b(un)?setenv\b|\bputenv\b|\benviron\b",
        "options come through the API"),
}
UNFINISHED = re.compile(
    r"\b(TODO|FIXME|XXX|HACK|stub|stubbed|unimplemented|placeholder)\b|\bnot implemented\b"
    r"|\bfor now\b", re.IGNORECASE)


def _check_library(root):
  rules = {name: (re.compile(pattern), advice) for name, (pattern, advice) in LIBRARY_RULES.items()}
  for path in source_tree.files(root, source_tree.LIBRARY, (".h", ".cc")):
    text = source_tree.read(root, path)
    lines = text.splitlines()
    code = source_tree.blank_comments_and_strings(text).splitlines()
    for number, (line, original) in enumerate(zip(code, lines), 1):
      for name, (pattern, advice) in rules.items():
        match = pattern.search(line)
        if match and not source_tree.allowed(original, name):
          yield f"{path}:{number}: {name}: '{match.group(0).strip()}': {advice}."


def _check_unfinished(root):
  for path in source_tree.files(root, source_tree.EVERYTHING, source_tree.CODE + (".md",)):
    if path.parts[:2] == ("tests", "lint"):
      continue  # this file lists the words
    for number, line in enumerate(source_tree.read(root, path).splitlines(), 1):
      match = UNFINISHED.search(line)
      if match and not source_tree.allowed(line, "unfinished"):
        yield f"{path}:{number}: unfinished: '{match.group(0)}': finish it, or open an issue."


def check(root):
  return list(_check_library(root)) + list(_check_unfinished(root))


if __name__ == "__main__":
  source_tree.main(check)
