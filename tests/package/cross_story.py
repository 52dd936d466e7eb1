"""Compiles the example program for another architecture and runs it under an emulator; it must tell
a story.

The converter of a native build makes the bundle; without one the test is skipped (exit 77).
"""

import argparse
import os
import subprocess
import sys
import tempfile

PROMPT = "Once upon a time"


def main():
  parser = argparse.ArgumentParser()
  for name in ("source", "converter", "cc", "library", "emulator"):
    parser.add_argument("--" + name, required=True)
  parser.add_argument("--flags", default="")
  options = parser.parse_args()
  if not os.path.exists(options.converter):
    print(f"skipped: {options.converter} is not built")
    return 77
  with tempfile.TemporaryDirectory() as folder:
    bundle, program = os.path.join(folder, "fable.arn"), os.path.join(folder, "story")
    subprocess.run([options.converter, os.path.join(options.source, "models/fable/fable-2m"), "-o",
                    bundle, "--target", "portable"], check=True, capture_output=True)
    subprocess.run([options.cc, *options.flags.split(), "-std=c11", "-I",
                    os.path.join(options.source, "runtime/api/include"),
                    os.path.join(options.source, "tools/example/story.c"), options.library,
                    f"-Wl,-rpath,{os.path.dirname(options.library)}", "-o", program], check=True)
    told = subprocess.run([options.emulator, program, bundle, PROMPT], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
  print(told)
  words = told[len(PROMPT):].split()
  is_story = told.startswith(PROMPT) and len(words) > 20 and words.count("the") < len(words) / 4
  return 0 if is_story else 1


if __name__ == "__main__":
  sys.exit(main())
