"""Checks that includes only point down. The tables below are the rules. The targets enforce most of
them a second time: a layer's headers are only on the include path of the layers above it.
"""

import re

import source_tree

# Folder -> allowed includes besides itself. The longest matching folder applies. A name that ends
# in a slash is a folder; "kernels/*.h" is the headers directly in that folder.
MAY_INCLUDE = {
    "platform": (),
    "platform/base": (),
    "platform/os": ("platform/base/",),
    "kernels": ("platform/",),
    "kernels/pack": ("platform/", "kernels/*.h"),
    "kernels/reference": ("platform/", "kernels/*.h", "kernels/pack/"),
    "kernels/cpu": ("platform/", "kernels/*.h", "kernels/pack/"),
    "kernels/vulkan": ("platform/", "kernels/*.h", "kernels/pack/"),
    "runtime/bundle": ("platform/",),
    "runtime/text": ("platform/", "runtime/bundle/"),
    "runtime/chat": ("platform/", "runtime/bundle/", "runtime/text/"),
    "runtime/cache": ("platform/", "kernels/*.h"),
    "runtime/sampling": ("platform/", "kernels/*.h"),
    "runtime/model": (
        "platform/", "kernels/*.h", "kernels/pack/", "runtime/bundle/", "runtime/text/",
        "runtime/chat/",
    ),
    "runtime/memory": (
        "platform/", "kernels/*.h", "runtime/bundle/", "runtime/model/", "runtime/cache/",
        "runtime/text/", "runtime/sampling/",
    ),
    "runtime/state": (
        "platform/", "kernels/*.h", "runtime/bundle/", "runtime/model/", "runtime/cache/",
        "runtime/text/", "runtime/sampling/", "runtime/memory/",
    ),
    "runtime/session": (
        "platform/", "kernels/*.h", "runtime/bundle/", "runtime/model/", "runtime/cache/",
        "runtime/text/", "runtime/sampling/", "runtime/memory/", "runtime/state/",
        "runtime/backends.h",
    ),
    "runtime/api": ("platform/", "kernels/*.h", "kernels/pack/", "runtime/", "arenite/"),
    "runtime": ("platform/", "kernels/*.h"),
    "converter": ("platform/", "kernels/*.h", "kernels/pack/", "runtime/bundle/", "arenite/"),
    "tools": ("arenite/",),
    "bindings": ("arenite/",),
}
# The only file that names concrete backends.
EXCEPTIONS = {"runtime/backends.cc": ("kernels/",)}

# Header -> who may include it, where its layer is too wide a rule. The parts of a session do not
# know the session.
ONLY_FOR = {
    "runtime/session/session.h": ("runtime/session/session.cc", "runtime/api/"),
    "runtime/session/snapshot_pages.h": tuple(
        f"runtime/session/{part}.cc" for part in ("save", "restore", "prefix", "reuse_prefix")),
}

# Third-party and operating system headers: pattern -> folders that may use them.
OWNERS = (
    (r"xnnpack(\.h|/)|pthreadpool\.h|cpuinfo\.h|fxdiv\.h", ("kernels/cpu", "kernels/pack")),
    (r"hwy/", ("kernels/cpu",)),
    (r"vulkan/|volk\.h", ("kernels/vulkan",)),
    (r"flatbuffers/", ("runtime/bundle", "converter")),
    (r"pcre2(_internal)?\.h|config\.h|utf8proc\.h", ("runtime/chat", "runtime/text", "converter")),
    (r"nlohmann/", ("converter", "tools")),
    (r"CLI/", ("converter", "tools")),
    (r"(sys|linux|asm)/|(unistd|fcntl|sched|pthread|dlfcn|poll|signal)\.h|csignal",
     ("platform/os", "converter", "tools", "bindings")),
)
# Prefixes of this repository's includes, as opposed to the standard library's.
OUR_FOLDERS = tuple(layer + "/" for layer in source_tree.PRODUCT + ("arenite",))


def _rules_of(path):
  folders = [f for f in MAY_INCLUDE if path.startswith(f + "/")]
  return max(folders, key=len) if folders else None


def _permits(pattern, header):
  if pattern.endswith("/*.h"):
    return re.fullmatch(re.escape(pattern[:-3]) + r"[^/]+\.h", header) is not None
  return header.startswith(pattern) if pattern.endswith("/") else header == pattern


def check(root):
  problems = []
  for path in source_tree.files(root, source_tree.PRODUCT, source_tree.CXX):
    path = path.as_posix()
    folder = _rules_of(path)
    own = folder + ("/" if folder.count("/") else "/*.h")
    if folder in ("converter", "tools", "bindings"):
      own = folder + "/"
    permitted = (own,) + MAY_INCLUDE[folder] + EXCEPTIONS.get(path, ())
    for line, kind, header in source_tree.includes(source_tree.read(root, path)):
      where = f"{path}:{line}: includes {header}: "
      owners = next((o for pattern, o in OWNERS if re.match(pattern, header)), None)
      ours = kind == '"' and "/" not in header or header.startswith(OUR_FOLDERS)
      if owners is not None:
        if not path.startswith(tuple(o + "/" for o in owners)):
          problems.append(where + f"only {', '.join(owners)} may.")
      elif ours and not any(_permits(p, header) for p in permitted):
        problems.append(where + f"{folder} may include {', '.join(permitted)} only.")
      elif header in ONLY_FOR and not path.startswith(ONLY_FOR[header]):
        problems.append(where + f"only {', '.join(ONLY_FOR[header])} may.")
  return problems


if __name__ == "__main__":
  source_tree.main(check)
