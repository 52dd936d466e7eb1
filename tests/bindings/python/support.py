"""Shared by the tests of the Python package: the arguments, and the demo model as a bundle."""

import argparse
import atexit
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

options = None

# A chat template with reasoning and tool calls.
TOOL_TEMPLATE = """{%- for m in messages %}{{- '<|im_start|>' + m.role + '\\n' }}
{%- if m.reasoning_content %}
{{- '<think>\\n' + m.reasoning_content + '\\n</think>\\n\\n' }}{%- endif %}
{{- m.content }}{%- for call in m.tool_calls %}
{{- '\\n<call>' + call.function.name + '(' }}
{%- for key, value in call.function.arguments | items %}
{%- if not loop.first %}{{- ', ' }}{%- endif %}{{- key + '=' + (value | tojson) }}{%- endfor %}
{{- ')</call>' }}{%- endfor %}{{- '<|im_end|>\\n' }}{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"""


def parse_arguments():
  """Parses the arguments from CMake; unittest's own may follow."""
  global options
  parser = argparse.ArgumentParser()
  parser.add_argument("--source", type=pathlib.Path, required=True)
  parser.add_argument("--bin", type=pathlib.Path, required=True)
  parser.add_argument("--library", type=pathlib.Path, required=True)
  parser.add_argument("--layout", type=pathlib.Path)
  options, rest = parser.parse_known_args()
  os.environ["ARENITE_LIBRARY"] = str(options.library)
  sys.path.insert(0, str(options.source / "bindings/python"))
  return rest


def run(*command, **environment):
  done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                        env={**os.environ, **environment}, check=False)
  if done.returncode != 0:
    raise AssertionError(f"{command}: exit {done.returncode}\n{done.stdout[-3000:]}"
                         f"{done.stderr[-3000:]}")
  return done.stdout


def temporary_folder():
  folder = tempfile.TemporaryDirectory()
  atexit.register(folder.cleanup)
  return pathlib.Path(folder.name)


def convert(folder, weights="f32"):
  bundle = folder / f"fable-{weights}.arn"
  run(options.bin / "arenite-convert", options.source / "models/fable/fable-2m", "-o", bundle,
      "--weights", weights)
  return bundle


def convert_with_template(folder, template):
  """Converts the demo model with another chat template."""
  source = options.source / "models/fable/fable-2m"
  checkpoint = folder / "checkpoint"
  shutil.copytree(source, checkpoint)
  config = json.loads((source / "tokenizer_config.json").read_text())
  config["chat_template"] = template
  (checkpoint / "tokenizer_config.json").write_text(json.dumps(config))
  bundle = folder / "template.arn"
  run(options.bin / "arenite-convert", checkpoint, "-o", bundle, "--weights", "int8")
  return bundle


def main(rest):
  unittest.main(module="__main__", argv=[sys.argv[0]] + rest)
