"""A model is data. Checks that model and family names appear only in the converter's table, in
tests and in documentation, not in code that runs on a device.
"""

import re

import source_tree

NAMES = re.compile(
    r"(?i:llama|mistral|mixtral|qwen|smollm|deepseek|falcon|starcoder|olmo|cohere(?!nt)|chatglm"
    r"|gpt[-_]?(2|j|neo|oss)|(?<![a-z])(phi[-_]?[0-9]|glm[-_]?[0-9]))"
    r"|gemma|Gemma|GEMMA",  # but not GemmA, a GEMM's left operand
)
FOLDERS = tuple(f for f in source_tree.PRODUCT if f != "converter")


def check(root):
  problems = []
  for path in source_tree.files(root, FOLDERS, source_tree.CODE):
    for number, line in enumerate(source_tree.read(root, path).splitlines(), 1):
      match = NAMES.search(line)
      if match:
        problems.append(
            f"{path}:{number}: '{match.group(0)}' names a model outside the converter: make what "
            "it decides a field of the bundle.")
  return problems


if __name__ == "__main__":
  source_tree.main(check)
