"""Measures the bytes of libarenite.so, and checks them against budgets.

  size.py --strip STRIP LIBRARY.so BUDGET ...
      fails if a stripped library exceeds its budget, in bytes
  size.py --strip STRIP --table NAME=LIBRARY.so ...
      prints the table of docs/size.md: bytes per feature, from the linker map next to each library
      (LIBRARY.so.map)
"""

import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile

# The archives of each feature, in table order. An archive not listed here is an error.
FEATURES = (
    ("Matrix products: XNNPACK's micro-kernels, their choice, CPU detection",
     ("microkernels-prod", "dep_xnnpack_gemm", "dep_cpuinfo", "pthreadpool")),
    ("Other kernels with SIMD: attention, norms, 16-bit and int4 tiles",
     ("arn_kernels_cpu", "dep_hwy")),
    ("Reference kernels", ("arn_kernels_reference",)),
    ("Kernel contracts, packed formats", ("arn_kernels", "arn_pack")),
    ("Vulkan backend: shaders and what runs them", ("arn_kernels_vulkan", "arn_kernels_split")),
    ("Tokenizers: regular expressions (PCRE2)", ("dep_pcre2",)),
    ("Tokenizers: Unicode's normal forms and tables (utf8proc)", ("dep_utf8proc",)),
    ("Tokenizers: ours", ("arn_text",)),
    ("Chat templates, conversations", ("arn_chat", "arn_conversation")),
    ("Constraints: schemas, expressions, grammars", ("arn_constrain",)),
    ("Signatures: Ed25519 and SHA-512 of libsodium", ("dep_ed25519",)),
    ("Bundles, models, their programs", ("arn_bundle", "arn_model")),
    ("KV cache, memory plan", ("arn_cache", "arn_memory")),
    ("Sessions, saved sessions, speculation, scheduler",
     ("arn_session", "arn_state", "arn_speculate", "arn_scheduler")),
    ("Embedders", ("arn_embedding",)),
    ("Speech to text: features, transcribers", ("arn_audio", "arn_transcription")),
    ("Images: tiles, patches, encoders", ("arn_vision",)),
    ("Sampling, beam search", ("arn_sampling",)),
    ("C API", ("api",)),
    ("Operating system, base types", ("arn_platform",)),
    ("Linker tables, start-up code, padding", ("rest",)),
)

# Sections that occupy space in the file.
SECTIONS = re.compile(r"^\.(text|init|fini|plt|rodata|data|got|eh_frame|gcc_except_table|"
                      r"init_array|fini_array|ARM\.ex)")
LINE = re.compile(r"^ (?:\S+)?\s*0x([0-9a-f]+)\s+0x([0-9a-f]+)\s+(\S.*)$")


def stripped_bytes(library, strip):
  with tempfile.TemporaryDirectory() as folder:
    out = os.path.join(folder, "stripped")
    subprocess.run([strip, "-o", out, library], check=True)
    return os.path.getsize(out)


def archive_of(name):
  """Returns the archive of an input section, from the object file's name in the map."""
  in_archive = re.search(r"([^/]*)\.a\(", name)
  if in_archive:
    return re.sub(r"^lib", "", in_archive.group(1))
  return "api" if "/arenite.dir/" in name else "rest"


def bytes_by_archive(map_text):
  counts = collections.Counter()
  section = ""
  for line in map_text[map_text.index("Linker script and memory map"):].split("\n"):
    if re.match(r"^\.\S", line):
      section = line.split()[0]
      continue
    found = LINE.match(line)
    # Sections dropped by the linker have address 0.
    if found and SECTIONS.match(section) and int(found.group(1), 16) != 0:
      counts[archive_of(found.group(3))] += int(found.group(2), 16)
  return counts


def by_feature(counts, total):
  """Returns bytes per feature; the sum is the size of the stripped file."""
  known = {archive for _, archives in FEATURES for archive in archives}
  unknown = {archive: n for archive, n in counts.items() if archive not in known and n >= 1024}
  if unknown:
    raise SystemExit(f"size.py: archives that no feature has: {unknown}")
  out = {name: sum(counts[a] for a in archives) for name, archives in FEATURES}
  last = FEATURES[-1][0]
  out[last] = total - sum(n for name, n in out.items() if name != last)
  return out


def kilobytes(n):
  return f"{n / 1000:.0f}" if n else ""


def table(builds, strip):
  columns = []
  for _, library in builds:
    with open(library + ".map", encoding="utf-8", errors="replace") as f:
      columns.append(by_feature(bytes_by_archive(f.read()), stripped_bytes(library, strip)))
  lines = ["| kB (1000 bytes) | " + " | ".join(name for name, _ in builds) + " |",
           "|---|" + "---:|" * len(builds)]
  for feature, _ in FEATURES:
    lines.append(f"| {feature} | " + " | ".join(kilobytes(c[feature]) for c in columns) + " |")
  lines.append("| **the stripped library** | "
               + " | ".join(f"**{kilobytes(sum(c.values()))}**" for c in columns) + " |")
  return "\n".join(lines)


def main():
  parser = argparse.ArgumentParser()
  parser.add_argument("--strip", required=True)
  parser.add_argument("--table", action="store_true")
  parser.add_argument("what", nargs="+")
  options = parser.parse_args()
  if options.table:
    print(table([what.split("=", 1) for what in options.what], options.strip))
    return 0
  failed = 0
  for library, budget in zip(options.what[::2], options.what[1::2], strict=True):
    size = stripped_bytes(library, options.strip)
    print(f"{os.path.basename(library)}: {size} bytes stripped, the budget is {int(budget)}")
    failed |= size > int(budget)
  return failed


if __name__ == "__main__":
  sys.exit(main())
