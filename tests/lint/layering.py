"""Checks that includes only point down, and that one file names backends. The tables below are the
rules. The targets enforce most of them a second time: a layer's headers are only on the include
path of the layers above it.
"""

import re

import source_tree

# The headers that a backend implements and its users include.
CONTRACT = ("kernels/contract/", "kernels/kv/", "kernels/math/")
# Folders that every part of the converter may include, besides parts below it.
CONVERTER = (
    "platform/", *CONTRACT, "kernels/pack/", "runtime/bundle/", "arenite/",
    "runtime/sampling/options.def", "runtime/sampling/option_range.h",
)


def _in(layer, *rooms):
  return tuple(f"{layer}/{room}/" for room in rooms)



# Folder -> allowed includes besides itself. The longest matching folder applies. A name that ends
# in a slash is a folder; "platform/*.h" is the headers directly in that folder.
MAY_INCLUDE = {
    "platform": (),
    "platform/base": (),
    "platform/os": ("platform/base/",),
    "kernels": ("platform/",),
    "kernels/contract": ("platform/",),
    "kernels/kv": ("platform/", "kernels/contract/"),
    "kernels/math": ("platform/",),
    "kernels/pack": ("platform/", *CONTRACT),
    "kernels/reference": ("platform/", *CONTRACT, "kernels/pack/"),
    "kernels/cpu": ("platform/", *CONTRACT, "kernels/pack/"),
    "kernels/split": ("platform/", *CONTRACT),
    "kernels/vulkan": ("platform/", *CONTRACT, "kernels/pack/"),
    "kernels/vulkan/shaders": ("platform/", *CONTRACT),
    "kernels/vulkan/device": (
        "platform/", *CONTRACT, "kernels/pack/", *_in("kernels/vulkan", "shaders"),
    ),
    "kernels/vulkan/lower": (
        "platform/", *CONTRACT, "kernels/pack/", *_in("kernels/vulkan", "shaders", "device"),
    ),
    "kernels/vulkan/tune": ("platform/", *CONTRACT, *_in("kernels/vulkan", "lower")),
    "kernels/vulkan/pipelines": (
        "platform/", *CONTRACT, *_in("kernels/vulkan", "shaders", "device", "lower"),
    ),
    "kernels/vulkan/replay": (
        "platform/", *CONTRACT, "kernels/pack/",
        *_in("kernels/vulkan", "device", "lower", "tune", "pipelines"),
    ),
    "runtime/bundle": ("platform/", "kernels/contract/"),
    "runtime/text": ("platform/", "runtime/bundle/"),
    "runtime/constrain": ("platform/", "runtime/bundle/", "runtime/text/"),
    "runtime/chat": ("platform/", "runtime/bundle/", "runtime/text/"),
    "runtime/cache": ("platform/", *CONTRACT),
    "runtime/sampling": ("platform/", *CONTRACT),
    "runtime/scheduler": (
        "platform/", "runtime/bundle/", "runtime/text/", "runtime/sampling/", "runtime/constrain/",
    ),
    "runtime/speculate": ("platform/",),
    "runtime/model": (
        "platform/", *CONTRACT, "kernels/pack/", "runtime/bundle/", "runtime/text/",
        "runtime/chat/", "runtime/constrain/", "runtime/sampling/",
    ),
    "runtime/memory": (
        "platform/", *CONTRACT, "runtime/bundle/", "runtime/model/", "runtime/cache/",
        "runtime/text/", "runtime/sampling/", "runtime/constrain/", "runtime/speculate/",
        "runtime/scheduler/",
    ),
    "runtime/state": (
        "platform/", *CONTRACT, "runtime/bundle/", "runtime/model/", "runtime/cache/",
        "runtime/text/", "runtime/sampling/", "runtime/constrain/", "runtime/speculate/",
        "runtime/scheduler/",
        "runtime/memory/",
    ),
    "runtime/session": (
        "platform/", *CONTRACT, "runtime/bundle/", "runtime/model/", "runtime/cache/",
        "runtime/text/", "runtime/sampling/", "runtime/constrain/", "runtime/speculate/",
        "runtime/scheduler/",
        "runtime/memory/", "runtime/state/", "runtime/backends.h",
    ),
    "runtime/conversation": (
        "platform/", *CONTRACT, "runtime/bundle/", "runtime/model/", "runtime/text/",
        "runtime/chat/", "runtime/speculate/", "runtime/memory/", "runtime/session/",
    ),
    "runtime/embedding": (
        "platform/", *CONTRACT, "runtime/bundle/", "runtime/model/", "runtime/memory/",
        "runtime/text/",
    ),
    "runtime/audio": ("platform/",),
    "runtime/vision": (
        "platform/", *CONTRACT, "runtime/bundle/", "runtime/model/", "runtime/memory/",
    ),
    "runtime/transcription": (
        "platform/", *CONTRACT, "runtime/bundle/", "runtime/model/", "runtime/memory/",
        "runtime/text/", "runtime/session/", "runtime/audio/", "runtime/sampling/",
    ),
    "runtime/api": ("platform/", *CONTRACT, "kernels/pack/", "runtime/", "arenite/"),
    "runtime": ("platform/", *CONTRACT),
    "converter": (*CONVERTER, "tools/cli/"),
    "converter/base": CONVERTER,
    "converter/chat": (*CONVERTER, *_in("converter", "base")),
    "converter/tokenizer": (*CONVERTER, *_in("converter", "base")),
    "converter/quantize": (*CONVERTER, *_in("converter", "base")),
    # A checkpoint's tensors may lie in a GGUF file.
    "converter/hf": (
        *CONVERTER, *_in("converter", "base", "chat"), "converter/gguf/gguf_file.h",
        "converter/gguf/block_formats.h", "converter/tokenizer/file_text.h",
        "converter/tokenizer/shown_json.h",
    ),
    "converter/family": (*CONVERTER, *_in("converter", "base", "hf")),
    "converter/gguf": (*CONVERTER, *_in("converter", "base", "hf", "family", "tokenizer")),
    "converter/tensors": (*CONVERTER, *_in("converter", "base", "hf", "family")),
    "converter/plan": (*CONVERTER, *_in("converter", "base", "hf", "family")),
    "converter/write": (
        *CONVERTER,
        *_in("converter", "base", "hf", "family", "tensors", "quantize", "tokenizer"),
    ),
    "converter/convert": (
        *CONVERTER,
        *_in("converter", "base", "hf", "gguf", "family", "tensors", "quantize", "write"),
    ),
    "converter/run": (*CONVERTER, *_in("converter", "base", "chat", "hf", "write", "convert")),
    "converter/calibrate": (
        *CONVERTER, *_in("converter", "base", "hf", "quantize", "write", "convert", "run"),
    ),
    "tools": ("arenite/",),
    "tools/bundle": ("platform/",),
    "tools/cli": ("arenite/",),
    "bindings": ("arenite/",),
}
# The only file that includes concrete backends; with its header, the only one that names them.
EXCEPTIONS = {"runtime/backends.cc": ("kernels/",)}
NAMES_BACKENDS = ("runtime/backends.cc", "runtime/backends.h")

# Header -> who may include it, where its layer is too wide a rule. The parts of a session do not
# know the session.
ONLY_FOR = {
    "runtime/session/session.h": (
        "runtime/session/session.cc", "runtime/conversation/", "runtime/transcription/",
        "runtime/api/"),
    "runtime/session/saved_pages.h": tuple(
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
    (r"isocline\.h", ("tools",)),
    (r"httplib\.h", ("tools/serve",)),
    (r"stb_image\.h", ("tools/arenite",)),
    (r"FLAC/", ("tools/arenite",)),
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
    if path not in NAMES_BACKENDS:
      for line, text in enumerate(source_tree.read(root, path).splitlines(), 1):
        if found := re.search(r"BackendId::k\w+", text):
          problems.append(f"{path}:{line}: names {found[0]}: only {', '.join(NAMES_BACKENDS)} may; "
                          "add what you ask to BackendTraits.")
  return problems


if __name__ == "__main__":
  source_tree.main(check)
